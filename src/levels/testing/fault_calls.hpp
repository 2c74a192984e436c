// SPDX-License-Identifier: BSD-3-Clause
//
// System calls of this program that change files below one directory, counted, and made to fail or
// to kill the process in place of one of them.
//
// fault_calls.cpp defines write, fsync, renameat, renameat2, linkat, unlinkat, mkdir and, with
// O_CREAT, openat, so a program that links it calls those.
#pragma once

#include <cstdint>
#include <string>

namespace perdure::faults {

enum class Fault : std::uint8_t {
  none,
  kill,       // SIGKILL to itself in place of the call
  kill_half,  // after half of a write; else as kill
  fail,       // the call fails with `error`, and so do all later ones of its kind
};

struct Plan {
  std::string below;     // a directory; empty: nothing is counted
  unsigned at_call = 0;  // the first one is 1
  Fault fault = Fault::none;
  int error = 0;
  bool no_renames_over_nothing = false;  // below it, as on NFS
};

// Counts from here on.
void set_plan(const Plan& plan);
// Calls since then.
unsigned calls();

}  // namespace perdure::faults
