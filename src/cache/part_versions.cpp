// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_versions.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "cache/backoff.hpp"
#include "cache/shared_bytes.hpp"

namespace perdure {

Result<std::uint64_t> PartVersions::base() {
  Backoff backoff;
  while (true) {
    const std::uint64_t seen = word(bytes_.state().base_version).load(std::memory_order_acquire);
    if (owner_of(seen) == 0) return (seen >> owner_bits) - 1;
    if (backoff.wait()) PERDURE_TRY(peers_.clean_up_if_dead(owner_of(seen)));
  }
}

// The first process that comes with a version notes how large the file was; the others wait until
// it has, as they may make it larger.
Result<std::uint64_t> PartVersions::set_base(std::uint64_t version, std::uint64_t file_bytes) {
  auto base = word(bytes_.state().base_version);
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

std::uint64_t PartVersions::noted_size(std::uint64_t version) const {
  for (unsigned place = 0; place < 2; ++place) {
    if (word(bytes_.state().sized_versions[place]).load() == version + 1)
      return bytes_.state().sizes[place];
  }
  return bytes_.size_bytes();
}

// In the place of the older of the two that are noted. The size is there before the version says
// what it is the size of, also after a power failure.
Status PartVersions::note_size(std::uint64_t version) {
  const unsigned place =
      bytes_.state().sized_versions[0] <= bytes_.state().sized_versions[1] ? 0 : 1;
  const std::uint64_t size_at = bytes_.offset_of(&bytes_.state().sizes[place]);
  const std::uint64_t version_at = bytes_.offset_of(&bytes_.state().sized_versions[place]);
  bytes_.device().store_word(size_at, bytes_.size_bytes());
  bytes_.device().flush(size_at, sizeof(std::uint64_t));
  PERDURE_TRY(bytes_.device().fence());
  bytes_.device().store_word(version_at, version + 1);
  bytes_.device().flush(version_at, sizeof(std::uint64_t));
  bytes_.device().flush(bytes_.offset_of(&bytes_.state().base_version), sizeof(std::uint64_t));
  return bytes_.device().fence();
}

Status PartVersions::set_prepared(std::uint64_t version) {
  const std::uint64_t at = bytes_.offset_of(&bytes_.state().prepared);
  bytes_.device().store_word(at, version);
  bytes_.device().flush(at, sizeof(std::uint64_t));
  PERDURE_TRY(bytes_.device().fence());
  return bytes_.device().check();  // a part that was removed would take the commit with it
}

Status PartVersions::set_in_use(bool in_use) {
  const std::uint64_t at = bytes_.offset_of(&bytes_.state().in_use);
  bytes_.device().store_word(at, in_use ? part_in_use : 0);
  bytes_.device().flush(at, sizeof(std::uint64_t));
  return bytes_.device().fence();
}

// Of what is not present the cached file has the bytes, up to where it has any.
Status PartVersions::read_now(std::uint64_t block, std::uint64_t within, std::span<std::byte> out) {
  PERDURE_TRY(table_.touched_of(bytes_.header().blocks).status());
  if (table_.is_present(block)) {
    copy_from_shared(out.data(), bytes_.of(block) + within, out.size());
    return Status::success();
  }
  const std::uint64_t visible = bytes_.visible_in(block);
  const std::uint64_t count = visible <= within ? 0 : std::min(visible - within, out.size());
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(count), out.end(), std::byte{0});
  if (count == 0) return Status::success();
  const std::uint64_t begin = bytes_.file_offset(block);
  return bytes_.file()->read(begin + within, out.data(), count);
}

// cache.P13.
Status PartVersions::read_at(std::uint64_t version, std::uint64_t block, std::uint64_t within,
                             std::span<std::byte> out) {
  Status over(Code::wrong_state, bytes_.header().path, " is no longer at version ", version,
              " of its pool");
  if (!is_base(version) || log_ == nullptr) return over;
  PERDURE_TRY(read_now(block, within, out));
  load_later_than_shared();
  PERDURE_TRY_ASSIGN(const std::uint64_t entries, table_.touched_of(bytes_.header().blocks));
  if (block >= entries) return is_base(version) ? Status::success() : over;
  const bool any = any_kept(block);
  const std::uint64_t grain_bytes = bytes_.grain_bytes();
  const std::uint64_t end = within + out.size();
  for (std::uint64_t grain = within >> bytes_.grain_shift();
       any && grain << bytes_.grain_shift() < end; ++grain) {
    if (!log_->kept(block, static_cast<unsigned>(grain), version)) continue;
    PERDURE_TRY_ASSIGN(const std::byte* kept,
                       log_->held(block, static_cast<unsigned>(grain), version));
    if (kept == nullptr) return Status(Code::damaged, bytes_.header().path, ": its undo log is");
    const std::uint64_t begin = grain << bytes_.grain_shift();
    const std::uint64_t from = std::max(begin, within);
    const std::uint64_t to = std::min(begin + grain_bytes, end);
    std::memcpy(out.data() + (from - within), kept + (from - begin), to - from);
  }
  return is_base(version) ? Status::success() : over;
}

// As nothing of the file may pass through (cache.P16).
Status PartVersions::no_room(const Status& seen) const {
  if (seen.code() != Code::no_space) return seen;
  return Status(Code::no_space, bytes_.header().path, ": no room for more of it on node ",
                bytes_.header().node, "; it is committed with the pool ", bytes_.header().pool,
                ", so nothing may pass through to the file, where it could not be undone. Free "
                "space, choose a larger device, or open it without perdure_cache_pool (",
                seen.message(), ")");
}

// cache.P8. Recovery looks only at blocks that say durably that there is room. A process that finds
// it said, and not that it is durable, makes it durable itself: the one that said it may not have
// fenced yet, or in vain.
Status PartVersions::before_change(std::uint64_t block, std::uint64_t within, std::uint64_t bytes) {
  auto room = table_.undo_or_uses(block);
  if (room.load(std::memory_order_acquire) != undo_room_durable) {
    PERDURE_TRY(no_room(log_->prepare_block(block)));
    room.store(undo_room_said, std::memory_order_release);
    table_.flush(block);
    PERDURE_TRY(bytes_.device().fence());
    room.store(undo_room_durable, std::memory_order_release);
  }
  PERDURE_TRY_ASSIGN(auto version, base());
  const std::uint64_t last = (within + bytes - 1) >> bytes_.grain_shift();
  for (std::uint64_t grain = within >> bytes_.grain_shift(); grain <= last; ++grain) {
    PERDURE_TRY(keep_grain(block, static_cast<unsigned>(grain), version));
  }
  store_later_to_shared();  // cache.P13
  return Status::success();
}

Status PartVersions::keep_grain(std::uint64_t block, unsigned grain, std::uint64_t version) {
  const std::byte* bytes = bytes_.of(block) + (std::uint64_t{grain} << bytes_.grain_shift());
  Backoff backoff;
  while (true) {
    const auto keeper = log_->keep(block, grain, version, bytes, peers_.number());
    PERDURE_TRY(no_room(keeper.status()));
    if (keeper.value() == 0) return Status::success();
    if (backoff.wait()) PERDURE_TRY(peers_.clean_up_if_dead(keeper.value()));
  }
}

Grains PartVersions::kept(std::uint64_t block, std::uint64_t version, const Grains& among) const {
  if (!any_kept(block)) return {};
  Grains grains = among;
  for (unsigned grain = 0; grain < grains_per_block; ++grain) {
    if (grains.has(grain) && !log_->kept(block, grain, version)) grains.remove(grain);
  }
  return grains;
}

Status PartVersions::roll_back_block(std::uint64_t block, std::uint64_t version) {
  for (unsigned grain = 0; grain < grains_per_block; ++grain) {
    auto held = log_->held(block, grain, version);
    if (!held.ok()) {
      return {held.status().code(),
              std::string(bytes_.header().path) + ": " + held.status().message()};
    }
    if (held.value() == nullptr) continue;
    const std::uint64_t within = std::uint64_t{grain} << bytes_.grain_shift();
    bytes_.device().copy(bytes_.offset_of(bytes_.of(block)) + within, held.value(),
                         bytes_.grain_bytes());
    table_.mark_kept(block, Grains::only(grain));
  }
  table_.flush(block);
  return Status::success();
}

// Anything else is a version that knows nothing of what the part holds.
Status PartVersions::check_goes_back(const PoolVersion& version) const {
  const PartFact part = fact_of(bytes_.header(), bytes_.state());
  if (holds_version(part, version)) return Status::success();
  return Status(
      Code::wrong_state, bytes_.header().path, " was committed with version ", part.noted - 1,
      " of the pool ", bytes_.header().pool, ", which is at version ", version.version,
      " now: it was committed without the file, or taken back, or an older start of the job "
      "left this part here. Open the file before the first commit after a restart. "
      "`perdure cache recover --as-it-is` keeps what the part holds, `perdure cache "
      "discard` what the file does");
}

// May be cut short and begun anew: the undo log stays as it is. The bytes are there before the kept
// bits are durable, because of the fence between; then the size, without which recovery would write
// what was appended since.
Status PartVersions::roll_back(std::uint64_t version) {
  for (std::uint64_t block = table_.next(0); block < bytes_.header().blocks;
       block = table_.next(block + 1)) {
    if (table_.undo_or_uses(block).load() != 0) PERDURE_TRY(roll_back_block(block, version));
  }
  PERDURE_TRY(bytes_.device().fence());
  for (unsigned place = 0; place < 2; ++place) {
    if (bytes_.state().sized_versions[place] != version + 1) continue;
    bytes_.device().store_word(bytes_.offset_of(&bytes_.state().size_bytes),
                               bytes_.state().sizes[place]);
    bytes_.flush_size();
    PERDURE_TRY(bytes_.device().fence());
    // Node 0 knows how large the file was.
    if (bytes_.header().node != 0) continue;
    PERDURE_TRY_ASSIGN(auto size, bytes_.file()->size_bytes());
    if (size > bytes_.state().sizes[place]) {
      PERDURE_TRY(bytes_.file()->set_size(bytes_.state().sizes[place]));
    }
  }
  return Status::success();
}

void PartVersions::give_up_base(std::uint32_t number) {
  auto base = word(bytes_.state().base_version);
  const std::uint64_t set = base.load(std::memory_order_acquire);
  if (owner_of(set) == number) base.store(set & ~std::uint64_t{owner_unknown});
}

}  // namespace perdure
