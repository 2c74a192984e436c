// SPDX-License-Identifier: BSD-3-Clause
//
// A call of MPI that Perdure takes, with its types: the MPI library's own function, and the
// function that the exported names jump to.
//
// The exported MPI_X is one indirect jump, as through a linker's table. It leads
//   to nothing         until the first such call here, which finds the MPI library's functions;
//   to the library     while nothing of its kind is Perdure's, so that nothing is added to a call,
//                      and for ever where the process has an MPI that we don't serve;
//   to Perdure's own   from the first persistent window, or cached file, on;
//   to an observer     if there is one, which calls on to where the name would lead without it.
//
// Threads: any. A thread that still jumps to the library when another makes the first window (file)
// can't have that window's (file's) handle yet.
#pragma once

#include <mpi.h>

#include <atomic>
#include <string>

#include "mpi/caller_scope.hpp"
#include "mpi/process_mpi.hpp"
#include "mpi/taken_call.hpp"

namespace perdure {

template <TakenCall& taken, typename Function>
struct Call;

template <TakenCall& taken, typename... Arguments>
struct Call<taken, int(Arguments...)> {
  using Function = int(Arguments...);

  // Finds the library's function, and leads the names to it.
  static void bind() {
    void* found = mpi_symbol((std::string("PMPI_") + taken.name).c_str());
    real = found == nullptr ? &absent : reinterpret_cast<Function*>(found);
    lead(found == nullptr ? nullptr : real);
  }
  // Null: the library has no such call, and making it fails with a sentence that says so.
  static void lead(Function* function) {
    void* to = reinterpret_cast<void*>(function);
    taken.to.store(to, std::memory_order_release);
    taken.to_profiled.store(to, std::memory_order_release);
  }
  static Function* leads_to() { return reinterpret_cast<Function*>(taken.to.load()); }
  static int absent(Arguments...) { return MPI_ERR_UNSUPPORTED_OPERATION; }

  static inline Function* real = &absent;
  static inline Function* observer = nullptr;
  static inline std::atomic<Function*> next = nullptr;  // of the observer
};

// To Perdure's own function, or back to the library's. A call that the library lacks stays so.
template <typename TheCall>
void direct(bool take, typename TheCall::Function* ours) {
  if (TheCall::real == &TheCall::absent) return;
  auto* to = take ? ours : TheCall::real;
  if (TheCall::observer == nullptr) {
    TheCall::lead(to);
  } else {
    TheCall::next.store(to, std::memory_order_release);
  }
}

// While the functions of the call's kind are bound, when no other thread can be in the call.
template <typename TheCall>
void observe(typename TheCall::Function* observer) {
  if (TheCall::real == &TheCall::absent) return;
  TheCall::next.store(TheCall::leads_to());
  TheCall::observer = observer;
  TheCall::lead(observer);
}

// `function` for a name to lead to, if it asks CallerScope who called.
template <auto function>
struct FromCaller;

template <typename... Arguments, int (*function)(Arguments...)>
struct FromCaller<function> {
  static int call(Arguments... arguments) {
    const CallerScope caller(__builtin_return_address(0));
    return function(arguments...);
  }
};

template <auto function>
inline constexpr auto from_caller = &FromCaller<function>::call;

}  // namespace perdure
