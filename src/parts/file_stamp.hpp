// SPDX-License-Identifier: BSD-3-Clause
//
// File stamp: how large a cached file is and when it was changed, by which recovery tells whether
// anybody changed it since the job that cached it did so last. Pure.
//
// Everyone can set the time of modification of a file (`cp -p`, rsync, touch); the time of change
// is the kernel's alone. So a file whose stamp is the recorded one is as its job left it.
//
// A job that is killed between a change and its record leaves another stamp than the recorded one.
// It has said before that it changes the file, and when it began to: a change by the job has a time
// of then or a little later. How much later a change may be is the longest that any took here, and
// no less than `grace_ns`. Within that time the times can't tell the job's change from another's,
// and bytes must (CachePart::contradicts_file()). A change that comes later is said to be
// another's, and a user decides. Bytes can't: where a part has changed all that it has of the file,
// they never contradict it, and what somebody else wrote there, however much later, would be
// overwritten without a word.
//
// After another boot the file may be older than its record, because its last changes were lost, and
// nothing that a job did to it is younger than the boot.
#pragma once

#include <cstdint>
#include <string>

namespace perdure {

struct FileStamp {
  std::uint64_t size_bytes = 0;
  std::uint64_t modified_ns = 0;  // since 1970
  std::uint64_t changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

// What a part knows of changes to its file.
struct FileEvidence {
  FileStamp recorded;            // changed_ns is 0: nobody has changed the file
  bool under_way = false;        // a change was begun, and may be in the file without a record
  bool other_clock = false;      // the file system has another clock than this machine
  std::uint64_t begun_ns = 0;    // when the youngest change was begun
  std::uint64_t slowest_ns = 0;  // the longest that a change took
};

enum class FileVerdict : std::uint8_t {
  ours,     // nobody but the job changed it
  unsure,   // what the times leave open
  changed,  // somebody else did
};

constexpr std::uint64_t grace_ns = 250'000'000;

// `seen` is the file's stamp now, `boot_ns` when this machine was booted.
FileVerdict judge_file(const FileEvidence& evidence, const FileStamp& seen, bool same_boot,
                       std::uint64_t boot_ns);

// The later of the two where that is what counts: of parts of one file on several nodes.
FileEvidence join_evidence(const FileEvidence& one, const FileEvidence& other);

// What differs between the recorded stamp and the one seen, for a user.
std::string difference_text(const FileStamp& recorded, const FileStamp& seen);

// "2026-11-25 03:12:01.250 UTC".
std::string utc_text(std::uint64_t ns);

}  // namespace perdure
