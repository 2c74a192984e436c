// SPDX-License-Identifier: BSD-3-Clause
#include "cache/cache_part.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace perdure {

// The magic number comes last, in one store: a part whose making was cut short has none, and is
// known by that.
Status CachePart::format(Device& device, const PartIdentity& identity, const PartGeometry& geometry,
                         std::uint64_t file_bytes) {
  PERDURE_TRY_ASSIGN(PartHeaderFormat header, make_part_header(identity, geometry));
  PERDURE_TRY(device.allocate(0, header.journal_offset + sizeof(JournalFormat)));
  PartStateFormat state{};
  state.size_bytes = file_bytes;
  state.visible_bytes = file_bytes;
  state.stamps[0] = {identity.file_stamp.size_bytes, identity.file_stamp.modified_ns,
                     identity.file_stamp.changed_ns};
  state.durable = identity.pool_job[0] != 0 ? 1 : 0;
  state.in_use = identity.pool_job[0] != 0 ? part_fresh : 0;
  device.store(header.state_offset, &state, sizeof state);
  header.magic = 0;
  device.store(0, &header, sizeof header);
  // Only what was stored. The rest of the file is new and so zeros.
  device.flush(header.state_offset, sizeof state);
  device.flush(0, sizeof header);
  PERDURE_TRY(device.fence());
  device.store_word(offsetof(PartHeaderFormat, magic), part_magic);
  device.flush(0, sizeof header.magic);
  return device.fence();
}

Result<std::unique_ptr<CachePart>> CachePart::attach(std::unique_ptr<Device> device) {
  PERDURE_TRY_ASSIGN(const PartHeaderFormat header, read_part_header(*device));
  return std::unique_ptr<CachePart>(new CachePart(std::move(device), header));
}

CachePart::CachePart(std::unique_ptr<Device> device, const PartHeaderFormat& header)
    : device_(std::move(device)),
      bytes_(*device_, header),
      state_(&bytes_.state()),
      peers_(state_->owners, [this](std::uint32_t number) { return clean_up_after(number); }),
      table_(*device_, bytes_.header(), peers_),
      users_(*state_),
      journal_(*device_, {reinterpret_cast<JournalFormat*>(device_->base() + header.journal_offset),
                          header.journal_entries}),
      changes_(*device_, header.state_offset, peers_),
      write_back_(bytes_, table_, users_, journal_, changes_),
      versions_(bytes_, table_, peers_),
      room_(bytes_, table_, users_, journal_, versions_),
      evictor_(bytes_, table_, peers_, users_, write_back_),
      pointers_(*state_),
      through_(changes_) {}

CachePart::~CachePart() {
  leave_owners();
}

Status CachePart::join_owners(FileHandle file) {
  PERDURE_TRY(peers_.join(std::move(file)));
  if (!with_pool()) users_.join(peers_.number());
  journal_.join(peers_.number());
  return Status::success();
}

// cache.O1: what is marked with the number first.
void CachePart::leave_owners() {
  journal_.leave();
  users_.leave();
  peers_.leave();
}

Result<bool> CachePart::fill(std::uint64_t offset, std::uint64_t bytes) {
  bool all = true;
  const std::uint64_t end = offset + bytes;
  for (std::uint64_t at = offset >> bytes_.block_shift(); (at << bytes_.block_shift()) < end;
       ++at) {
    const Place place = place_of(layout(), at << bytes_.block_shift());
    if (place.node != node()) continue;
    PERDURE_TRY_ASSIGN(const bool here, room_.make_present(place.block));
    all = all && here;
  }
  return all;
}

// cache.P18. False: the block is to have its room, or is not absent any more.
Result<bool> CachePart::read_absent(std::uint64_t block, std::uint64_t within, std::byte* to,
                                    std::uint64_t bytes) {
  if (table_.is_present(block)) return false;
  PERDURE_TRY_ASSIGN(const bool absent, room_.is_absent(block));
  if (!absent || !evictor_.defers_room(block, bytes)) return false;
  const std::uint64_t visible = bytes_.visible_in(block);
  const std::uint64_t seen = within < visible ? std::min(bytes, visible - within) : 0;
  PERDURE_TRY(through_.read(bytes_.file_offset(block) + within, to, seen));
  if (seen != bytes) std::memset(to + seen, 0, bytes - seen);
  return table_.is_absent(block);
}

