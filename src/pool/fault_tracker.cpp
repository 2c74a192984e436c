// SPDX-License-Identifier: BSD-3-Clause
#include "pool/fault_tracker.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "pool/fault_handler.hpp"

namespace perdure {

// Read by the signal handler, also of a thread that stores to another range while this one becomes
// another: base and size are of one range if `uses` is the same before and after. `touched` is read
// by those who store to this range, which nobody does while it changes.
struct TrackedRange {
  std::atomic<std::uint64_t> uses{0};   // so many ranges it has been
  std::atomic<std::uintptr_t> base{0};  // 0: free
  std::atomic<std::size_t> size_bytes{0};
  std::unique_ptr<std::atomic<std::uint8_t>[]> touched;  // by block
};

namespace {

constexpr std::size_t ranges_max = 256;
constexpr std::size_t block_bytes = std::size_t{64} << 10U;
std::array<TrackedRange, ranges_max> ranges;
std::mutex ranges_mutex;  // for claiming and releasing; the handler does not take it

bool set_protection(std::uintptr_t begin, std::size_t count, int protection) {
  return ::mprotect(reinterpret_cast<void*>(begin), count, protection) == 0;
}

TrackedRange* range_with(std::uintptr_t address) {
  for (TrackedRange& range : ranges) {
    const std::uint64_t uses = range.uses.load(std::memory_order_acquire);
    const std::uintptr_t base = range.base.load(std::memory_order_acquire);
    // A size of a later use comes with its count.
    const std::size_t size_bytes = range.size_bytes.load(std::memory_order_acquire);
    if (base == 0 || address < base || address - base >= size_bytes) continue;
    if (range.uses.load(std::memory_order_relaxed) == uses) return &range;
  }
  return nullptr;
}

// A fault claimant.
bool unprotect_touched_block(std::uintptr_t address) {
  TrackedRange* const range = range_with(address);
  if (range == nullptr) return false;
  const std::uintptr_t base = range->base.load(std::memory_order_relaxed);
  const std::size_t block = (address - base) / block_bytes;
  const std::size_t begin = block * block_bytes;
  const std::size_t count = std::min(block_bytes, range->size_bytes - begin);
  range->touched[block].store(1, std::memory_order_relaxed);
  return set_protection(base + begin, count, PROT_READ | PROT_WRITE);
}

Status refused(int error) {
  return errno_status("mprotect of an array in log mode", error);
}

}  // namespace

FaultTracker::FaultTracker(TrackedRange& range)
    : PageTracker(reinterpret_cast<std::byte*>(range.base.load()), range.size_bytes),
      range_(range) {}

Result<std::unique_ptr<PageTracker>> FaultTracker::create(std::byte* base, std::size_t size_bytes) {
  claim_faults(unprotect_touched_block);
  const std::lock_guard<std::mutex> lock(ranges_mutex);
  for (TrackedRange& range : ranges) {
    if (range.base.load() != 0) continue;
    range.uses.fetch_add(1, std::memory_order_release);
    range.size_bytes.store(size_bytes, std::memory_order_release);
    const std::size_t blocks = (size_bytes + block_bytes - 1) / block_bytes;
    range.touched = std::make_unique<std::atomic<std::uint8_t>[]>(blocks);
    range.base.store(reinterpret_cast<std::uintptr_t>(base), std::memory_order_release);
    return std::unique_ptr<PageTracker>(new FaultTracker(range));
  }
  return Status(Code::no_space,
                "more than 256 arrays use page protection, on a kernel that does not tell what "
                "was written (Linux 6.7 does); use PERDURE_MARKS");
}

bool FaultTracker::protects(std::uintptr_t address) {
  return range_with(address) != nullptr;
}

FaultTracker::~FaultTracker() {
  stop(true);
}

// Whatever is mapped there later has a protection of its own.
void FaultTracker::unwatch(bool mapped) {
  if (mapped) expose();
  range_.base.store(0, std::memory_order_release);
}

void FaultTracker::expose() {
  note({0, size_bytes()}, true);
  (void)release({0, size_bytes()});
}

void FaultTracker::note(ByteRange range, bool touched) {
  const std::size_t end = (range.end + block_bytes - 1) / block_bytes;
  for (std::size_t block = range.begin / block_bytes; block < end; ++block) {
    range_.touched[block].store(touched ? 1 : 0, std::memory_order_relaxed);
  }
}

Status FaultTracker::protect(ByteRange range) {
  note(range, false);
  const auto begin = reinterpret_cast<std::uintptr_t>(base()) + range.begin;
  if (set_protection(begin, range.end - range.begin, PROT_READ)) return Status::success();
  const Status failed = refused(errno);
  note(range, true);  // what can still be stored to
  return failed;
}

Status FaultTracker::release(ByteRange range) {
  const auto begin = reinterpret_cast<std::uintptr_t>(base()) + range.begin;
  if (set_protection(begin, range.end - range.begin, PROT_READ | PROT_WRITE)) {
    return Status::success();
  }
  return refused(errno);
}

// Notes are cleared before the protection: a store between is in this version, whose contents are
// copied later. The other way round its note would be lost.
Status FaultTracker::take(ByteRange range, PageSet& changed) {
  const std::size_t range_end = (range.end + block_bytes - 1) / block_bytes;
  const auto is_touched = [this](std::size_t block) {
    return range_.touched[block].load(std::memory_order_relaxed) != 0;
  };
  for (std::size_t block = range.begin / block_bytes; block < range_end; ++block) {
    if (!is_touched(block)) continue;
    std::size_t end = block;
    while (end < range_end && is_touched(end)) ++end;
    const ByteRange bytes{block * block_bytes, std::min(end * block_bytes, size_bytes())};
    changed.add(bytes);
    PERDURE_TRY(protect(bytes));
    block = end;
  }
  return Status::success();
}

}  // namespace perdure
