// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lending.hpp"

#include <mpi.h>

#include <cstring>

#include "base/guests.hpp"
#include "mpi/process_mpi.hpp"
#include "mpi/served_mpi.hpp"

namespace perdure {
namespace {

#if defined(__x86_64__)
unsigned long argument(const unsigned long* registers, int place) {
  return registers[5 - place];
}
const void* return_address(const unsigned long* registers) {
  return reinterpret_cast<const void*>(registers[7]);
}
#else
unsigned long argument(const unsigned long* registers, int place) {
  return registers[2 + place];
}
const void* return_address(const unsigned long* registers) {
  return reinterpret_cast<const void*>(registers[1]);
}
#endif

// Of a type of MPI's own, bytes from one item to the next; -1: it is another.
MPI_Aint extent_of(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS ||
      combiner != MPI_COMBINER_NAMED ||
      PMPI_Type_get_extent(type, &lower, &extent) != MPI_SUCCESS || lower != 0) {
    return -1;
  }
  return extent;
}

void lend_what(const LendingCall& call, const unsigned long* registers) {
  if (call.first < 0) {
    if (!in_mpi_library(return_address(registers))) lend_all();
    return;
  }
  MPI_Datatype type{};
  const unsigned long given = argument(registers, call.type);
  std::memcpy(&type, &given, sizeof type);
  const MPI_Aint extent = extent_of(type);
  if (extent < 0) return lend_all();
  const unsigned long word = argument(registers, call.count);
  const std::uint64_t count = call.wide ? word : static_cast<std::uint32_t>(word);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &bytes)) return;
  for (const int buffer : {call.first, call.second}) {
    if (buffer < 0) continue;
    const std::uintptr_t low = argument(registers, buffer);
    lend(low, low + bytes);  // MPI_IN_PLACE and the like are no memory of an object's
  }
}

}  // namespace
}  // namespace perdure

extern "C" void* perdure_lend(const perdure::LendingCall* call, const unsigned long* registers,
                              const std::atomic<void*>* to) {
  using namespace perdure;
  if (to->load(std::memory_order_acquire) == nullptr) call->bind();
  if (mpi_is_served().ok()) lend_what(*call, registers);
  return destination(*to, call->name);
}