// Flat, because processors mispredict the returns that follow a call of the system: 30 ns of a read
// that passes through.
[[gnu::flatten]] Status CachePart::read_block(std::uint64_t block, std::uint64_t within,
                                              std::byte* to, std::uint64_t bytes) {
  PERDURE_TRY_ASSIGN(const bool done, read_absent(block, within, to, bytes));
  if (done) return Status::success();
  bool passed = false;
  const Status read = room_.with_block(block, [&](bool here) {
    passed = !here;
    if (!here) return through_.read(bytes_.file_offset(block) + within, to, bytes);
    copy_from_shared(to, bytes_.of(block) + within, bytes);
    return Status::success();
  });
  if (read.ok() && passed) evictor_.pay(block, bytes);
  return read;
}

Status CachePart::read(std::uint64_t offset, void* to, std::uint64_t bytes) {
  auto* place = static_cast<std::byte*>(to);
  while (bytes != 0) {
    const std::uint64_t block = place_of(layout(), offset).block;
    const std::uint64_t within = offset & (layout().block_bytes - 1);
    const std::uint64_t run = std::min(bytes, layout().block_bytes - within);
    PERDURE_TRY(read_block(block, within, place, run));
    place += run;
    offset += run;
    bytes -= run;
  }
  return Status::success();
}

Result<const std::byte*> CachePart::view(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t within = offset & (layout().block_bytes - 1);
  PERDURE_ASSERT(within + bytes <= layout().block_bytes);
  const std::uint64_t block = place_of(layout(), offset).block;
  PERDURE_TRY_ASSIGN(const bool here, room_.make_present(block));
  if (here) return static_cast<const std::byte*>(bytes_.of(block) + within);
  return Status(Code::wrong_state, header().path, ": a block of it passes through");
}

// cache.P2 (b) and (c).
void CachePart::finish_write(std::uint64_t block, std::uint64_t within, std::uint64_t bytes) {
  bytes_.grow_size(bytes_.file_offset(block) + within + bytes);
  const unsigned shift = bytes_.grain_shift();
  if ((within ^ (within + bytes - 1)) >> shift == 0) {
    table_.mark_dirty(block, static_cast<unsigned>(within >> shift));
  } else {
    table_.mark_dirty(block, bytes_.grains_of(within, bytes));
  }
}

// cache.P2 (a) to (c) in a block that is present.
Status CachePart::write_into(std::uint64_t block, std::uint64_t within, const std::byte* from,
                             std::uint64_t bytes) {
  if (versions_.has_log()) PERDURE_TRY(versions_.before_change(block, within, bytes));
  copy_to_shared(bytes_.of(block) + within, from, bytes);
  finish_write(block, within, bytes);
  return Status::success();
}

// cache.P15: a present block's bytes differ from the file's before its grains are marked.
Status CachePart::write_large(std::uint64_t block, std::uint64_t within, const std::byte* from,
                              std::uint64_t bytes) {
  const std::uint64_t begin = bytes_.file_offset(block);
  const PartJournal::Announcement announced(journal_.entry_of_thread(), begin + within, bytes);
  return write_into(block, within, from, bytes);
}

// A write of all that the cached file has to say of the block need not read it. False: nothing was
// done.
Result<bool> CachePart::write_whole(std::uint64_t block, const std::byte* from, std::uint64_t bytes,
                                    Acknowledge when) {
  PERDURE_TRY_ASSIGN(const bool taken, room_.take_unread(block, bytes));
  if (!taken) return false;
  const PartUsers::Mark mark(users_, block);
  const PartJournal::Announcement announced(journal_.entry_of_thread(), bytes_.file_offset(block),
                                            bytes);
  std::memcpy(bytes_.of(block), from, bytes);
  table_.give(block, BlockState::present);
  finish_write(block, 0, bytes);
  if (when == Acknowledge::durable) PERDURE_TRY(keep(block, 0, bytes));
  return true;
}

