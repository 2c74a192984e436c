// SPDX-License-Identifier: BSD-3-Clause
//
// A part whose file is committed with a pool (P8, P9).
#include <algorithm>
#include <string>

#include "cache/backoff.hpp"
#include "cache/cache_part.hpp"

namespace perdure {

// The version after which what changes now comes.
Result<std::uint64_t> CachePart::base_version() {
  Backoff backoff;
  while (true) {
    const std::uint64_t seen = word(state_->base_version).load(std::memory_order_acquire);
    if (owner_of(seen) == 0) return (seen >> owner_bits) - 1;
    if (backoff.wait()) PERDURE_TRY(peers_.clean_up_if_dead(owner_of(seen)));
  }
}

// The first process that comes with a version notes how large the file was; the others wait until
// it has, as they may make it larger.
Result<std::uint64_t> CachePart::set_base_version(std::uint64_t version, std::uint64_t file_bytes) {
  auto base = word(state_->base_version);
  const std::uint64_t wanted = (version + 1) << owner_bits;
  Backoff backoff;
  std::uint64_t seen = base.load(std::memory_order_acquire);
  while (true) {
    if (owner_of(seen) == 0 && seen >= wanted) return noted_size(version);
    if (owner_of(seen) == 0 && base.compare_exchange_strong(seen, seen | peers_.number())) break;
    if (owner_of(seen) != 0 && backoff.wait()) PERDURE_TRY(peers_.clean_up_if_dead(owner_of(seen)));
    seen = base.load(std::memory_order_acquire);
  }
  bytes_.grow_size(file_bytes);
  const Status noted = note_size(version);
  // After a failure the next that comes tries again.
  base.store(noted.ok() ? wanted : seen, std::memory_order_release);
  PERDURE_TRY(noted);
  return noted_size(version);
}

std::uint64_t CachePart::noted_size(std::uint64_t version) const {
  for (unsigned place = 0; place < 2; ++place) {
    if (word(state_->sized_versions[place]).load() == version + 1) return state_->sizes[place];
  }
  return bytes_.size_bytes();
}

// In the place of the older of the two that are noted. The size is there before the version says
// what it is the size of, also after a power failure.
Status CachePart::note_size(std::uint64_t version) {
  const unsigned place = state_->sized_versions[0] <= state_->sized_versions[1] ? 0 : 1;
  const std::uint64_t size_at = bytes_.offset_of(&state_->sizes[place]);
  const std::uint64_t version_at = bytes_.offset_of(&state_->sized_versions[place]);
  device_->store_word(size_at, bytes_.size_bytes());
  device_->flush(size_at, sizeof(std::uint64_t));
  PERDURE_TRY(device_->fence());
  device_->store_word(version_at, version + 1);
  device_->flush(version_at, sizeof(std::uint64_t));
  device_->flush(bytes_.offset_of(&state_->base_version), sizeof(std::uint64_t));
  return device_->fence();
}

Status CachePart::set_prepared(std::uint64_t version) {
  const std::uint64_t at = bytes_.offset_of(&state_->prepared);
  device_->store_word(at, version);
  device_->flush(at, sizeof(std::uint64_t));
  PERDURE_TRY(device_->fence());
  return device_->check();  // a part that was removed would take the commit with it
}

Status CachePart::set_in_use(bool in_use) {
  const std::uint64_t at = bytes_.offset_of(&state_->in_use);
  device_->store_word(at, in_use ? 1 : 0);
  device_->flush(at, sizeof(std::uint64_t));
  return device_->fence();
}

// Of what is not present the cached file has the bytes, up to where it has any.
Status CachePart::read_now(std::uint64_t block, std::uint64_t within, std::span<std::byte> out) {
  PERDURE_TRY(table_.touched_of(header().blocks).status());
  if (table_.is_present(block)) {
    copy_from_shared(out.data(), bytes_.of(block) + within, out.size());
    return Status::success();
  }
  const std::uint64_t visible = bytes_.visible_in(block);
  const std::uint64_t count = visible <= within ? 0 : std::min(visible - within, out.size());
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(count), out.end(), std::byte{0});
  if (count == 0) return Status::success();
  const std::uint64_t begin = bytes_.file_offset(block);
  return backing_->read(begin + within, out.data(), count);
}

// P13.
Status CachePart::read_at(std::uint64_t version, std::uint64_t block, std::uint64_t within,
                          std::span<std::byte> out) {
  const Status over(Code::wrong_state, std::string(header().path) + " is no longer at version " +
                                           std::to_string(version) + " of its pool");
  if (!is_base(version) || undo_ == nullptr) return over;
  PERDURE_TRY(read_now(block, within, out));
  load_later_than_shared();
  PERDURE_TRY_ASSIGN(const std::uint64_t entries, table_.touched_of(header().blocks));
  if (block >= entries) return is_base(version) ? Status::success() : over;
  const bool any = table_.undo_or_uses(block).load(std::memory_order_acquire) != 0;
  const std::uint64_t grain_bytes = bytes_.grain_bytes();
  const std::uint64_t end = within + out.size();
  for (std::uint64_t grain = within >> bytes_.grain_shift();
       any && grain << bytes_.grain_shift() < end; ++grain) {
    if (!undo_->kept(block, static_cast<unsigned>(grain), version)) continue;
    PERDURE_TRY_ASSIGN(const std::byte* kept,
                       undo_->held(block, static_cast<unsigned>(grain), version));
    if (kept == nullptr) return {Code::damaged, std::string(header().path) + ": its undo log is"};
    const std::uint64_t begin = grain << bytes_.grain_shift();
    const std::uint64_t from = std::max(begin, within);
    const std::uint64_t to = std::min(begin + grain_bytes, end);
    std::memcpy(out.data() + (from - within), kept + (from - begin), to - from);
  }
  return is_base(version) ? Status::success() : over;
}

