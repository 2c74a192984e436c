// SPDX-License-Identifier: BSD-3-Clause
//
// The size of a cached file, where a program sets it.
#include <array>

#include "base/agreement.hpp"
#include "mpiio/cached_file.hpp"

namespace perdure {

// If the first rank can do it aside, there is no part on this node, and it is done.
Result<bool> CachedFile::set_size(MpiGroup& group, std::uint64_t bytes) {
  PERDURE_TRY(agree(group, others_.drain()));  // and all have ended what came before
  bool done = false;
  Status status;
  if (group.rank() == 0) {
    auto aside = do_aside([&](const BackingFile& file) { return file.set_size(bytes); });
    status = aside.status();
    done = aside.ok() && aside.value();
  }
  if (!is_aside() && status.ok()) status = part().changes().begin();
  for (std::uint32_t node = 0; group.rank() == 0 && !done && node < nodes() && status.ok();
       ++node) {
    auto part_there = at(node);
    status = part_there.ok() ? part_there.value()->set_size(bytes) : part_there.status();
  }
  known_size_.store(0, std::memory_order_relaxed);
  std::array<std::uint64_t, 1> words = {done ? 1U : 0U};
  status = agree_max(group, status, words);
  if (!is_aside()) {
    if (!status.ok() || words[0] != 0) (void)part().changes().end();  // report the first failure
    if (words[0] == 0) (void)part().changes().note();
  }
  PERDURE_TRY(status);
  return words[0] != 0;
}

// Some rank has set the size when all have come back from doing so.
Status CachedFile::end_set_size(MpiGroup& group) {
  PERDURE_TRY(agree(group, Status::success()));
  return is_aside() ? Status::success() : part().changes().end();
}

// cache.P14 of change_record.hpp.
Status CachedFile::allocate(std::uint64_t bytes) {
  (void)part().changes().note();
  const Status allocated = backing_.allocate(bytes);
  const Status ended = part().changes().end();
  return allocated.ok() ? ended : allocated;
}

Status CachedFile::preallocate(MpiGroup& group, std::uint64_t bytes) {
  std::array<std::uint64_t, 2> seen = {bytes, ~bytes};
  PERDURE_TRY(agree_max(group, Status::success(), seen));
  if (seen[0] != bytes || seen[1] != ~bytes) {
    return Status(Code::invalid_argument, path(),
                  ": the ranks ask for different sizes; give all of them the same");
  }
  Status status;
  if (group.rank() == 0) {
    auto aside = do_aside([&](const BackingFile& file) { return file.allocate(bytes); });
    status = aside.status();
    if (aside.ok() && !aside.value()) {
      status = part().changes().begin();
      if (status.ok()) status = allocate(bytes);
      if (status.ok()) status = grow_size(bytes);
    }
  }
  return agree(group, status);
}

}  // namespace perdure
