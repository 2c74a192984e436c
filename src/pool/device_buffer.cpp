// SPDX-License-Identifier: BSD-3-Clause
#include "pool/device_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "pool/block_checksum.hpp"
#include "pool/copy_check.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t page_bytes = Accelerator::bytes_of(Accelerator::Unit::page);
constexpr std::uint64_t whole_block = Accelerator::bytes_of(Accelerator::Unit::block);
constexpr std::uint64_t kernel_alignment = 16;  // of what they read
constexpr std::uint32_t looks_again = 16;       // each so many commits

}  // namespace

Result<std::unique_ptr<DeviceBuffer>> DeviceBuffer::open(const ArraySurroundings& surroundings,
                                                         Accelerator& accelerator,
                                                         const ArrayEntry& entry,
                                                         std::byte* buffer) {
  std::unique_ptr<DeviceBuffer> made(new DeviceBuffer(surroundings, accelerator));
  PERDURE_TRY_ASSIGN(made->free_, AcceleratorEvent::make(accelerator));
  PERDURE_TRY_ASSIGN(made->done_, AcceleratorEvent::make(accelerator));
  PERDURE_TRY(made->fit(entry, buffer));
  return made;
}

DeviceBuffer::~DeviceBuffer() {
  (void)accelerator_.finish();  // before the memory that is transferred
}

// pool.D4.
Status DeviceBuffer::ended(Status status) {
  if (!status.ok()) (void)accelerator_.finish();
  return status;
}

// Whether the accelerator computes the checksums that the array has.
bool DeviceBuffer::sums_here(const ArrayEntry& entry) const {
  return entry.shape.checksums && accelerator_.has_sums() && with_.block_bytes == whole_block &&
         of_one_page(entry.checksum) == DataChecksum::xxh3;
}

// log: where the buffer is aligned.
bool DeviceBuffer::lists_changes() const {
  return registers_ && accelerator_.kernels_reach_host() && sums_here(entry_) &&
         is_of_pages(entry_.checksum);
}

Status DeviceBuffer::fit(const ArrayEntry& entry, std::byte* buffer) {
  (void)accelerator_.finish();  // of a commit that failed
  entry_ = entry;
  buffer_ = buffer;
  allocation_ = accelerator_.allocation_of(buffer);
  return choose_way();
}

// Whether the accelerator reaches the copy directly, which it does from its first use on: to
// register memory takes longer than to transfer it.
bool DeviceBuffer::reach(std::uint32_t copy) {
  return with_.accelerators->registered().add(accelerator_, copy_at(copy), entry_.size_bytes);
}

Status DeviceBuffer::choose_way(bool may_register) {
  beside_ = {};
  staging_ = {};
  known_.assign(entry_.copies, false);
  saved_ = false;
  registers_ = may_register && with_.device.takes_dma() && reach(entry_.copy);
  by_changes_ = lists_changes() && address_of(buffer_) % kernel_alignment == 0;
  Status room = make_room(entry_);
  if (room.ok()) return room;
  by_changes_ = direct_ = false;  // by the ring, which needs nothing of the accelerator
  beside_.tables.clear();
  return room.code() == Code::no_space ? Status::success() : room;
}

// Of the accelerator's memory. Without a snapshot it only takes longer.
Status DeviceBuffer::make_room(const ArrayEntry& entry) {
  if (!by_changes_) {
    auto snapshot = AcceleratorMemory::make(accelerator_, entry.size_bytes);
    if (snapshot.ok()) beside_.snapshot = snapshot.take();
    if (!snapshot.ok() && snapshot.status().code() != Code::no_space) return snapshot.status();
  }
  const bool aligned = contents() % kernel_alignment == 0;
  const bool pages = is_of_pages(entry.checksum) && !by_changes_;
  direct_ = registers_ && (!entry.shape.checksums || (sums_here(entry) && aligned && !pages));
  if (!direct_ || !entry.shape.checksums) return Status::success();
  const std::uint64_t units = whole_units();
  PERDURE_TRY_ASSIGN(beside_.sums, AcceleratorMemory::make(accelerator_, 8 * units));
  if (by_changes_) {
    PERDURE_TRY_ASSIGN(beside_.list, AcceleratorMemory::make(accelerator_, 4 * units + 4));
    for (std::uint32_t copy = 0; copy < entry.copies; ++copy) {
      PERDURE_TRY_ASSIGN(auto table, AcceleratorMemory::make(accelerator_, 8 * units));
      beside_.tables.push_back(std::move(table));
    }
  }
  PERDURE_TRY_ASSIGN(staging_, PinnedMemory::make(accelerator_, 12 * units + 4));
  return Status::success();
}

