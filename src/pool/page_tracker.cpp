// SPDX-License-Identifier: BSD-3-Clause
#include "pool/page_tracker.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "pool/fault_handler.hpp"

namespace perdure {

// Read by the signal handler: everything it touches is atomic or set before `base` is published.
struct TrackedRange {
  std::atomic<std::uintptr_t> base{0};  // 0: free
  std::size_t size_bytes = 0;
  std::size_t block_bytes = 0;
  std::unique_ptr<std::atomic<std::uint8_t>[]> touched;
  std::size_t blocks = 0;
};

namespace {

constexpr std::size_t ranges_max = 256;
std::array<TrackedRange, ranges_max> ranges;
std::mutex ranges_mutex;  // for claiming and releasing; the handler does not take it

// A fault claimant.
bool unprotect_touched_block(std::uintptr_t address) {
  for (TrackedRange& range : ranges) {
    const std::uintptr_t base = range.base.load(std::memory_order_acquire);
    if (base == 0 || address < base || address >= base + range.size_bytes) continue;
    const std::size_t block = (address - base) / range.block_bytes;
    const std::size_t begin = block * range.block_bytes;
    const std::size_t count = std::min(range.block_bytes, range.size_bytes - begin);
    range.touched[block].store(1, std::memory_order_relaxed);
    return ::mprotect(reinterpret_cast<void*>(base + begin), count, PROT_READ | PROT_WRITE) == 0;
  }
  return false;
}

}  // namespace

PageTracker::PageTracker(TrackedRange* range) : range_(range) {}

Result<std::unique_ptr<PageTracker>> PageTracker::create(std::byte* base, std::size_t size_bytes,
                                                         std::size_t block_bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  if (address % page != 0 || block_bytes % page != 0) {
    return Status(
        Code::invalid_argument, "page protection needs a buffer and blocks aligned to ", page,
        " bytes; let Perdure allocate the buffer, or use PERDURE_MARKS or PERDURE_COMPARE");
  }
  claim_faults(unprotect_touched_block);
  const std::lock_guard<std::mutex> lock(ranges_mutex);
  for (TrackedRange& range : ranges) {
    if (range.base.load() != 0) continue;
    range.size_bytes = (size_bytes + page - 1) / page * page;
    range.block_bytes = block_bytes;
    range.blocks = (size_bytes + block_bytes - 1) / block_bytes;
    range.touched = std::make_unique<std::atomic<std::uint8_t>[]>(range.blocks);
    range.base.store(address, std::memory_order_release);
    return std::unique_ptr<PageTracker>(new PageTracker(&range));
  }
  return Status(Code::no_space, "more than 256 arrays use page protection; use PERDURE_MARKS");
}

PageTracker::~PageTracker() {
  const std::lock_guard<std::mutex> lock(ranges_mutex);
  const auto base = range_->base.load();
  ::mprotect(reinterpret_cast<void*>(base), range_->size_bytes, PROT_READ | PROT_WRITE);
  range_->base.store(0, std::memory_order_release);
}

Status PageTracker::watch() {
  for (std::size_t block = 0; block < range_->blocks; ++block) {
    range_->touched[block].store(0, std::memory_order_relaxed);
  }
  if (::mprotect(reinterpret_cast<void*>(range_->base.load()), range_->size_bytes, PROT_READ) !=
      0) {
    return errno_status("mprotect of an array in log mode", errno);
  }
  return Status::success();
}

Status PageTracker::collect(std::vector<std::uint8_t>& changed) {
  for (std::size_t block = 0; block < range_->blocks;) {
    if (range_->touched[block].load(std::memory_order_relaxed) == 0) {
      ++block;
      continue;
    }
    std::size_t end = block;
    // Protect before clearing: a store by a thread that should not be storing now is then
    // tracked once more instead of being missed.
    for (; end < range_->blocks && range_->touched[end].load(std::memory_order_relaxed) != 0;
         ++end) {
      changed[end] = 1;
    }
    const std::size_t begin_byte = block * range_->block_bytes;
    const std::size_t end_byte = std::min(end * range_->block_bytes, range_->size_bytes);
    if (::mprotect(reinterpret_cast<void*>(range_->base.load() + begin_byte), end_byte - begin_byte,
                   PROT_READ) != 0) {
      return errno_status("mprotect of an array in log mode", errno);
    }
    for (; block < end; ++block) range_->touched[block].store(0, std::memory_order_relaxed);
  }
  return Status::success();
}

}  // namespace perdure