// Of more than a small write.
Status CachePart::write_block(std::uint64_t block, std::uint64_t within, const std::byte* from,
                              std::uint64_t bytes, Acknowledge when) {
  if (!table_.is_present(block) && !versions_.has_log() && within == 0) {
    PERDURE_TRY_ASSIGN(const bool whole, write_whole(block, from, bytes, when));
    if (whole) return Status::success();
  }
  bool passed = false;
  const Status done = room_.with_block(block, [&](bool here) -> Status {
    passed = !here;
    if (!here) return write_through(block, within, from, bytes, when);
    PERDURE_TRY(write_large(block, within, from, bytes));
    return when == Acknowledge::durable ? keep(block, within, bytes) : Status::success();
  });
  if (done.ok() && passed) evictor_.pay(block, bytes);
  return done;
}

// The file is larger before the part says so: nobody reads there sooner.
Status CachePart::write_through(std::uint64_t block, std::uint64_t within, const std::byte* from,
                                std::uint64_t bytes, Acknowledge when) {
  const std::uint64_t at = bytes_.file_offset(block) + within;
  PERDURE_TRY(through_.write(at, from, bytes, when == Acknowledge::durable));
  bytes_.grow_size(at + bytes);
  return Status::success();
}

// cache.P2, and cache.P6 (2) and (3); or cache.P16.
Status CachePart::write_run(bool here, std::uint64_t block, std::uint64_t within,
                            const std::byte* from, std::uint64_t bytes, Acknowledge when) {
  if (!here) return write_through(block, within, from, bytes, when);
  PERDURE_TRY(write_into(block, within, from, bytes));
  return when == Acknowledge::durable ? keep(block, within, bytes) : Status::success();
}

Status CachePart::declare(PartJournal::Intention& intention, Acknowledge when) {
  if (when == Acknowledge::durable) return intention.declare_durably();
  intention.declare();
  return Status::success();
}

Status CachePart::write_small(std::uint64_t offset, const std::byte* from, std::uint64_t bytes,
                              Acknowledge when) {
  const std::uint64_t block = place_of(layout(), offset).block;
  const std::uint64_t within = offset & (layout().block_bytes - 1);
  const std::uint64_t first = std::min(bytes, layout().block_bytes - within);
  PERDURE_TRY(room_.settle(block).status());  // it has its room before the entry
  std::optional<PartJournal::Turn> turn(std::in_place, journal_);
  if (turn->entry() == nullptr && peers_.clean_up_after_dead().ok()) turn.emplace(journal_);
  JournalFormat* entry = turn->entry();
  if (entry == nullptr) {
    return Status(Code::no_space, header().path, ": more than ", header().journal_entries,
                  " processes of node ", header().node,
                  " write at once, or its device has no room for another's journal");
  }
  if (first != bytes) return write_small_to_two(offset, from, bytes, when, *entry);
  bool passed = false;
  const Status done = room_.with_block(block, [&](bool here) -> Status {
    passed = !here;
    PartJournal::Intention intention(journal_, *entry, offset, from, bytes);
    PERDURE_TRY(declare(intention, when));
    PERDURE_TRY(write_run(here, block, within, from, bytes, when));
    return when == Acknowledge::durable ? intention.retract_durably() : Status::success();
  });
  turn.reset();
  if (done.ok() && passed) evictor_.pay(block, bytes);
  return done;
}

// cache.P17: neither of the two may be evicted as long as it is intended.
Status CachePart::write_small_to_two(std::uint64_t offset, const std::byte* from,
                                     std::uint64_t bytes, Acknowledge when, JournalFormat& entry) {
  const std::uint64_t block = place_of(layout(), offset).block;
  const std::uint64_t within = offset & (layout().block_bytes - 1);
  const std::uint64_t first = layout().block_bytes - within;
  const std::uint64_t next = place_of(layout(), offset + first).block;
  while (true) {
    PERDURE_TRY_ASSIGN(const bool listed, room_.settle(block));
    PERDURE_TRY_ASSIGN(const bool next_listed, room_.settle(next));
    const PartUsers::Mark mark(users_);
    const std::optional<bool> here = room_.look(block, listed);
    const std::optional<bool> next_here = room_.look(next, next_listed);
    if (!here || !next_here) continue;
    PartJournal::Intention intention(journal_, entry, offset, from, bytes);
    PERDURE_TRY(declare(intention, when));
    PERDURE_TRY(write_run(*here, block, within, from, first, when));
    PERDURE_TRY(write_run(*next_here, next, 0, from + first, bytes - first, when));
    return when == Acknowledge::durable ? intention.retract_durably() : Status::success();
  }
}

