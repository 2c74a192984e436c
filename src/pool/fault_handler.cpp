// SPDX-License-Identifier: BSD-3-Clause
#include "pool/fault_handler.hpp"

#include <signal.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "base/assert.hpp"

namespace perdure {
namespace {

constexpr std::size_t claimants_max = 4;
using Asked = std::array<std::atomic<FaultClaimant>, claimants_max>;
Asked claimants{};
Asked judges{};
struct sigaction previous_action;

bool any_says_yes(const Asked& asked, std::uintptr_t address) {
  for (const auto& one : asked) {
    const FaultClaimant ask = one.load(std::memory_order_acquire);
    if (ask != nullptr && ask(address)) return true;
  }
  return false;
}

bool claimed(std::uintptr_t address) {
  return !any_says_yes(judges, address) && any_says_yes(claimants, address);
}

void pass_on(int signal_number, siginfo_t* details, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal_number, details, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal_number);
  } else {
    ::signal(signal_number, SIG_DFL);  // the faulting instruction runs again and ends the process
  }
}

void on_fault(int signal_number, siginfo_t* details, void* context) {
  const int saved_errno = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(details->si_addr);
  const bool ours = details->si_code == SEGV_ACCERR && claimed(address);
  errno = saved_errno;
  if (!ours) pass_on(signal_number, details, context);
}

void install_handler() {
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, &previous_action);
}

void ask(Asked& asked, FaultClaimant one) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  for (auto& place : asked) {
    if (place.load() == one) return;
    if (place.load() != nullptr) continue;
    place.store(one, std::memory_order_release);
    static std::once_flag once;
    std::call_once(once, install_handler);
    return;
  }
  PERDURE_ASSERT(false && "more claimants of faults than modules that protect pages");
}

}  // namespace

void claim_faults(FaultClaimant claimant) {
  ask(claimants, claimant);
}

void judge_faults(FaultClaimant judge) {
  ask(judges, judge);
}

}  // namespace perdure
