// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the cached file can have been left by the job, as the bytes of the part say (P15).
#include <algorithm>
#include <cstring>
#include <vector>

#include "cache/cache_part.hpp"

namespace perdure {

// Grains of which the cached file has the same bytes: read from it and not written since, or
// handed to it. In a group a grain that changes is kept first (P8), and a recovery that was cut
// short may have put it back here, or not.
Grains CachePart::shared_with_file(std::uint64_t block) const {
  if (table_.kind_alone(block) != BlockState::present) return {};
  const bool handing = table_.claimed_by(block) != 0;
  const Grains grains =
      ~(handing ? table_.dirty(block) | table_.leaving(block) : table_.dirty(block));
  return grains & ~versions_.kept(block, versions_.base_alone(), grains);
}

// Words of a range of the file that differ from those here, without those that a write which was
// under way may have changed.
std::uint64_t CachePart::differing_words(std::uint64_t offset, const std::byte* here,
                                         const std::byte* there, std::uint64_t bytes) const {
  if (std::memcmp(here, there, bytes) == 0) return 0;
  std::uint64_t differing = 0;
  for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t run = std::min<std::uint64_t>(sizeof(std::uint64_t), bytes - at);
    if (std::memcmp(here + at, there + at, run) == 0) continue;
    if (!journal_.may_be_writing(offset + at, run)) ++differing;
  }
  return differing;
}

// P15.
Result<bool> CachePart::contradicts_file() const {
  std::uint64_t owners = 0;
  for (const OwnerFormat& owner : state_->owners) owners += owner.process != 0 ? 1 : 0;
  const std::uint64_t excused = std::max<std::uint64_t>(owners, 1);
  const std::uint64_t grain_bytes = bytes_.grain_bytes();
  std::vector<std::byte> there(grain_bytes);
  std::uint64_t differing = 0;
  const std::uint64_t blocks = bytes_.blocks_in_use();
  const std::uint64_t size = bytes_.size_bytes();
  for (std::uint64_t block = table_.next(0); block < blocks; block = table_.next(block + 1)) {
    const Grains grains = shared_with_file(block);
    const std::uint64_t begin = bytes_.file_offset(block);
    for (unsigned grain = 0; grain < grains_per_block && begin < size; ++grain) {
      const std::uint64_t at = begin + (std::uint64_t{grain} << bytes_.grain_shift());
      if (!grains.has(grain) || at >= size) continue;
      const std::uint64_t bytes = std::min(grain_bytes, size - at);
      PERDURE_TRY(backing_->read(at, there.data(), bytes));
      differing += differing_words(at, bytes_.of(block) + (at - begin), there.data(), bytes);
      if (differing > excused) return true;
    }
  }
  return false;
}

}  // namespace perdure