namespace {

// One store instruction can't be torn (pmem.D2), to an aligned word.
void store_word_at(std::byte* to, const void* from) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(to))
      .store(value, std::memory_order_relaxed);
}

}  // namespace

bool CachePart::try_write(std::uint64_t offset, const void* from, std::uint64_t bytes) {
  const Place place = place_of(layout(), offset);
  const std::uint64_t within = offset & (layout().block_bytes - 1);
  if (place.node != node() || !table_.is_present(place.block) || versions_.has_log()) return false;
  if (bytes - 1 >= journal_bytes || within + bytes > layout().block_bytes) return false;
  std::byte* to = bytes_.of(place.block) + within;
  const bool word_alone = bytes == 8 && reinterpret_cast<std::uintptr_t>(to) % 8 == 0;
  JournalFormat* entry = word_alone ? nullptr : journal_.entry_for_small();
  if (!word_alone && entry == nullptr) return false;
  const PartUsers::ShortMark mark(users_, place.block);
  if (!table_.is_present(place.block)) return false;
  if (word_alone) {
    store_word_at(to, from);
    finish_write(place.block, within, bytes);
  } else {
    PartJournal::Intention intention(journal_, *entry, offset, from, bytes);
    intention.declare();
    copy_to_shared(to, intention.bytes(), bytes);
    finish_write(place.block, within, bytes);
  }
  if (users_.is_evicting()) [[unlikely]]
    evictor_.count_use(place.block, bytes);
  return true;
}

Status CachePart::write(std::uint64_t offset, const void* from, std::uint64_t bytes,
                        Acknowledge when) {
  const auto* place = static_cast<const std::byte*>(from);
  if (bytes == 0) return Status::success();
  if (when == Acknowledge::durable) PERDURE_TRY(changes_.expect_power_failure());
  if (when != Acknowledge::durable && try_write(offset, from, bytes)) return Status::success();
  if (bytes <= journal_bytes && bytes <= layout().block_bytes) {
    return write_small(offset, place, bytes, when);
  }
  while (bytes != 0) {
    const std::uint64_t block = place_of(layout(), offset).block;
    const std::uint64_t within = offset & (layout().block_bytes - 1);
    const std::uint64_t run = std::min(bytes, layout().block_bytes - within);
    PERDURE_TRY(write_block(block, within, place, run, when));
    place += run;
    offset += run;
    bytes -= run;
  }
  return Status::success();
}

// cache.P6 (2) and (3).
Status CachePart::keep(std::uint64_t block, std::uint64_t within, std::uint64_t bytes) {
  const Grains grains = bytes_.grains_of(within, bytes);
  if ((grains & ~table_.kept(block)).none()) {
    bytes_.flush(block, within, bytes);
  } else {
    const std::uint64_t grain = bytes_.grain_bytes();
    const std::uint64_t begin = within / grain * grain;
    const std::uint64_t end = (within + bytes + grain - 1) / grain * grain;
    bytes_.flush(block, begin, end - begin);
  }
  PERDURE_TRY(device_->fence());
  table_.mark_kept(block, grains);
  table_.flush(block);
  bytes_.flush_size();
  return device_->fence();
}

Status CachePart::persist() {
  PERDURE_TRY(changes_.expect_power_failure());
  PERDURE_TRY_ASSIGN(const std::uint64_t blocks, table_.touched_of(bytes_.blocks_in_use()));
  std::uint64_t version = 0;
  if (versions_.has_log()) {
    PERDURE_TRY_ASSIGN(version, versions_.base());
  }
  PERDURE_TRY(persist_blocks(blocks, version));
  return table_.is_passing() ? through_.sync() : Status::success();
}

