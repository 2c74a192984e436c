// SPDX-License-Identifier: BSD-3-Clause
//
// Signals blocked: while one exists no signal is delivered to this thread, nor to those that it
// makes, for good: threads inherit the mask. So all signals are the program's (cache.S4).
#pragma once

#include <pthread.h>

#include <csignal>

namespace perdure {

class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    (void)::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace perdure
