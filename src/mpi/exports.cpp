// SPDX-License-Identifier: BSD-3-Clause
//
// The names with which MPI begins: by them the MPI library is looked at, and what is done when MPI
// begins (at_begin.hpp). All of them go on to it.
#include "mpi/at_begin.hpp"
#include "mpi/exported_calls.hpp"
#include "mpi/served_mpi.hpp"
#include "mpi/taken_calls.hpp"
#include "perdure/perdure.h"

PERDURE_INIT_CALLS(PERDURE_DECLARE_TAKEN)
PERDURE_INIT_CALLS(PERDURE_DEFINE_TAKEN)

extern "C" {

// For libperdure_preload.so: the process has a library of Perdure already.
PERDURE_API extern const int perdure_mpi_serves = static_cast<int>(perdure::served_abi);

[[gnu::used, gnu::visibility("hidden")]] void* perdure_first_init_call(const std::atomic<void*>* to,
                                                                       const char* name) {
  (void)perdure::mpi_is_served();
  perdure::AtBegin::call_all();
#define PERDURE_PASS_ON(x) perdure::pass_on(perdure_taken_##x);
  PERDURE_INIT_CALLS(PERDURE_PASS_ON)
#undef PERDURE_PASS_ON
  return perdure::destination(*to, name);
}

}  // extern "C"

PERDURE_FIRST_CALLS(perdure_first_init_call)
PERDURE_INIT_CALLS(PERDURE_EXPORT_CALL)