ChangeTables DeviceBuffer::tables_of(std::uint32_t copy) const {
  return {beside_.sums.at(), beside_.tables[copy].at(), beside_.list.at(),
          beside_.list.at() + 4 * whole_units()};
}

Status DeviceBuffer::clear() {
  PERDURE_TRY(accelerator_.follow(with_.accelerators->stream()));
  PERDURE_TRY(accelerator_.clear(address_of(buffer_), entry_.size_bytes));
  return accelerator_.finish();
}

// The program may give memory back that it had while the array was opened. It may as well need some
// of it again, so as much is left to it.
Status DeviceBuffer::look_for_room() {
  return accelerator_.with_room([this](std::uint64_t room_bytes) {
    const bool tables = lists_changes();
    const std::uint64_t pages = entry_.size_bytes / page_bytes;
    const std::uint64_t needed = tables ? (12 + 8 * entry_.copies) * pages : entry_.size_bytes;
    return room_bytes / 2 < needed ? Status::success() : choose_way();
  });
}

Status DeviceBuffer::take(std::uint32_t copy) {
  saved_ = false;
  if (lacks_snapshot() && ++lacking_ % looks_again == 0) PERDURE_TRY(look_for_room());
  // Else save() stores to the copy, which may be beside the program.
  const bool stores_here = by_changes_ || (direct_ && !beside_.snapshot.is_there());
  if (stores_here && !reach(copy)) PERDURE_TRY(choose_way(false));
  failed_waits_ = accelerator_.failed_waits();
  const ProgramStream* const stream = with_.accelerators->stream();
  PERDURE_TRY(accelerator_.follow(stream));
  Status taken;
  if (by_changes_) {
    taken = store_changes(copy);
  } else if (beside_.snapshot.is_there()) {
    taken = accelerator_.copy_within(beside_.snapshot.at(), address_of(buffer_), entry_.size_bytes);
  } else if (direct_) {
    taken = transfer(copy);
  }
  if (taken.ok()) taken = accelerator_.record(free_.handle());
  if (taken.ok()) taken = accelerator_.hold(stream, free_.handle());
  return ended(std::move(taken));
}

Status DeviceBuffer::wait_until_free() {
  return accelerator_.wait(free_.handle());
}

// A stream that can't wait for this accelerator is another one's, and the next commit refuses it.
Status DeviceBuffer::hold_stream() {
  if (accelerator_.hold(with_.accelerators->stream(), free_.handle()).ok())
    return Status::success();
  return wait_until_free();
}

// Somebody else may have waited, to whom what failed here was reported.
Status DeviceBuffer::check_none_failed() const {
  if (accelerator_.failed_waits() == failed_waits_) return Status::success();
  return {Code::io_error,
          "a wait for its device failed during the commit, with which some of its bytes may not "
          "have come; commit again, or start the program again from the last version"};
}

// Of all contents, with the sums of whole blocks.
Status DeviceBuffer::transfer(std::uint32_t copy) {
  if (entry_.shape.checksums) {
    PERDURE_TRY(accelerator_.clear(beside_.sums.at(), 8 * whole_units()));
    PERDURE_TRY(accelerator_.sum(unit(), contents(), beside_.sums.at(), whole_units()));
  }
  return transfer_from(copy, 0);
}

