// SPDX-License-Identifier: BSD-3-Clause
//
// A large-count call of MPI 4 where the MPI library has only the one with int counts: X_c leads to
// X, as long as the counts fit.
//
// That is needed because a library that defines MPI_X_c for all MPIs makes programs believe in it
// that would find out otherwise (mpi4py does, by weak references).
//
// The types of MPI are not known here: an argument is what a register or a place on the stack
// holds. A function is declared to have as many as any call has; those beyond its own are not
// looked at, and are in the caller's frame.
//
// Threads: any. Failure: MPI_ERR_COUNT, which is 2 in every MPI, if a count is too large.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>

#include "mpi/taken_call.hpp"

namespace perdure {

using Word = std::int64_t;
constexpr int err_count = 2;

// The numbers of the arguments that are int in the narrow call, beginning with 0.
struct Narrowed {
  unsigned mask = 0;
  int result = -1;  // a pointer to one, which the call sets
};
consteval Narrowed counts(std::initializer_list<int> arguments, int result = -1) {
  Narrowed narrowed{0, result};
  for (const int argument : arguments) narrowed.mask |= 1U << static_cast<unsigned>(argument);
  return narrowed;
}

inline bool counts_fit(unsigned mask, const Word* arguments) {
  for (unsigned i = 0; mask >> i != 0; ++i) {
    if ((mask >> i & 1U) != 0 && (arguments[i] < std::numeric_limits<int>::min() ||
                                  arguments[i] > std::numeric_limits<int>::max())) {
      return false;
    }
  }
  return true;
}

template <TakenCall& narrow, unsigned mask, int result>
int narrow_call(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j,
                Word k, Word l, Word m) {
  using Function =
      int(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
  Word given[] = {a, b, c, d, e, f, g, h, i, j, k, l, m};
  if (!counts_fit(mask, given)) return err_count;
  [[maybe_unused]] Word* place = nullptr;
  [[maybe_unused]] int value = 0;
  if constexpr (result >= 0) {
    place = reinterpret_cast<Word*>(given[result]);
    if (place != nullptr) given[result] = reinterpret_cast<Word>(&value);
  }
  auto* call = reinterpret_cast<Function*>(narrow.to.load(std::memory_order_relaxed));
  const int error = call(given[0], given[1], given[2], given[3], given[4], given[5], given[6],
                         given[7], given[8], given[9], given[10], given[11], given[12]);
  if constexpr (result >= 0) {
    if (place != nullptr && error == 0) *place = value;
  }
  return error;
}

// After the calls were bound, or passed on.
template <TakenCall& wide, TakenCall& narrow, Narrowed narrowed>
void narrow_if_absent() {
  if (wide.to.load() != nullptr || narrow.to.load() == nullptr) return;
  void* call = reinterpret_cast<void*>(&narrow_call<narrow, narrowed.mask, narrowed.result>);
  wide.to.store(call);
  wide.to_profiled.store(call);
}

// For the lists of large-count calls, taken_calls.hpp.
#define PERDURE_NARROW_IF_ABSENT(x, narrow, ...) \
  perdure::narrow_if_absent<perdure_taken_##x, perdure_taken_##narrow, perdure::__VA_ARGS__>();

}  // namespace perdure
