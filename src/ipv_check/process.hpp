// SPDX-License-Identifier: BSD-3-Clause
//
// The checker of this process: made when the library is loaded, asked by entries.cpp and
// allocation.cpp; reports when the process ends.
//
// Threads: whoever is Inside holds the process's lock. A signal handler that interrupts a thread
// within is not let in; its accesses are counted as lost. Failure: a wrong PERDURE_IPV_CHECK ends
// the process before it begins, with exit code 2. At the end of a process with violations that
// would end well, the exit code becomes 86.
#pragma once

#include <sys/single_threaded.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "ipv_check/checker.hpp"
#include "ipv_check/options.hpp"
#include "ipv_check/record.hpp"
#include "perdure/perdure.h"

namespace perdure::ipv_check {

constexpr int violations_exit_code = 86;

struct Process {
  Options options;
  unsigned every = 0;  // of PERDURE_IPV; 0: not in there
  // One of both.
  std::unique_ptr<Record> record;
  std::unique_ptr<Checker> checker;
  bool persists = false;  // perdure_ipv_open() or _persist() was called: it marks iterations
  const char* marks = "";
  unsigned shown = 0;  // violations
  bool finished = false;
  int number = 0;  // of the process
  std::atomic<std::uint64_t> lost = 0;
};

// Null before the library is loaded, and in children. Never destroyed.
extern std::atomic<Process*> process;

// Addresses outside of these are of no interest: both 0 when nothing is.
extern std::atomic<std::uintptr_t> reach_begin;
extern std::atomic<std::uintptr_t> reach_end;
inline bool is_in_reach(std::uint64_t address, std::uint64_t bytes) {
  return address < reach_end.load(std::memory_order_relaxed) &&
         address + bytes > reach_begin.load(std::memory_order_relaxed);
}
// Sets them, and perdure_ipv_low and _high.
void set_reach(const Process& self);

// Whoever is Inside has the lock; `within` is this thread.
extern std::atomic<bool> locked;
extern constinit thread_local bool within;
void wait_for_lock();

class Inside {
 public:
  // For an access: where it is not let in, that is counted.
  static Inside for_access() { return Inside(true); }
  Inside() : Inside(false) {}
  ~Inside() {
    if (self_ == nullptr) return;
    if (locks_) locked.store(false, std::memory_order_release);
    within = false;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  // False: there is no checker, or this thread is within already.
  explicit operator bool() const { return self_ != nullptr; }
  Process* operator->() const { return self_; }
  Process& operator*() const { return *self_; }

 private:
  explicit Inside(bool is_access) {
    Process* self = process.load(std::memory_order_acquire);
    if (self == nullptr) return;
    if (within) {
      if (is_access) self->lost.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    within = true;
    // Nobody can begin a second thread in here.
    locks_ = __libc_single_threaded == 0;
    if (locks_) wait_for_lock();
    self_ = self;
  }
  Process* self_ = nullptr;
  bool locks_ = false;
};

// A line on stderr.
void say(const std::string& what);

// Where this thread's next call of perdure_ipv_* is in the source, as the program announced just
// before it; taking it forgets it.
Site& take_here();
void set_here(Site* site);

}  // namespace perdure::ipv_check
