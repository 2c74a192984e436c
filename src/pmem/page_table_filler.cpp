// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/page_table_filler.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/guests.hpp"

namespace perdure {
namespace {

// The end, and whoever maps something else meanwhile, wait for one of these: about a millisecond.
constexpr std::uint64_t step_bytes = std::uint64_t{8} << 20U;

// Loads a byte of each page: for kernels before 5.14.
void touch_pages(const std::byte* begin, std::uint64_t count) {
  static const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (std::uint64_t i = 0; i < count; i += page_bytes) {
    [[maybe_unused]] const std::byte touched = *const_cast<const volatile std::byte*>(begin + i);
  }
}

}  // namespace

int fill_page_table(std::byte* begin, std::uint64_t count, bool for_load) {
  const int advice = for_load ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
  while (::madvise(begin, count, advice) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno != EINVAL) return errno;
    touch_pages(begin, count);
    return 0;
  }
  return 0;
}

PageTableFiller::PageTableFiller(std::byte* begin, std::uint64_t count) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits it
  thread_ = start_own_thread([this, begin, count] { work(begin, count); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PageTableFiller::~PageTableFiller() {
  ending_.store(true, std::memory_order_relaxed);
  thread_.join();
}

// A file that was cut gives EFAULT here; the kernel's own touching raises no signal.
void PageTableFiller::work(std::byte* begin, std::uint64_t count) {
  for (std::uint64_t at = 0; at < count; at += step_bytes) {
    if (ending_.load(std::memory_order_relaxed)) return;
    const std::uint64_t some = std::min(step_bytes, count - at);
    if (::madvise(begin + at, some, MADV_POPULATE_READ) != 0 && errno == EINVAL) return;
  }
}

}  // namespace perdure
