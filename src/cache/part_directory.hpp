// SPDX-License-Identifier: BSD-3-Clause
//
// Part directory: the files of a node in which parts of cached files are kept, one for each cached
// file, under a name made of its path.
//
// Invariants
//   cache.C1  Every process that uses a part holds a shared lock of its file. So a part that can be
//       locked exclusively was left behind, by a crash or by an error.
//   cache.C2  A part that was left behind is removed only when all that the cached file may lack is
//       in it, durably, or when a user discards it.
//   cache.C3  Parts are made, joined, recovered and removed under the lock of the directory.
//   cache.C4  A part of which all processes are being killed is waited for, at most 30 s, and then
//       abandoned. Of one that others use too, those clean up what the dead have left (cache.P10).
//   cache.C5  Of the processes of a node that give a part up together, one does so when the others
//       have, and removes it.
//   cache.C6  A part is made when no access of its file aside is under way, and as large as the
//       file is then (cache.A1 of aside_table.hpp).
//
// Threads: any. Failure: what can't be recovered stays, and the error says where.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_handle.hpp"
#include "base/status.hpp"
#include "cache/aside_table.hpp"
#include "cache/cache_part.hpp"
#include "parts/file_stamp.hpp"

namespace perdure {

// A part that this process uses.
struct OpenPart {
  std::unique_ptr<CachePart> part;
  FileHandle lock;        // cache.C1
  std::string directory;  // where its file is
  std::string path;       // of its file
  bool joined = false;    // other processes had it open
};

struct PartRequest {
  std::string directory;  // made if it is absent
  PartIdentity identity;  // layout's part_blocks and instance count when the part is made
  std::uint64_t file_bytes = 0;
  std::uint32_t wait_ms = 30000;        // for accesses aside to end (aside_table.hpp)
  std::optional<PoolVersion> restored;  // if the file is committed with a pool
};

// Of a file that is committed with a pool: what a part was that is left behind in a directory.
enum class Leftover : std::uint8_t {
  none,   // there is none
  used,   // others use it
  other,  // recover_leftover_part() is to be called: it can be recovered alone, or is refused
  fits,   // it goes back to the version
  stale,  // it belongs to another version of the same pool
};
Result<Leftover> look_at_leftover(const std::string& directory, const std::string& path,
                                  const PoolVersion& version);
// What a part that is left behind knows of changes to its file.
struct LeftoverEvidence {
  std::uint64_t instance = 0;  // of the part
  bool ours = false;           // by this part alone: nobody else changed the file
  FileEvidence evidence;
};
Result<LeftoverEvidence> look_at_file(const std::string& directory, const std::string& path,
                                      const BackingFile& backing);
// cache.P15, with what the parts of all nodes know. Code::foreign if somebody else changed the
// file.
Status check_file(const std::string& directory, const std::string& path, const BackingFile& backing,
                  const FileEvidence& evidence);

// Of one that fits: notes that the file is going to be changed; gives the file what it had at the
// version, and stays; notes that the file has all, and lets it go.
Status mark_leftover(const std::string& directory, const std::string& path,
                     const BackingFile& backing);
Status write_leftover(const std::string& directory, const std::string& path,
                      const BackingFile& backing, const PoolVersion& version);
Status release_leftover(const std::string& directory, const std::string& path,
                        const BackingFile& backing);
// Removes a part of the pool that is left behind, as it is.
Status discard_leftover(const std::string& directory, const std::string& path,
                        const PoolVersion& version);

// The first process of the node, before anybody asks how large the file is: recovers what a crash
// left behind of it. `restored` is the version to which the pool has recovered with which the file
// is committed, if it is. Code::foreign if what is there belongs to another file of the same path,
// or somebody else changed the file, as far as this part by itself can tell (cache.P15);
// Code::wrong_state if it needs a version and none is given.
Status recover_leftover_part(const std::string& directory, const std::string& path,
                             const BackingFile& backing,
                             const std::optional<PoolVersion>& restored);

// The first process of the node: joins the part that other processes use if it is the whole file's
// and the request is for the whole file too (one node), else makes one, which those that have the
// file aside will join (aside_table.hpp). Code::busy if it can't be joined, Code::no_space if the
// device is too small for a part, or for a file of a group. The part keeps a pointer to `backing`.
Result<OpenPart> make_part(const PartRequest& request, const BackingFile& backing);

// The others.
Result<OpenPart> join_part(const std::string& directory, const std::string& path);

// Of a file that this process has aside, when it has learned that there is a part: joins it.
// Nothing: there is no part now, and the file stays aside. What a crash left behind is recovered
// first.
Result<std::optional<OpenPart>> follow_part(const PartRequest& request, const BackingFile& backing,
                                            AsideEntry& entry);

// Gives the part up; the last process removes its file, unless `keep`, which leaves it for
// recovery. So does a part that a process of a group, or one that only reads, is the last to leave
// after others have died (cache.P11).
Status leave_part(OpenPart open, bool keep);
// The same at the end of the process, when all of the part is written back. It stays mapped, as
// other threads of the process may still be in it.
Status leave_part_at_exit(const OpenPart& open);

// Gives the part up on behalf of a process of the same node that has it too, and leaves it later
// and properly: nobody is waited for.
void drop_part(OpenPart open);

// What a directory holds.
struct FoundPart {
  std::string file;  // of the part
  std::string path;  // of the cached file
  std::string pool;  // directory of the pool with which it is committed; empty: none
  std::uint32_t node = 0;
  std::uint32_t nodes = 0;
  std::uint64_t size_bytes = 0;     // of the cached file
  std::uint64_t unsaved_bytes = 0;  // that the cached file may lack
  std::uint64_t through_bytes = 0;  // of the cached file, that pass through to it (cache.P16)
  std::uint64_t evicted_bytes = 0;  // of blocks that gave their room to others (cache.P17)
  std::uint64_t created_ns = 0;
  std::uint64_t instance = 0;  // the same in all parts of the file
  bool in_use = false;
  bool same_boot = true;
  bool file_changed = false;  // by somebody else, as far as this part alone can tell (cache.P15)
  Status fault;               // why it can't be read
};
Result<std::vector<FoundPart>> list_parts(const std::string& directory);

struct PartPlace {
  std::string directory;
  std::string file;  // of the part
};

struct RecoverOptions {
  // A file that was committed with a pool goes back to the pool's newest version first; without
  // one it keeps what was written since.
  std::optional<std::uint64_t> version;
  bool overwrite = false;  // also a file that somebody else changed
  // Another file that gets what the cached file would have, and is made for that; or the name that
  // the cached file has now. Empty: the cached file, under the name that it had.
  std::string to;
};

// Writes what was left behind to the cached file and removes the parts, which are of one file and
// one instance. Code::busy if one is in use, Code::foreign if somebody else changed the file
// (cache.P15): nothing is changed then.
Result<WriteBackTally> recover_parts(const std::vector<PartPlace>& places,
                                     const RecoverOptions& options);
// Removes it as it is.
Status discard_part(const std::string& directory, const std::string& file);

// Where a node keeps its parts if the user says nothing: a directory of this user in /dev/shm.
std::string default_part_directory();
std::string part_file_path(const std::string& directory, const std::string& path);
// Its name in that directory.
std::string part_file_name(const std::string& path);

}  // namespace perdure