// From that byte to the end. A copy may begin in a page that another one was registered with.
Status DeviceBuffer::transfer_from(std::uint32_t copy, std::uint64_t begin) {
  std::byte* const to = copy_at(copy);
  return with_.accelerators->registered().for_each_piece(
      to + begin, entry_.size_bytes - begin, [&](std::byte* at, std::uint64_t bytes) {
        return accelerator_.copy_to_host(at, contents() + static_cast<std::uint64_t>(at - to),
                                         bytes);
      });
}

// log: of the pages whose sums are not in the table, and of what is left after the last whole page.
Status DeviceBuffer::store_changes(std::uint32_t copy) {
  all_ = !known_[copy];
  known_[copy] = false;  // pool.D3
  const ChangeTables tables = tables_of(copy);
  const std::uint64_t pages = whole_units();
  if (all_) {
    PERDURE_TRY(transfer(copy));
    return accelerator_.copy_within(tables.table, tables.sums, 8 * pages);
  }
  PERDURE_TRY(accelerator_.clear(tables.sums, 8 * pages));
  PERDURE_TRY(accelerator_.sum(unit(), address_of(buffer_), tables.sums, pages));
  PERDURE_TRY(accelerator_.list_changed(tables, pages));
  PERDURE_TRY(accelerator_.store_listed(tables, address_of(buffer_), copy_at(copy), page_bytes));
  return transfer_from(copy, pages * page_bytes);
}

Result<std::uint64_t> DeviceBuffer::save(std::uint32_t copy, const CopySums& sums,
                                         const StorePages& store) {
  if (direct_ && !reach(copy)) direct_ = registers_ = false;
  if (!direct_) {
    PERDURE_TRY_ASSIGN(HostRing* const ring,
                       with_.accelerators->ring_of(accelerator_, with_.block_bytes));
    const std::uint64_t page =
        is_of_pages(entry_.checksum) ? with_.block_bytes / pages_per_block : with_.block_bytes;
    PERDURE_TRY(
        ended(ring->pass(contents(), entry_.size_bytes,
                         [&](std::uint64_t begin, const std::byte* at, std::uint64_t count) {
                           return store({begin / page, (begin + count + page - 1) / page}, at);
                         })));
    PERDURE_TRY(check_none_failed());
    return entry_.size_bytes;
  }
  auto saved = by_changes_ ? finish_changes(copy, sums) : finish_transfer(copy, sums);
  if (!saved.ok()) {
    saved_ = false;
    return ended(saved.status());
  }
  return saved;
}

// What the accelerator has computed comes to the host, after all that was asked for before.
Status DeviceBuffer::fetch_sums() {
  if (entry_.shape.checksums) {
    PERDURE_TRY(accelerator_.copy_to_host(staging_.at(), beside_.sums.at(), 8 * whole_units()));
    if (by_changes_) {
      PERDURE_TRY(accelerator_.copy_to_host(staging_.at() + 8 * whole_units(), beside_.list.at(),
                                            4 * whole_units() + 4));
    }
  }
  PERDURE_TRY(accelerator_.record(done_.handle()));
  return accelerator_.wait(done_.handle());
}

// pool.D1, D2: a sum that is zero is one that was not made, or one of 2^64.
void DeviceBuffer::take_sum_of(std::uint32_t copy, std::uint64_t index,
                               std::vector<std::uint64_t>& sums) const {
  const std::uint64_t most = Accelerator::bytes_of(unit());
  const std::uint64_t begin = index * most;
  const bool made = index < whole_units() && host_sums()[index] != 0;
  sums[index] = made ? host_sums()[index]
                     : data_checksum(DataChecksum::xxh3, copy_at(copy) + begin,
                                     std::min(most, entry_.size_bytes - begin));
}

Result<std::uint64_t> DeviceBuffer::finish_transfer(std::uint32_t copy, const CopySums& sums) {
  if (beside_.snapshot.is_there()) PERDURE_TRY(transfer(copy));
  PERDURE_TRY(fetch_sums());
  if (entry_.shape.checksums) {
    for (std::uint64_t block = 0; block < sums.of_blocks.size(); ++block) {
      take_sum_of(copy, block, sums.of_blocks);
    }
  }
  PERDURE_TRY(with_.writer.stored_by_dma(entry_.copy_offset(copy), entry_.size_bytes));
  saved_ = true;
  return entry_.size_bytes;
}

