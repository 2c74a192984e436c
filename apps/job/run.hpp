// SPDX-License-Identifier: BSD-3-Clause
//
// The main function of an application: a job of MPI from its begin to its exit code.
#pragma once

#include <functional>

namespace job {

// Thrown after --help and after a mistake: the process is to end with this code.
struct OptionsEnd {
  int code;
};

// Calls `work` between MPI_Init_thread and MPI_Finalize; one rank `speaks`. Returns the exit code.
// An error that all ranks share ends the job in order, any other one at once.
int run(int argc, char** argv, const char* name, const std::function<void(bool speaks)>& work);

}  // namespace job
