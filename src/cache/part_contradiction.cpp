// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_contradiction.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace perdure {
namespace {

// Grains of which the cached file has the same bytes: read from it and not written since, or
// handed to it. In a group a grain that changes is kept first (cache.P8), and a recovery that was
// cut short may have put it back here, or not.
Grains shared_with_file(std::uint64_t block, const BlockTable& table,
                        const PartVersions& versions) {
  if (table.kind_alone(block) != BlockState::present) return {};
  const bool handing = table.claimed_by(block) != 0;
  const Grains grains = ~(handing ? table.unclean(block) : table.dirty(block));
  return grains & ~versions.kept(block, versions.base_alone(), grains);
}

// Words of a range of the file that differ from those here, without those that a write which was
// under way may have changed.
std::uint64_t differing_words(std::uint64_t offset, const std::byte* here, const std::byte* there,
                              std::uint64_t bytes, const PartJournal& journal) {
  if (std::memcmp(here, there, bytes) == 0) return 0;
  std::uint64_t differing = 0;
  for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t run = std::min<std::uint64_t>(sizeof(std::uint64_t), bytes - at);
    if (std::memcmp(here + at, there + at, run) == 0) continue;
    if (!journal.may_be_writing(offset + at, run)) ++differing;
  }
  return differing;
}

}  // namespace

Result<bool> contradicts_part(const PartBytes& bytes, const BlockTable& table,
                              const PartVersions& versions, const PartJournal& journal) {
  std::uint64_t owners = 0;
  for (const OwnerFormat& owner : bytes.state().owners) owners += owner.process != 0 ? 1 : 0;
  const std::uint64_t excused = std::max<std::uint64_t>(owners, 1);
  const std::uint64_t grain_bytes = bytes.grain_bytes();
  std::vector<std::byte> there(grain_bytes);
  std::uint64_t differing = 0;
  const std::uint64_t blocks = bytes.blocks_in_use();
  const std::uint64_t size = bytes.size_bytes();
  for (std::uint64_t block = table.next(0); block < blocks; block = table.next(block + 1)) {
    const Grains grains = shared_with_file(block, table, versions);
    const std::uint64_t begin = bytes.file_offset(block);
    for (unsigned grain = 0; grain < grains_per_block && begin < size; ++grain) {
      const std::uint64_t at = begin + (std::uint64_t{grain} << bytes.grain_shift());
      if (!grains.has(grain) || at >= size) continue;
      const std::uint64_t run = std::min(grain_bytes, size - at);
      PERDURE_TRY(bytes.file()->read(at, there.data(), run));
      differing += differing_words(at, bytes.of(block) + (at - begin), there.data(), run, journal);
      if (differing > excused) return true;
    }
  }
  return false;
}

}  // namespace perdure
