// SPDX-License-Identifier: BSD-3-Clause
//
// The names with which MPI begins: by them the MPI library is looked at, and what is done when MPI
// begins (at_begin.hpp); and those by which memory is lent (lending.hpp). All of them go on to it.
#include "base/guests.hpp"
#include "mpi/at_begin.hpp"
#include "mpi/exported_calls.hpp"
#include "mpi/lending.hpp"
#include "mpi/process_mpi.hpp"
#include "mpi/served_mpi.hpp"
#include "mpi/taken_calls.hpp"
#include "perdure/perdure.h"

// The large-count form of each.
#define PERDURE_WIDE_LENDING_CALLS(F) PERDURE_LENDING_CALLS(F) PERDURE_LENDING_ALL_CALLS(F)

PERDURE_INIT_CALLS(PERDURE_DECLARE_TAKEN)
PERDURE_INIT_CALLS(PERDURE_DEFINE_TAKEN)
PERDURE_LENDING_CALLS(PERDURE_DECLARE_TAKEN)
PERDURE_LENDING_CALLS(PERDURE_DEFINE_TAKEN)
PERDURE_LENDING_ALL_CALLS(PERDURE_DECLARE_TAKEN)
PERDURE_LENDING_ALL_CALLS(PERDURE_DEFINE_TAKEN)
#if MPI_VERSION >= 4
#define PERDURE_DECLARE_WIDE(x, ...) PERDURE_DECLARE_TAKEN(x##_c)
#define PERDURE_DEFINE_WIDE(x, ...) PERDURE_DEFINE_TAKEN(x##_c)
PERDURE_NEWER_LENDING_ALL_CALLS(PERDURE_DECLARE_TAKEN)
PERDURE_NEWER_LENDING_ALL_CALLS(PERDURE_DEFINE_TAKEN)
PERDURE_PARTITIONED_CALLS(PERDURE_DECLARE_TAKEN)
PERDURE_PARTITIONED_CALLS(PERDURE_DEFINE_TAKEN)
PERDURE_WIDE_LENDING_CALLS(PERDURE_DECLARE_WIDE)
PERDURE_WIDE_LENDING_CALLS(PERDURE_DEFINE_WIDE)
PERDURE_NEWER_LENDING_ALL_CALLS(PERDURE_DECLARE_WIDE)
PERDURE_NEWER_LENDING_ALL_CALLS(PERDURE_DEFINE_WIDE)
#endif

namespace {

void bind_lending_calls() {
#define PERDURE_PASS_ON(x, ...) perdure::pass_on(perdure_taken_##x);
#define PERDURE_PASS_WIDE_ON(x, ...) perdure::pass_on(perdure_taken_##x##_c);
  PERDURE_LENDING_CALLS(PERDURE_PASS_ON)
  PERDURE_LENDING_ALL_CALLS(PERDURE_PASS_ON)
#if MPI_VERSION >= 4
  PERDURE_NEWER_LENDING_ALL_CALLS(PERDURE_PASS_ON)
  PERDURE_PARTITIONED_CALLS(PERDURE_PASS_ON)
  PERDURE_WIDE_LENDING_CALLS(PERDURE_PASS_WIDE_ON)
  PERDURE_NEWER_LENDING_ALL_CALLS(PERDURE_PASS_WIDE_ON)
#endif
}

// MPI_Init and the like, whatever their arguments are: what is there when it returns, and was not
// before, is the MPI library's.
template <perdure::TakenCall& taken, bool profiled>
struct Beginning {
  using Function = long(long, long, long, long);
  static inline Function* real = nullptr;
  static long call(long a, long b, long c, long d) {
    const auto before = perdure::ProcessGuests::now();
    const long code = real(a, b, c, d);
    perdure::note_mpi_begun(before, perdure::in_mpi_library);
    return code;
  }
  static void watch() {
    std::atomic<void*>& to = profiled ? taken.to_profiled : taken.to;
    if (to.load() == nullptr || to.load() == reinterpret_cast<void*>(&call)) return;
    real = reinterpret_cast<Function*>(to.load());
    to.store(reinterpret_cast<void*>(&call));
  }
};

}  // namespace

extern "C" {

// For libperdure_preload.so: the process has a library of Perdure already.
PERDURE_API extern const int perdure_mpi_serves = static_cast<int>(perdure::served_abi);

[[gnu::used, gnu::visibility("hidden")]] void* perdure_first_init_call(const std::atomic<void*>* to,
                                                                       const char* name) {
  const bool serves = perdure::mpi_is_served().ok();
  perdure::AtBegin::call_all();
  PERDURE_INIT_CALLS(PERDURE_PASS_ON)
#define PERDURE_WATCH(x)                          \
  if (serves) {                                   \
    Beginning<perdure_taken_##x, false>::watch(); \
    Beginning<perdure_taken_##x, true>::watch();  \
  }
  PERDURE_INIT_CALLS(PERDURE_WATCH)
  return perdure::destination(*to, name);
}

}  // extern "C"

PERDURE_FIRST_CALLS(perdure_first_init_call)
PERDURE_INIT_CALLS(PERDURE_EXPORT_CALL)
PERDURE_LEND_JUMP
#define PERDURE_EXPORT(x, ...) PERDURE_EXPORT_LENDING(x, bind_lending_calls, false, __VA_ARGS__)
PERDURE_LENDING_CALLS(PERDURE_EXPORT)
#define PERDURE_EXPORT_ALL(x) PERDURE_EXPORT_LENDING(x, bind_lending_calls, false)
PERDURE_LENDING_ALL_CALLS(PERDURE_EXPORT_ALL)
#if MPI_VERSION >= 4
PERDURE_NEWER_LENDING_ALL_CALLS(PERDURE_EXPORT_ALL)
PERDURE_PARTITIONED_CALLS(PERDURE_EXPORT_ALL)
#define PERDURE_EXPORT_WIDE(x, ...) \
  PERDURE_EXPORT_LENDING(x##_c, bind_lending_calls, true, __VA_ARGS__)
PERDURE_LENDING_CALLS(PERDURE_EXPORT_WIDE)
#define PERDURE_EXPORT_WIDE_ALL(x) PERDURE_EXPORT_LENDING(x##_c, bind_lending_calls, true)
PERDURE_LENDING_ALL_CALLS(PERDURE_EXPORT_WIDE_ALL)
PERDURE_NEWER_LENDING_ALL_CALLS(PERDURE_EXPORT_WIDE_ALL)
#endif