// Which pages the kernels have stored; the list is in any order.
Result<PageSet> DeviceBuffer::stored_pages() {
  PageSet pages(entry_.size_bytes, page_bytes);
  if (all_) {
    pages.add_all();
    return pages;
  }
  const std::uint64_t whole = whole_units();
  const auto* const list = reinterpret_cast<const std::uint32_t*>(staging_.at() + 8 * whole);
  const std::uint32_t count = list[whole];
  for (std::uint32_t i = 0; i < count && count <= whole; ++i) {
    if (list[i] < whole) pages.add_pages({list[i], std::uint64_t{list[i]} + 1});
  }
  if (count > whole || pages.count({0, whole}) != count) {
    return Status(Code::io_error, "the GPU listed ", count, " of ", whole,
                  " pages as changed, and not each once; commit again, or start the program again "
                  "from the last version");
  }
  pages.add_pages({whole, pages.pages()});
  return pages;
}

bool DeviceBuffer::has_all_sums() const {
  return std::find(host_sums(), host_sums() + whole_units(), 0U) == host_sums() + whole_units();
}

// pool.D3. A page that was not stored has the sum, by the host's own table, that it had; a table
// that is known has no zeros.
Status DeviceBuffer::check_others(const PageSet& stored,
                                  const std::vector<std::uint64_t>& sums) const {
  const auto check = [&](std::uint64_t first, std::uint64_t end) {
    if (std::memcmp(host_sums() + first, sums.data() + first, 8 * (end - first)) == 0) {
      return Status::success();
    }
    while (host_sums()[first] == sums[first]) ++first;
    return Status(Code::io_error, "the GPU did not store page ", first,
                  ", whose checksum is not the one that it had; commit again, or start the program "
                  "again from the last version");
  };
  std::uint64_t first = 0;
  for (PageRun run = stored.next_run(0); !run.empty(); run = stored.next_run(run.end)) {
    PERDURE_TRY(check(first, std::min(run.first, whole_units())));
    first = run.end;
  }
  return first < whole_units() ? check(first, whole_units()) : Status::success();
}

void DeviceBuffer::sum_blocks(const CopySums& sums, const PageSet& pages) const {
  for (PageRun run = pages.next_run(0); !run.empty(); run = pages.next_run(run.end)) {
    for (std::uint64_t block = run.first / pages_per_block; block * pages_per_block < run.end;
         ++block) {
      const std::uint64_t first = block * pages_per_block;
      const std::uint64_t count = std::min(pages_per_block, sums.of_pages->size() - first);
      sums.of_blocks[block] = sum_of_pages(entry_.checksum, {sums.of_pages->data() + first, count});
    }
  }
}

Result<std::uint64_t> DeviceBuffer::finish_changes(std::uint32_t copy, const CopySums& sums) {
  PERDURE_TRY(fetch_sums());
  PERDURE_TRY_ASSIGN(const PageSet stored, stored_pages());
  PERDURE_TRY(check_others(stored, *sums.of_pages));
  std::uint64_t bytes = 0;
  saved_ = true;
  for (PageRun run = stored.next_run(0); !run.empty(); run = stored.next_run(run.end)) {
    for (std::uint64_t page = run.first; page < run.end; ++page) {
      if (page < whole_units() && host_sums()[page] == 0) saved_ = false;
      take_sum_of(copy, page, *sums.of_pages);
    }
    const std::uint64_t begin = run.first * page_bytes;
    const std::uint64_t count = std::min(run.end * page_bytes, entry_.size_bytes) - begin;
    PERDURE_TRY(with_.writer.stored_by_dma(entry_.copy_offset(copy) + begin, count));
    bytes += count;
  }
  sum_blocks(sums, stored);
  return bytes;
}

