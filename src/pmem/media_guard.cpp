// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/media_guard.hpp"

#include <setjmp.h>
#include <signal.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "pmem/flush.hpp"

namespace perdure {
namespace {

struct sigaction previous_action;
thread_local volatile bool guarding = false;
thread_local sigjmp_buf way_out;

void on_bus_error(int signal_number, siginfo_t* details, void* context) {
  if (guarding) siglongjmp(way_out, 1);
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
