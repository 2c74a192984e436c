// SPDX-License-Identifier: BSD-3-Clause
//
// Open place: where a restart looks for the pool that is open, and whether it would find it.
//
// Its directory may have another name by now, or another copy of the pool may be in its place; or
// the job record, without which a directory holds no pool, was removed.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>

#include "base/files.hpp"
#include "base/status.hpp"

namespace perdure {

class OpenPlace {
 public:
  // Of a pool that was opened as a directory; `file` is this rank's. Whose they are was looked at
  // when it was opened.
  void set(const std::string& directory, const std::string& file);
  const std::string& directory() const { return directory_; }  // "": it was not

  // Code::io_error: a restart would not find what is open. A path that this process may not follow
  // any more says nothing. It is followed at most once in a millisecond, as that would take as long
  // as half of a small commit.
  Status check(std::uint64_t now_ns);

 private:
  std::string directory_;
  FileHandle record_;
  std::string file_;  // "": nothing is known of it
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  std::uint64_t seen_ns_ = 0;
};

}  // namespace perdure