// cache.P17: none of them is evicted meanwhile, or its grains would be kept where it is no more;
// what somebody has begun to evict goes to the file before this is done, and is synchronised there.
Status CachePart::persist_blocks(std::uint64_t blocks, std::uint64_t version) {
  const Stay stay(*this);
  std::vector<std::pair<std::uint64_t, Grains>> found;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    if (!table_.is_here(block)) continue;
    PERDURE_TRY(table_.await_release(block));
    if (!table_.is_present(block)) continue;
    Grains grains = table_.unclean(block);
    // What did not change since the newest version is durable already.
    if (versions_.has_log()) grains = versions_.kept(block, version, grains);
    if (grains.none()) continue;
    bytes_.flush_grains(block, grains);
    found.emplace_back(block, grains);
  }
  PERDURE_TRY(device_->fence());
  for (const auto& [block, grains] : found) {
    table_.mark_kept(block, grains);
    table_.flush(block);
  }
  bytes_.flush_size();
  return device_->fence();
}

// Nobody reads or writes meanwhile. The part is cut first, then the cached file, by the caller: a
// crash between the two leaves bytes, also older ones, where the call was to remove them, and
// touches no others.
//   1. the size, fence: recovery writes nothing beyond it
//   2. what is cut off is neither kept nor anything but zeros, fence: nor if the file grows again;
//      where it passes through, the cut of the cached file makes it zeros
//   3. its space is given back, also what an eviction could not give back
// In between nobody else writes a block back that is cut (cache.P21).
Status CachePart::set_size(std::uint64_t bytes) {
  if (versions_.has_log() && bytes < bytes_.size_bytes()) {
    return Status(Code::unsupported, header().path,
                  " is committed with a pool and can't be made smaller; close it and open it "
                  "without perdure_cache_pool");
  }
  PERDURE_TRY_ASSIGN(const std::uint64_t before, table_.touched_of(bytes_.blocks_in_use()));
  auto visible = word(state_->visible_bytes);
  if (visible.load() > bytes) visible.store(bytes);
  word(state_->size_bytes).store(bytes);
  bytes_.flush_size();
  PERDURE_TRY(device_->fence());
  std::vector<std::uint64_t> gone;
  for (std::uint64_t block = 0; block < before; ++block) {
    const std::uint64_t begin = bytes_.file_offset(block);
    const bool here = table_.is_here(block);
    if (begin + layout().block_bytes <= bytes) continue;
    if (!here && !table_.is_through(block)) continue;
    PERDURE_TRY_ASSIGN(const std::uint64_t claim, table_.claim(block));
    if (begin >= bytes) {
      table_.clear(block);
      gone.push_back(block);
    }
    (void)table_.give_claim(block, claim);
    if (begin >= bytes || !here) continue;
    const std::uint64_t within = bytes - begin;
    std::memset(bytes_.of(block) + within, 0, layout().block_bytes - within);
    bytes_.flush(block, within, layout().block_bytes - within);
  }
  PERDURE_TRY(device_->fence());
  for (const std::uint64_t block : gone) {
    PERDURE_TRY(bytes_.discard(block));
  }
  return Status::success();
}

Status CachePart::roll_back(const PoolVersion& version) {
  PERDURE_TRY(versions_.check_goes_back(version));
  journal_.forget_all();
  return versions_.roll_back(version.version);
}

bool CachePart::try_lock(std::uint64_t owner) {
  std::uint64_t nobody = 0;
  const std::uint64_t mark = owner << owner_bits | peers_.number();
  if (word(state_->lock).compare_exchange_strong(nobody, mark)) return true;
  // Whoever asks, asks again; an error of cleaning up comes to light where the part is used.
  if (owner_of(nobody) != peers_.number()) (void)peers_.clean_up_if_dead(owner_of(nobody));
  return false;
}

bool CachePart::unlock(std::uint64_t owner) {
  std::uint64_t mark = owner << owner_bits | peers_.number();
  return word(state_->lock).compare_exchange_strong(mark, 0);
}

int CachePart::take_pointer() {
  const int slot = pointers_.take(peers_.number());
  if (slot >= 0 || !peers_.clean_up_after_dead().ok()) return slot;
  return pointers_.take(peers_.number());
}

}  // namespace perdure
