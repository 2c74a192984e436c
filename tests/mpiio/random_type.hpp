// SPDX-License-Identifier: BSD-3-Clause
//
// MPI datatypes drawn at random, with every constructor.
//
// The types that a type is made of are freed, so that only the type itself, which the caller frees,
// keeps them. All ranks that draw from equal generators get equal types. Errors of MPI end the job.
#ifndef PERDURE_TESTS_MPIIO_RANDOM_TYPE_HPP
#define PERDURE_TESTS_MPIIO_RANDOM_TYPE_HPP

#include <mpi.h>

#include <cstdint>
#include <random>
#include <string>

namespace mpiio_test {

class Draw {
 public:
  // With `large_counts`, types are made by large-count constructors too. ROMIO of MPICH 4.0 can't
  // read how those were made, and ends the job, so what a file is asked to move is made without.
  explicit Draw(std::uint64_t seed, bool large_counts = false)
      : with_large_counts(large_counts), engine_(seed) {}

  const bool with_large_counts;

  int between(int first, int last) {  // both may come
    const auto many = static_cast<std::uint64_t>(last - first + 1);
    return first + static_cast<int>(engine_() % many);
  }
  bool once_in(int times) { return between(1, times) == 1; }
  std::uint64_t bits() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// A committed type, and how it was made.
struct DrawnType {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::string text;

  // Whether the word is in the text; "(" is in that of every derived type.
  bool made_by(const char* word) const { return text.find(word) != std::string::npos; }
};

// Any type: offsets may be negative, out of order, and the same twice; it may carry nothing.
DrawnType draw_type(Draw& draw, int depth);

// The unit of a file view; all of these types are derived ones, to be freed.
DrawnType draw_etype(Draw& draw);

// A filetype of whole etypes: offsets are not negative, increase, and repetitions of the type don't
// overlap. It carries at least one etype.
DrawnType draw_filetype(Draw& draw, const DrawnType& etype, int depth);

}  // namespace mpiio_test
#endif
