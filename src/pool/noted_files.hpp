// SPDX-License-Identifier: BSD-3-Clause
//
// Noted files: text files, or others that only grow, which the program itself writes. Each version
// notes how long they are, and a restart cuts them back to that, so that no line stands twice and
// none is missing.
//
// Invariants
//   pool.N1  What a version notes is durable before the version is: note() is called when the
//       contents of the version are fixed, make_durable() before its state word is stored.
//   pool.N2  Nothing is cut before this rank's slots say, durably, that the version which notes the
//       length is its newest. No restart finds a newer one then, as every rank must have it
//       (recover.cpp). check() comes before.
//   pool.N3  Nothing is cut that is not the file that was noted: it has at least as many bytes, and
//       those before the end that was noted have their checksum. A file that was noted empty is
//       known by its directory.
//   pool.N4  A version that knows nothing of a file (it was named later) has it as long as it was
//       when it was named first, by whichever rank. That is in a file of its own beside the
//       rank's, durably before the program can go on, because no version says it.
//   pool.N5  A file is one rank's: it is locked.
//
// Lines that are in a buffer of the program are neither in the file nor noted. So buffers are
// flushed first: streams of C here, others by the binding of their language.
//
// Threads: as the pool. Failure: a file that can't be noted or made durable fails the commit, and
// one whose data the medium lost fails all that follow.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_handle.hpp"
#include "base/files.hpp"
#include "base/status.hpp"
#include "pmem/region.hpp"
#include "pool/catalogue.hpp"
#include "pool/file_note.hpp"

namespace perdure {

// One of them. It may be missing until the program makes it.
class NotedFile {
 public:
  // `stream`: what the program writes it through; null: any, or none.
  static Result<NotedFile> open(const std::string& path, std::FILE* stream);

  const std::string& path() const { return path_; }
  const std::string& place() const { return place_; }
  const std::string& full_path() const { return full_path_; }
  std::FILE* stream() const { return stream_; }
  Status set_stream(std::FILE* stream);

  // What it is now. Opened anew if its name leads to another file, as after a rotation.
  Result<FileNote> measure();
  Status make_durable();
  // pool.N3, and that no descriptor of this process would write beyond its new end. `whose`: the
  // version.
  Status check(const FileNote& note, const std::string& whose);
  Status cut(const FileNote& note);

 private:
  NotedFile() = default;
  Status find();
  Result<std::uint64_t> size() const;
  Status check_writers(std::uint64_t bytes) const;

  std::string path_;
  std::string place_;
  std::string full_path_;
  std::FILE* stream_ = nullptr;
  FileHandle handle_;                // none: there is no such file
  bool is_named_ = true;             // durably
  std::uint64_t durable_bytes_ = 0;  // of what is open
  Status lost_;
};

class NotedFiles {
 public:
  // The next version, which outlives this.
  explicit NotedFiles(Catalogue& next) : next_(next) {}
  // Where the first lengths are kept; without it nowhere.
  void set_place(const std::string& directory, std::uint32_t rank, const JobId& job);

  bool empty() const { return files_.empty(); }
  bool has(const std::string& full_path) const;
  bool names(const std::string& path) const;
  // Of this path, if it was named.
  NotedFile* find(const std::string& path);
  void add(NotedFile file) { files_.push_back(std::move(file)); }
  // Of the one that was added last: it becomes what it was at the version before the next one.
  Status bring_back_newest();
  // And its note part of the next version, which may have one. True: only since then.
  Result<bool> note_newest();
  void undo_note();
  void drop_newest() { files_.pop_back(); }

  // All of them, as they are now, in the next version. Local.
  Status note();
  Status make_durable();
  // They can become what they were at `version`. Local.
  Status check(const Catalogue& version);
  Status cut(const Catalogue& version);

 private:
  Status check_one(NotedFile& file, const Catalogue& held, std::uint64_t number) const;
  Status cut_one(NotedFile& file, const Catalogue& held) const;
  Status flush() const;
  void put(const FileNote& note);
  Result<std::optional<FileNote>> first_note(const NotedFile& file) const;
  Result<std::optional<FileNote>> read_first_note(const Directory& directory,
                                                  const std::string& name,
                                                  const NotedFile& of) const;
  Status keep_first_note(const FileNote& note) const;

  Catalogue& next_;
  std::vector<NotedFile> files_;
  std::string directory_;
  std::uint32_t rank_ = 0;
  JobId job_;
};

// Whether a file of a pool has this name, which keeps the first length of another.
bool is_first_note_file(std::string_view name);

}  // namespace perdure
