// SPDX-License-Identifier: BSD-3-Clause
#include "base/this_thread.hpp"

#include <signal.h>

#include "base/guests.hpp"

namespace perdure {

void leave_signals_to_others() {
  note_own_thread();
  sigset_t set;
  ::sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::sigdelset(&set, fault);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace perdure
