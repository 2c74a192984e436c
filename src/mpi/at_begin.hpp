// SPDX-License-Identifier: BSD-3-Clause
//
// Calls an action when the program begins MPI, before the MPI library's own MPI_Init: what is done
// there is not waited for later, and MPI itself takes longer to begin.
//
// Threads: objects are made while the library is loaded. Failure: not reported; what an action
// could not do is done, and reported, when it is needed.
#pragma once

namespace perdure {

class AtBegin {
 public:
  explicit AtBegin(void (*action)()) noexcept : action_(action), next_(newest) { newest = this; }
  AtBegin(const AtBegin&) = delete;
  AtBegin& operator=(const AtBegin&) = delete;
  static void call_all() {
    for (const AtBegin* at = newest; at != nullptr; at = at->next_) at->action_();
  }

 private:
  static inline constinit const AtBegin* newest = nullptr;
  void (*action_)();
  const AtBegin* next_;
};

}  // namespace perdure
