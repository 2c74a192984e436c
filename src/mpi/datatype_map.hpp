// SPDX-License-Identifier: BSD-3-Clause
//
// Where the bytes of an MPI datatype lie.
//
// A map is made at the type's first use and kept with the type itself, as an attribute, so that it
// goes when the type goes: a handle that is used again for another type never finds the old map.
// Predefined types, which never go, are in a small table that is read without a lock or a call.
//
// Threads: any, as far as MPI allows calls from them. Failure: a type that is null; a type of more
// than 2^24 runs (Code::unsupported).
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/status.hpp"
#include "mpi/byte_runs.hpp"

namespace perdure {

// The map of `type`, which lives as long as the type does: a freed type lives on in types made of
// it, and in operations under way.
Result<const DatatypeMap*> map_of(MPI_Datatype type);

// Whether the type of this map is committed, as MPI has said before. Then it stays so.
inline bool is_known_committed(const DatatypeMap& map) {
  return std::atomic_ref(map.committed).load(std::memory_order_relaxed);
}
// The map of a type that MPI lets a call use, as which of `comm`, whose errors return, it is asked.
// Code::invalid_argument of one that was not committed.
Result<const DatatypeMap*> map_for_call(MPI_Datatype type, MPI_Comm comm);

// The map of `type` if it was used before by this thread, or is predefined; else null. Makes none.
const DatatypeMap* known_map(MPI_Datatype type);

// The number of a handle: MPICH's are ints, Open MPI's pointers. No datatype's is 0.
inline std::uintptr_t number_of(MPI_Datatype type) {
  std::uintptr_t number = 0;
  std::memcpy(&number, &type, sizeof(MPI_Datatype));
  return number;
}

constexpr int map_slot_bits = 8;
constexpr std::size_t map_slots = std::size_t{1} << map_slot_bits;

inline std::size_t map_slot(std::uintptr_t number) {
  return static_cast<std::size_t>((number * 0x9E3779B97F4A7C15U) >> (64 - map_slot_bits));
}

// Numbers of predefined types whose map is known, and contiguous. One may be missing.
extern constinit std::array<std::atomic<std::uintptr_t>, map_slots> known_runs;

// Whether `type` surely is predefined and one run of bytes, however many the items. For callers
// that have no time for a call.
inline bool is_known_run(MPI_Datatype type) {
  const std::uintptr_t number = number_of(type);
  return known_runs[map_slot(number)].load(std::memory_order_relaxed) == number;
}

// How often this thread asked here for a type whose map is not known, from 1; more if it can't say.
std::uint32_t times_met(MPI_Datatype type);

}  // namespace perdure
