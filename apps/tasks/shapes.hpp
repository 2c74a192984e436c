// SPDX-License-Identifier: BSD-3-Clause
//
// The two shapes of jobs whose ranks are never in step. Both do each task that is not in `known`,
// the finished ones of all jobs before, and add it to the rank's own finished tasks.
//
//   master  rank 0 sends tasks, one at a time, to whichever rank has answered; alone it does them
//   divide  a rank takes tasks from its own list, in a window, and divides them; where that is
//           empty it takes the oldest one of another rank's list
//
// Collective; threads: one.
#pragma once

#include <unordered_set>

#include "finished.hpp"
#include "queens.hpp"

namespace tasks {

using Known = std::unordered_set<Task>;

void run_master(const Queens& queens, int depth, const Known& known, FinishedTasks& finished);
void run_divide(const Queens& queens, int depth, const Known& known, FinishedTasks& finished);

}  // namespace tasks
