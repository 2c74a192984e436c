// SPDX-License-Identifier: BSD-3-Clause
#include "cache/undo_log.hpp"

#include <cstddef>
#include <string>

#include "base/checksum.hpp"

namespace perdure {
namespace {

std::uint64_t checksum_of(std::uint64_t version, const std::byte* bytes, std::uint64_t count) {
  return crc64(bytes, count, crc64(&version, sizeof version)) | 1;
}

}  // namespace

std::uint64_t UndoGeometry::bytes_offset() const {
  const std::uint64_t slots = blocks * grains_per_block * sizeof(UndoFormat);
  const std::uint64_t alignment = block_bytes < 4096 ? 4096 : block_bytes;
  return (slots + alignment - 1) / alignment * alignment;
}

UndoFormat& UndoLog::slot(std::uint64_t block, unsigned grain) const {
  auto* slots = reinterpret_cast<UndoFormat*>(device_->base());
  return slots[block * grains_per_block + grain];
}

bool UndoLog::kept(std::uint64_t block, unsigned grain, std::uint64_t version) const {
  return std::atomic_ref<std::uint64_t>(slot(block, grain).turn).load(std::memory_order_acquire) ==
         (version + 1) << owner_bits;
}

// cache.D1: bytes and checksum, flushed, before the turn says that they are there. The turn itself
// need not be durable, as recovery looks at version and checksum.
Status UndoLog::write_place(std::uint64_t block, unsigned grain, std::uint64_t version,
                            const std::byte* bytes) {
  const std::uint64_t count = geometry_.grain_bytes();
  const std::uint64_t at = geometry_.bytes_offset() + block * geometry_.block_bytes + grain * count;
  PERDURE_TRY(device_->allocate(at, count));
  device_->copy(at, bytes, count);
  UndoFormat& place = slot(block, grain);
  const std::uint64_t words[2] = {version, checksum_of(version, bytes, count)};
  const std::uint64_t words_at =
      (block * grains_per_block + grain) * sizeof(UndoFormat) + offsetof(UndoFormat, version);
  // One fence for both: a slot that names an older version, or whose checksum fails, keeps nothing.
  device_->store(words_at, words, sizeof words);
  device_->flush(words_at, sizeof words);
  PERDURE_TRY(device_->fence());
  std::atomic_ref<std::uint64_t>(place.turn)
      .store((version + 1) << owner_bits, std::memory_order_release);
  return Status::success();
}

Status UndoLog::prepare_block(std::uint64_t block) {
  constexpr std::uint64_t bytes = grains_per_block * sizeof(UndoFormat);
  return device_->allocate(block * bytes, bytes);
}

Result<std::uint32_t> UndoLog::keep(std::uint64_t block, unsigned grain, std::uint64_t version,
                                    const std::byte* bytes, std::uint32_t owner) {
  std::atomic_ref<std::uint64_t> turn(slot(block, grain).turn);
  std::uint64_t seen = turn.load(std::memory_order_acquire);
  while (seen != (version + 1) << owner_bits) {
    if (owner_of(seen) != 0) return owner_of(seen);
    if (!turn.compare_exchange_weak(seen, seen | owner)) continue;
    const Status written = write_place(block, grain, version, bytes);
    if (written.ok()) break;
    turn.store(0, std::memory_order_release);
    return written;
  }
  return std::uint32_t{0};
}

void UndoLog::give_up(std::uint64_t block, std::uint32_t owner) {
  for (unsigned grain = 0; grain < grains_per_block; ++grain) {
    std::atomic_ref<std::uint64_t> turn(slot(block, grain).turn);
    if (owner_of(turn.load(std::memory_order_acquire)) == owner) {
      turn.store(0, std::memory_order_release);
    }
  }
}

Result<const std::byte*> UndoLog::held(std::uint64_t block, unsigned grain,
                                       std::uint64_t version) const {
  const UndoFormat& place = slot(block, grain);
  const std::uint64_t count = geometry_.grain_bytes();
  const std::byte* bytes =
      device_->base() + geometry_.bytes_offset() + block * geometry_.block_bytes + grain * count;
  if (place.checksum == 0 || place.version < version) return static_cast<const std::byte*>(nullptr);
  if (place.checksum != checksum_of(place.version, bytes, count)) {
    return static_cast<const std::byte*>(nullptr);  // cache.D1: the grain was not changed then
  }
  if (place.version == version) return bytes;
  return Status(Code::wrong_state, "the cached file was changed after version ", place.version,
                " of its pool and can't go back to version ", version,
                "; restore the newest version, or discard the part");
}

}  // namespace perdure
