// A part whose file is committed with a pool (P8, P9).
#include <string>

#include "cache/cache_part.hpp"
#include "cache/patience.hpp"

namespace perdure {

// The version after which what changes now comes.
std::uint64_t CachePart::epoch() const {
  Patience patience;
  while (true) {
    const std::uint64_t seen = word(state_->epoch).load(std::memory_order_acquire);
    if (seen % 2 == 0) return seen / 2 - 1;
    patience.wait();
  }
}

// The first process that comes with a version notes how large the file was; the others wait until
// it has, as they may make it larger.
Status CachePart::set_epoch(std::uint64_t version) {
  auto epoch = word(state_->epoch);
  const std::uint64_t wanted = 2 * version + 2;
  Patience patience;
  while (true) {
    std::uint64_t seen = epoch.load(std::memory_order_acquire);
    if (seen % 2 == 0 && seen >= wanted) return Status::success();
    if (seen % 2 != 0) {
      patience.wait();
      continue;
    }
    if (epoch.compare_exchange_strong(seen, wanted - 1)) break;
  }
  // In the place of the older of the two that are noted.
  const unsigned place = state_->sized_epochs[0] <= state_->sized_epochs[1] ? 0 : 1;
  state_->sizes[place] = size_bytes();
  state_->sized_epochs[place] = version;
  device_->flush(header_.state_offset, sizeof(PartStateFormat));
  const Status durable = device_->fence();
  epoch.store(wanted, std::memory_order_release);
  return durable;
}

// P8.
Status CachePart::before_change(std::uint64_t block, std::uint64_t within, std::uint64_t bytes) {
  BlockFormat& entry = table_[block];
  if (word(entry.undo).load(std::memory_order_acquire) == 0) {
    PERDURE_TRY(undo_->prepare_block(block));
    word(entry.undo).store(1, std::memory_order_release);
    device_->flush(device_offset(&entry), sizeof entry);
    PERDURE_TRY(device_->fence());
  }
  const std::uint64_t version = epoch();
  const std::uint64_t last = (within + bytes - 1) >> grain_shift_;
  for (std::uint64_t grain = within >> grain_shift_; grain <= last; ++grain) {
    PERDURE_TRY(undo_->keep(block, static_cast<unsigned>(grain), version,
                            bytes_of(block) + (grain << grain_shift_)));
  }
  return Status::success();
}

// What did not change since the newest version is durable already.
void CachePart::drop_unchanged(std::uint64_t block, Grains& grains) const {
  const bool any = word(table_[block].undo).load(std::memory_order_acquire) != 0;
  const std::uint64_t version = epoch();
  for (unsigned grain = 0; grain < grains_per_block; ++grain) {
    if (!grains.has(grain) || (any && undo_->kept(block, grain, version))) continue;
    grains.bits[grain / 64] &= ~(std::uint64_t{1} << (grain % 64));
  }
}

Status CachePart::roll_back_block(std::uint64_t block, std::uint64_t version) {
  BlockFormat& entry = table_[block];
  for (unsigned grain = 0; grain < grains_per_block; ++grain) {
    auto held = undo_->held(block, grain, version);
    if (!held.ok()) {
      return {held.status().code(), std::string(header_.path) + ": " + held.status().message()};
    }
    if (held.value() == nullptr) continue;
    const std::uint64_t within = std::uint64_t{grain} << grain_shift_;
    device_->copy(device_offset(bytes_of(block)) + within, held.value(),
                  std::uint64_t{1} << grain_shift_);
    entry.kept[grain / 64] |= std::uint64_t{1} << (grain % 64);
  }
  device_->flush(device_offset(&entry), sizeof entry);
  return Status::success();
}

// May be cut short and begun anew: the undo log stays as it is. The bytes are there before the kept
// bits are durable, because of the fence between; then the size, without which recovery would write
// what was appended since.
Status CachePart::roll_back(std::uint64_t version) {
  for (std::uint64_t i = 0; i < header_.journal_slots; ++i) {
    if (journal_[i].length == 0) continue;
    device_->store_word(device_offset(&journal_[i].length), 0);
    device_->flush(device_offset(&journal_[i].length), sizeof(std::uint64_t));
  }
  for (std::uint64_t block = 0; block < header_.blocks; ++block) {
    if (table_[block].undo != 0) PERDURE_TRY(roll_back_block(block, version));
  }
  PERDURE_TRY(device_->fence());
  for (unsigned place = 0; place < 2; ++place) {
    if (state_->epoch == 0 || state_->sized_epochs[place] != version) continue;
    device_->store_word(device_offset(&state_->size_bytes), state_->sizes[place]);
    device_->flush(header_.state_offset, sizeof(std::uint64_t));
    PERDURE_TRY(device_->fence());
    // Node 0 knows how large the file was.
    if (header_.node != 0) continue;
    auto size = backing_->size_bytes();
    if (!size.ok()) return size.status();
    if (size.value() > state_->sizes[place]) {
      PERDURE_TRY(backing_->set_size(state_->sizes[place]));
    }
  }
  return Status::success();
}

}  // namespace perdure
