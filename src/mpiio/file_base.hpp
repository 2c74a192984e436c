// SPDX-License-Identifier: BSD-3-Clause
//
// File base: the version of a pool that a cached file goes back to, with which it is committed.
//
// Invariants
//   mpiio.V1  Without a failure all parts that this process reaches go back to version(), at which
//       the file had bytes(). With one, nothing more of the file is changed here: it could not be
//       undone.
//   mpiio.V2  The pool knows the file from join() until leave() or the end of the pool, whichever
//       comes first.
//
// Threads: one at a time; version() and bytes() are read by any between two commits. Failure: a
// Status; that of a commit stays until a later one succeeds.
#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "cache/part_access.hpp"
#include "pool/companion.hpp"
#include "pool/pool.hpp"

namespace perdure {

class FileBase {
 public:
  // `kept`: levels keep the file with the pool's versions.
  Status join(Pool& pool, Companion& file, std::uint64_t file_bytes, bool kept) {
    version_ = pool.status().version;
    bytes_ = file_bytes;
    kept_ = kept;
    PERDURE_TRY(pool.add_companion(file, kept));
    pool_ = &pool;
    return Status::success();
  }
  void leave(Companion& file) {
    if (pool_ != nullptr) pool_->remove_companion(file);
    pool_ = nullptr;
  }
  void pool_closed() { pool_ = nullptr; }

  const Pool* pool() const { return pool_; }  // null: it is committed with none
  bool is_kept() const { return kept_; }
  std::uint64_t bytes() const { return bytes_; }
  const Status& failure() const { return failure_; }

  // The pool's version is this one now. Node 0's part says how large the file was, which the others
  // learn.
  void begin(std::uint64_t version) { version_ = version; }
  Status ask(PartAccess& first) {
    PERDURE_TRY_ASSIGN(bytes_, first.set_base_version(version_, bytes_));
    return Status::success();
  }
  Status tell(PartAccess& part) const { return part.set_base_version(version_, bytes_).status(); }
  void end(const Status& status) { failure_ = status; }

 private:
  Pool* pool_ = nullptr;
  std::uint64_t version_ = 0;
  std::uint64_t bytes_ = 0;
  bool kept_ = false;
  Status failure_;
};

}  // namespace perdure
