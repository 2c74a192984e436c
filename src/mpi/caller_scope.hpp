// SPDX-License-Identifier: BSD-3-Clause
//
// Who called: MPI libraries make windows, and open files, for themselves, which stay theirs.
//
// Threads: each has its own.
#pragma once

namespace perdure {

// While one exists in a thread, says whether the call comes from the MPI library itself. Where
// Perdure calls on to itself, it is still the call of whoever called Perdure.
class CallerScope {
 public:
  explicit CallerScope(const void* return_address);
  ~CallerScope();
  CallerScope(const CallerScope&) = delete;
  CallerScope& operator=(const CallerScope&) = delete;
  static bool from_library();

 private:
  bool outer_;
};

}  // namespace perdure
