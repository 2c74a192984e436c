// SPDX-License-Identifier: BSD-3-Clause
#include "job/run.hpp"

#include <mpi.h>

#include <cstdio>
#include <exception>

#include "job/collective.hpp"

namespace job {
namespace {

int exit_code(const char* name, const std::function<void(bool speaks)>& work) {
  const int rank = this_rank();
  try {
    work(rank == 0);
    return 0;
  } catch (const OptionsEnd& end) {
    return end.code;
  } catch (const SharedError& error) {
    if (rank == 0) std::fprintf(stderr, "%s: %s\n", name, error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: rank %d: %s\n", name, rank, error.what());
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 1;
}

}  // namespace

int run(int argc, char** argv, const char* name, const std::function<void(bool speaks)>& work) {
  int thread_level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &thread_level);
  const int code = exit_code(name, work);
  MPI_Finalize();
  return code;
}

}  // namespace job
