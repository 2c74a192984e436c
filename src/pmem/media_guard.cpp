// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/media_guard.hpp"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "pmem/flush.hpp"

namespace perdure {
namespace {

struct sigaction previous_action;
thread_local volatile bool guarding = false;
thread_local sigjmp_buf way_out;

}  // namespace

// Entries are used again, and never freed: the handler may walk the list at any time.
struct GuardedRange::Entry {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> lost{false};
  std::atomic<bool> used{true};
  Entry* next = nullptr;
};

namespace {

std::atomic<GuardedRange::Entry*> guarded_ranges{nullptr};

// Puts a page of zeros under an address of a guarded range; false if it is in none.
bool replace_page(const void* address) {
  static const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (auto* entry = guarded_ranges.load(); entry != nullptr; entry = entry->next) {
    if (at < entry->begin.load() || at >= entry->end.load()) continue;
    void* const page = reinterpret_cast<void*>(at / page_bytes * page_bytes);
    entry->lost = true;
    return ::mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
           MAP_FAILED;
  }
  return false;
}

void on_bus_error(int signal_number, siginfo_t* details, void* context) {
  if (guarding) siglongjmp(way_out, 1);
  const int before = errno;
  const bool replaced = replace_page(details->si_addr);
  errno = before;
  if (replaced) return;
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal_number, details, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal_number);
  } else {
    ::signal(signal_number, SIG_DFL);  // the access is tried again and ends the process
  }
}

void install_handler_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action{};
    action.sa_sigaction = on_bus_error;
    // SA_NODEFER: the jump out of the handler leaves SIGBUS unblocked without saving the mask,
    // which would be a system call for each guard.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &previous_action);
  });
}

}  // namespace

GuardedRange::GuardedRange(const std::byte* begin, std::uint64_t count) {
  install_handler_once();
  entry_ = guarded_ranges.load();
  for (bool found = false; entry_ != nullptr; entry_ = entry_->next) {
    if (entry_->used.compare_exchange_strong(found, true)) break;
    found = false;
  }
  if (entry_ == nullptr) {
    entry_ = new Entry;
    entry_->next = guarded_ranges.load();
    while (!guarded_ranges.compare_exchange_weak(entry_->next, entry_)) {
    }
  }
  entry_->lost = false;
  entry_->begin = reinterpret_cast<std::uintptr_t>(begin);
  entry_->end = reinterpret_cast<std::uintptr_t>(begin) + count;
}

GuardedRange::~GuardedRange() {
  entry_->end = 0;
  entry_->begin = 0;
  entry_->used = false;
}

bool GuardedRange::has_lost_pages() const {
  return entry_->lost;
}

// No object with a destructor lives in this function: the jump out of the handler would skip it.
std::optional<std::uint64_t> first_unreadable(const std::byte* begin, std::uint64_t count) {
  install_handler_once();
  volatile std::uint64_t at = 0;  // survives the jump
  if (sigsetjmp(way_out, 0) != 0) {
    guarding = false;
    return at;
  }
  guarding = true;
  for (std::uint64_t i = 0; i < count; i += cache_line_bytes) {
    at = i;
    static_cast<void>(*const_cast<const volatile std::byte*>(begin + i));
  }
  if (count > 0) static_cast<void>(*const_cast<const volatile std::byte*>(begin + count - 1));
  guarding = false;
  return std::nullopt;
}

bool copy_readable(std::byte* to, const std::byte* from, std::uint64_t count) {
  install_handler_once();
  if (sigsetjmp(way_out, 0) != 0) {
    guarding = false;
    return false;
  }
  guarding = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler may not move the copy
  if (count > 0) std::memcpy(to, from, count);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  guarding = false;
  return true;
}

}  // namespace perdure