// P8.
Status CachePart::before_change(std::uint64_t block, std::uint64_t within, std::uint64_t bytes) {
  auto has_room = table_.undo_or_uses(block);
  if (has_room.load(std::memory_order_acquire) == 0) {
    PERDURE_TRY(no_room(undo_->prepare_block(block)));
    has_room.store(1, std::memory_order_release);
    table_.flush(block);
    PERDURE_TRY(device_->fence());
  }
  PERDURE_TRY_ASSIGN(auto version, base_version());
  const std::uint64_t last = (within + bytes - 1) >> bytes_.grain_shift();
  for (std::uint64_t grain = within >> bytes_.grain_shift(); grain <= last; ++grain) {
    PERDURE_TRY(keep_grain(block, static_cast<unsigned>(grain), version));
  }
  store_later_to_shared();  // P13
  return Status::success();
}

Status CachePart::keep_grain(std::uint64_t block, unsigned grain, std::uint64_t version) {
  const std::byte* bytes = bytes_.of(block) + (std::uint64_t{grain} << bytes_.grain_shift());
  Backoff backoff;
  while (true) {
    const auto keeper = undo_->keep(block, grain, version, bytes, peers_.number());
    PERDURE_TRY(no_room(keeper.status()));
    if (keeper.value() == 0) return Status::success();
    if (backoff.wait()) PERDURE_TRY(peers_.clean_up_if_dead(keeper.value()));
  }
}

// What did not change since the newest version is durable already.
void CachePart::drop_unchanged(std::uint64_t block, std::uint64_t version, Grains& grains) const {
  const bool any = table_.undo_or_uses(block).load(std::memory_order_acquire) != 0;
  for (unsigned grain = 0; grain < grains_per_block; ++grain) {
    if (grains.has(grain) && !(any && undo_->kept(block, grain, version))) grains.remove(grain);
  }
}

Status CachePart::roll_back_block(std::uint64_t block, std::uint64_t version) {
  for (unsigned grain = 0; grain < grains_per_block; ++grain) {
    auto held = undo_->held(block, grain, version);
    if (!held.ok()) {
      return {held.status().code(), std::string(header().path) + ": " + held.status().message()};
    }
    if (held.value() == nullptr) continue;
    const std::uint64_t within = std::uint64_t{grain} << bytes_.grain_shift();
    device_->copy(bytes_.offset_of(bytes_.of(block)) + within, held.value(), bytes_.grain_bytes());
    table_.mark_kept(block, Grains::only(grain));
  }
  table_.flush(block);
  return Status::success();
}

// Anything else is a version that knows nothing of what the part holds.
Status CachePart::check_goes_back(const PoolVersion& version) const {
  const PartFact part = fact();
  if (holds_version(part, version)) return Status::success();
  return {Code::wrong_state,
          std::string(header().path) + " was committed with version " +
              std::to_string(part.noted - 1) + " of the pool " + header().pool +
              ", which is at version " + std::to_string(version.version) +
              " now: it was committed without the file, or taken back. Open the file before the "
              "first commit after a restart. `perdure cache recover --as-it-is` keeps what the "
              "part holds, `perdure cache discard` what the file does"};
}

// May be cut short and begun anew: the undo log stays as it is. The bytes are there before the kept
// bits are durable, because of the fence between; then the size, without which recovery would write
// what was appended since.
Status CachePart::roll_back(const PoolVersion& to) {
  PERDURE_TRY(check_goes_back(to));
  const std::uint64_t version = to.version;
  journal_.forget_all();
  for (std::uint64_t block = table_.next(0); block < header().blocks;
       block = table_.next(block + 1)) {
    if (table_.undo_or_uses(block).load() != 0) PERDURE_TRY(roll_back_block(block, version));
  }
  PERDURE_TRY(device_->fence());
  for (unsigned place = 0; place < 2; ++place) {
    if (state_->sized_versions[place] != version + 1) continue;
    device_->store_word(bytes_.offset_of(&state_->size_bytes), state_->sizes[place]);
    device_->flush(header().state_offset, sizeof(std::uint64_t));
    PERDURE_TRY(device_->fence());
    // Node 0 knows how large the file was.
    if (header().node != 0) continue;
    PERDURE_TRY_ASSIGN(auto size, backing_->size_bytes());
    if (size > state_->sizes[place]) {
      PERDURE_TRY(backing_->set_size(state_->sizes[place]));
    }
  }
  return Status::success();
}

}  // namespace perdure