void DeviceBuffer::commit(std::uint32_t copy) {
  if (by_changes_ && saved_) known_[copy] = true;
  saved_ = false;
}

Status DeviceBuffer::fill_straight(std::uint32_t copy) {
  const DeviceAddress to = address_of(buffer_);
  std::byte* const from = copy_at(copy);
  if (registers_ && reach(copy)) {
    return with_.accelerators->registered().for_each_piece(
        from, entry_.size_bytes, [&](std::byte* at, std::uint64_t bytes) {
          return accelerator_.copy_from_host(to + static_cast<std::uint64_t>(at - from), at, bytes);
        });
  }
  PERDURE_TRY_ASSIGN(HostRing* const ring,
                     with_.accelerators->ring_of(accelerator_, with_.block_bytes));
  return ring->fill(to, entry_.size_bytes,
                    [from](std::uint64_t begin, std::byte* at, std::uint64_t count) {
                      std::memcpy(at, from + begin, count);
                    });
}

Status DeviceBuffer::fill(std::uint32_t copy) {
  if (registers_) PERDURE_TRY(with_.device.fence());  // it reads what the processor has stored
  PERDURE_TRY(accelerator_.follow(with_.accelerators->stream()));
  PERDURE_TRY(ended(fill_straight(copy)));
  return accelerator_.finish();
}

Status DeviceBuffer::load(const ArrayEntry& entry, const CopySums& sums) {
  known_.assign(known_.size(), false);
  saved_ = false;
  PERDURE_TRY(accelerator_.follow(with_.accelerators->stream()));
  const bool aligned = address_of(buffer_) % kernel_alignment == 0;
  if (direct_ && entry.shape.checksums && aligned) return ended(load_and_sum(entry, sums));
  PERDURE_TRY(check_readable(with_.device, entry));
  if (entry.shape.checksums) {
    PERDURE_TRY(verify_and_copy(with_.device, entry, with_.block_bytes, nullptr, &sums.of_blocks,
                                sums.of_pages));
  }
  PERDURE_TRY(ended(fill_straight(entry.copy)));
  return accelerator_.finish();
}

// The sums of what has come to the accelerator are compared with the table.
Status DeviceBuffer::load_and_sum(const ArrayEntry& entry, const CopySums& sums) {
  std::vector<std::uint64_t> expected;
  PERDURE_TRY(read_table(with_.device, entry, with_.block_bytes, expected));
  // Pages of memory were all there when they were registered, and a look at them takes longer than
  // the transfer.
  if (with_.device.describe().persistence == PersistenceClass::power_failure) {
    PERDURE_TRY(check_readable(with_.device, entry));
  }
  PERDURE_TRY(fill_straight(entry.copy));
  PERDURE_TRY(accelerator_.clear(beside_.sums.at(), 8 * whole_units()));
  PERDURE_TRY(accelerator_.sum(unit(), address_of(buffer_), beside_.sums.at(), whole_units()));
  if (by_changes_) {
    PERDURE_TRY(accelerator_.copy_within(beside_.tables[entry.copy].at(), beside_.sums.at(),
                                         8 * whole_units()));
  }
  PERDURE_TRY(fetch_sums());
  auto& of_units = by_changes_ ? *sums.of_pages : sums.of_blocks;
  for (std::uint64_t i = 0; i < of_units.size(); ++i) take_sum_of(entry.copy, i, of_units);
  if (by_changes_) {
    PageSet all(entry.size_bytes, page_bytes);
    all.add_all();
    sum_blocks(sums, all);
  }
  for (std::uint64_t block = 0; block < expected.size(); ++block) {
    if (sums.of_blocks[block] == expected[block]) continue;
    const std::uint64_t begin = block * with_.block_bytes;
    return block_damaged(entry.name, begin, std::min(with_.block_bytes, entry.size_bytes - begin));
  }
  if (by_changes_) known_[entry.copy] = has_all_sums();
  return Status::success();
}

}  // namespace perdure
