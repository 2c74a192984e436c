// A call of MPI that Perdure takes: the MPI library's own function, and the function that the
// exported name jumps to.
//
// The exported MPI_X is one indirect jump, as through a linker's table. It leads
//   to first_call      until the first such call here, which finds the MPI library's functions;
//   to the library     while nothing of its kind is Perdure's, so that nothing is added to a call;
//   to Perdure's own   from the first persistent window, or cached file, on;
//   to an observer     if there is one, which calls on to where the name would lead without it.
//
// Threads: any. A thread that still jumps to the library when another makes the first window (file)
// can't have that window's (file's) handle yet.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "mpi/mpi_library.hpp"

namespace perdure {

template <std::size_t length>
struct CallName {
  char text[length];
  consteval CallName(const char (&from)[length]) {  // NOLINT(google-explicit-constructor)
    std::copy_n(from, length, text);
  }
};

// `bind_family` finds the functions of all calls of a kind, and directs them. Idempotent.
template <CallName name, typename Function, void (*bind_family)()>
struct Call;

template <CallName name, typename... Arguments, void (*bind_family)()>
struct Call<name, int(Arguments...), bind_family> {
  using Function = int(Arguments...);

  static int first_call(Arguments... arguments) {
    bind_family();
    return entry.load(std::memory_order_relaxed)(arguments...);
  }

  // Finds the library's function. An MPI library that lacks it is told so if it's ever called.
  static void bind() {
    void* found = mpi_symbol(name.text);
    real = found == nullptr ? &absent : reinterpret_cast<Function*>(found);
    entry.store(real, std::memory_order_relaxed);
  }
  static int absent(Arguments...) { return MPI_ERR_UNSUPPORTED_OPERATION; }

  static inline Function* real = nullptr;
  static inline std::atomic<Function*> entry = &first_call;
  static inline Function* observer = nullptr;
  static inline std::atomic<Function*> next = nullptr;  // of the observer
};

template <typename... Calls>
void bind_calls() {
  (Calls::bind(), ...);
}

// To Perdure's own function, or back to the library's.
template <typename TheCall>
void direct(bool take, typename TheCall::Function* ours) {
  auto& jump = TheCall::observer == nullptr ? TheCall::entry : TheCall::next;
  jump.store(take ? ours : TheCall::real, std::memory_order_release);
}

// While the functions of the call's kind are bound, when no other thread can be in the call.
template <typename TheCall>
void observe(typename TheCall::Function* observer) {
  TheCall::next.store(TheCall::entry.load());
  TheCall::observer = observer;
  TheCall::entry.store(observer, std::memory_order_release);
}

}  // namespace perdure
