// SPDX-License-Identifier: BSD-3-Clause
//
// Tests that an MPI fails, or hangs in, by itself: each was seen to without Perdure. Such a test is
// skipped with the reason; PERDURE_KNOWN_FAILURES=run runs it all the same, and
// `rma_suite.FLAVOUR --known-failures` prints this table.
#include <cstdlib>

#include "suite.hpp"

namespace suite {
namespace {

constexpr const char* mpich_4_0 = "MPICH Version:\t4.0";
constexpr const char* mpich = "MPICH Version:";  // 4.0 and 5.0
constexpr const char* open_mpi = "Open MPI v";   // 4.1 and 5.0
constexpr const char* open_mpi_4_1 = "Open MPI v4.1";

constexpr const char* hangs_in_unlock =
    "MPI_Win_unlock hangs when all ranks hold locks on all ranks of memory that is the user's";

bool matches(const char* pattern, const char* text) {
  if (*pattern == '\0') return *text == '\0';
  if (*pattern == '*') {
    return matches(pattern + 1, text) || (*text != '\0' && matches(pattern, text + 1));
  }
  return *pattern == *text && matches(pattern + 1, text + 1);
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return text.data();
}

bool wanted_all_the_same() {
  const char* value = std::getenv("PERDURE_KNOWN_FAILURES");
  return value != nullptr && std::string(value) == "run";
}

}  // namespace

const std::vector<KnownFailure>& known_failures() {
  static const std::vector<KnownFailure> table{
      {mpich_4_0, "Making.allocated_sizes_need_not_be_round", 0,
       "MPI_Win_allocate puts the memory of ranks from 1 on at another address than it returns, "
       "unless sizes are multiples of 16 bytes"},
      {mpich, "Errors.an_unknown_assertion_is_raised_at_the_window", 0,
       "the error class is MPI_ERR_ARG"},
      {mpich, "Errors.an_unknown_kind_of_lock_is_raised_at_the_window", 0,
       "the error class is MPI_ERR_ARG"},
      {open_mpi, "Errors.a_transfer_outside_of_an_epoch_is_raised_at_the_window", 0,
       "is not noticed"},
      {open_mpi, "Errors.a_transfer_after_the_last_epoch_is_raised_at_the_window", 0,
       "is not noticed"},
      {open_mpi, "Errors.an_unlock_without_a_lock_is_raised_at_the_window", 0, "is not noticed"},
      {open_mpi_4_1, "*Random.*/created", 4, hangs_in_unlock},
      {open_mpi_4_1, "*Random.*/dynamic", 4, hangs_in_unlock},
      {open_mpi_4_1, "*Strided.*/created", 4, hangs_in_unlock},
      {open_mpi_4_1, "*Strided.accumulates*", 0,
       "accumulates of derived datatypes come to a wrong place, or crash"},
      {open_mpi_4_1, "*Strided.*many_items*", 0,
       "of a large transfer of many items with gaps some go to, or come from, a wrong place"},
  };
  return table;
}

const char* known_failure(const std::string& test) {
  if (wanted_all_the_same()) return nullptr;
  for (const KnownFailure& failure : known_failures()) {
    if (library_version().find(failure.version_text) == std::string::npos) continue;
    if (failure.ranks != 0 && failure.ranks != ranks()) continue;
    if (matches(failure.test, test.c_str())) return failure.reason;
  }
  return nullptr;
}

}  // namespace suite
