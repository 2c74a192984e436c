// SPDX-License-Identifier: BSD-3-Clause
//
// Joined files: what is committed with a pool that has levels, and so is in the images of its
// versions.
//
// Invariants
//   levels.K5  A cached file that is committed with the pool comes back with it or not at all. A
//       pool's own version counts only where all parts of its files are on nodes of this job
//       (part_facts.hpp, parts.F2); otherwise it is lost, with the nodes that kept the missing
//       parts. In every image of a version that it belongs to the file is whole: the ranks' images
//       have it among them, up to its last byte, so that it can be brought back whatever the file
//       itself holds (cache/part_share.hpp). An image without a file is one of a version to which
//       the file did not belong, or at which the file has all by itself. Hence, after a restart
//       with parts of a file left behind, or from images that have one, nothing is protected before
//       the file is open again; and opening it is not done before a version with it is whole, where
//       there is redundancy. What this life protected without it is protected again, as a newer
//       image; only where this life committed the version, and has taken it, the file is kept from
//       the next version on that is due.
//
// Threads: the pool's caller; shares() are read by any. Failure: held(), with the name.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "levels/level_file.hpp"
#include "pool/companion.hpp"
#include "pool/image.hpp"

namespace perdure {

class JoinedFiles {
 public:
  // After a restart, before anything joins: a file of the version that the pool is at.
  void expect(const std::string& name) { expected_.insert(name); }
  // The same of all that this image has, of which the pool was made. Code::damaged.
  Status expect_those_of(LevelFile image);
  // Whether some of them have not joined.
  bool are_awaited() const { return !expected_.empty(); }
  // A version is committed without them: says so, once, or "".
  std::string stop_waiting(std::uint64_t version);

  // Whether the newest version is to be protected once nothing is awaited any more.
  bool is_unprotected() const { return unprotected_; }
  void set_unprotected(bool unprotected) { unprotected_ = unprotected; }

  void join(Companion& companion);
  // False: it had not.
  bool leave(const Companion& companion) { return std::erase(companions_, &companion) > 0; }
  // Of this rank, for an image of a version that is committed.
  std::vector<ImageShare> shares(std::uint64_t version) const;
  // VersionTaker::held().
  Result<std::optional<HeldShare>> held(const std::string& pool, const std::string& name,
                                        std::uint64_t version) const;

 private:
  std::set<std::string> expected_;
  bool unprotected_ = false;
  std::vector<Companion*> companions_;
  std::optional<LevelFile> held_;  // this rank's of the images that the pool was made of
};

}  // namespace perdure
