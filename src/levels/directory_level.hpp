// Directory level: copies of versions in a directory, usually of a file system that several nodes
// share.
//
//   LEVEL/POOL/version-N/    the files of the pool, as they were when version N was committed
//   LEVEL/POOL/current       a link to the one that is whole
//
// POOL is the name of the pool's directory. A program restarts from a copy by opening
// LEVEL/POOL/current as its pool, or after it was copied back to where the pool was.
//
// Invariants, of level.hpp
//   L1  `current` leads to a directory that holds the files of all ranks, durable: it is changed
//       by a rename, after all ranks have agreed that theirs are.
//   L2  The copy that it led to before is removed only after all ranks have changed it. Levels may
//       be directories of several nodes: then a crash leaves `current` at N on one and at the copy
//       before on another, and both hold both.
#pragma once

#include <string>

#include "base/group.hpp"
#include "base/io_token.hpp"
#include "levels/level.hpp"

namespace perdure {

class DirectoryLevel final : public Level {
 public:
  // `place` is LEVEL/POOL. The token is held while files are copied; null: none is needed. It and
  // the group outlive the level.
  DirectoryLevel(Group& group, std::string place, IoToken* token)
      : group_(group), place_(std::move(place)), token_(token) {}

  Status keep(const KeptPool& pool, std::uint64_t version) override;
  Status fetch(std::uint64_t version, const std::string& directory) override;
  Result<std::optional<LevelVersion>> newest() const override;

 private:
  Status copy_pool(const std::string& rank_file, const JobRecord& job, const std::string& to,
                   IoKind kind) const;
  Result<LevelVersion> held(std::uint64_t version) const;
  Result<LevelVersion> check_fetch(std::uint64_t version, const std::string& directory) const;
  std::string path_of(std::uint64_t version) const;

  Group& group_;
  std::string place_;
  IoToken* token_;
};

}  // namespace perdure
