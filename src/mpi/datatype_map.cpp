// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/datatype_map.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "mpi/flatten.hpp"
#include "mpi/mpi_library.hpp"

namespace perdure {

constinit std::array<std::atomic<std::uintptr_t>, map_slots> known_runs;

namespace {

// --- predefined types ----------------------------------------------------------------------------

// Filled under the mutex, never emptied: whoever sees the number sees the map.
struct PredefinedSlot {
  std::atomic<std::uintptr_t> number = 0;
  const DatatypeMap* map = nullptr;
};
constinit std::array<PredefinedSlot, map_slots> predefined_maps;
constexpr std::size_t tries = 16;  // slots that a number may be in

const DatatypeMap* find_predefined(std::uintptr_t number) {
  for (std::size_t i = 0; i < tries; ++i) {
    const PredefinedSlot& slot = predefined_maps[(map_slot(number) + i) % map_slots];
    const std::uintptr_t there = slot.number.load(std::memory_order_acquire);
    if (there == number) return slot.map;
    if (there == 0) return nullptr;
  }
  return nullptr;
}

bool add_predefined(std::uintptr_t number, const DatatypeMap* map) {
  for (std::size_t i = 0; i < tries; ++i) {
    PredefinedSlot& slot = predefined_maps[(map_slot(number) + i) % map_slots];
    if (slot.number.load(std::memory_order_relaxed) != 0) continue;
    slot.map = map;
    slot.number.store(number, std::memory_order_release);
    if (map->contiguous) known_runs[map_slot(number)].store(number, std::memory_order_relaxed);
    return true;
  }
  return false;  // an attribute keeps it then
}

// --- derived types -------------------------------------------------------------------------------

// Grows before any map goes. What a thread remembers of derived types is good for one of its
// values.
std::atomic<std::uint64_t> maps_gone = 0;

struct Remembered {
  std::uintptr_t number = 0;
  std::uint64_t at_maps_gone = 0;
  const DatatypeMap* map = nullptr;  // null: only met, so many times
  std::uint32_t times = 0;
};
using RememberedSlots = std::array<Remembered, map_slots>;

// Not in the thread's own storage: a library that is loaded while the program runs
// (libperdure_preload.so) finds little room there.
thread_local constinit RememberedSlots* remembered = nullptr;

RememberedSlots& slots_of_thread() {
  struct AtThreadEnd {
    ~AtThreadEnd() { delete std::exchange(remembered, nullptr); }
  };
  static thread_local AtThreadEnd end;
  (void)end;
  if (remembered == nullptr) remembered = new RememberedSlots;
  return *remembered;
}

// A copy of a type is flattened when it is first used.
int copy_no_map(MPI_Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

// Must take no lock: MPI may hold its own, which flattening takes.
int delete_map(MPI_Datatype, int, void* map, void*) {
  maps_gone.fetch_add(1, std::memory_order_release);
  delete static_cast<const DatatypeMap*>(map);
  return MPI_SUCCESS;
}

// One at a time makes maps, so that no type gets two. Recursive: a type is made of others.
std::recursive_mutex& making() {
  static std::recursive_mutex mutex;
  return mutex;
}

int keyval() {  // under the mutex
  static const int made = [] {
    int key = MPI_KEYVAL_INVALID;
    PMPI_Type_create_keyval(copy_no_map, delete_map, &key, nullptr);
    return key;
  }();
  return made;
}

Result<const DatatypeMap*> find_or_make(MPI_Datatype type) {
  if (type == type_null()) {
    return Status(Code::invalid_argument, "MPI_DATATYPE_NULL has no bytes; give a datatype");
  }
  const std::lock_guard<std::recursive_mutex> lock(making());
  const std::uintptr_t number = number_of(type);
  if (const DatatypeMap* map = find_predefined(number)) return map;
  void* kept = nullptr;
  int is_kept = 0;
  PMPI_Type_get_attr(type, keyval(), &kept, &is_kept);
  if (is_kept != 0) return static_cast<const DatatypeMap*>(kept);
  PERDURE_TRY_ASSIGN(auto flattened, flatten(type, map_of));
  const bool predefined = flattened.predefined;
  auto map = std::make_unique<const DatatypeMap>(std::move(flattened.map));
  if (predefined && add_predefined(number, map.get())) return map.release();
  if (PMPI_Type_set_attr(type, keyval(), const_cast<DatatypeMap*>(map.get())) != MPI_SUCCESS) {
    return Status(Code::wrong_state, "the MPI library keeps no attribute with a datatype");
  }
  return map.release();
}

}  // namespace

const DatatypeMap* known_map(MPI_Datatype type) {
  const std::uintptr_t number = number_of(type);
  if (const DatatypeMap* map = find_predefined(number)) return map;
  if (remembered == nullptr) return nullptr;
  const Remembered& known = (*remembered)[map_slot(number)];
  const bool current = known.at_maps_gone == maps_gone.load(std::memory_order_acquire);
  return known.number == number && current ? known.map : nullptr;
}

Result<const DatatypeMap*> map_of(MPI_Datatype type) {
  if (const DatatypeMap* map = known_map(type)) return map;
  const std::uintptr_t number = number_of(type);
  // Read before the search: if a map goes meanwhile, this is forgotten at once.
  const std::uint64_t gone = maps_gone.load(std::memory_order_acquire);
  auto found = find_or_make(type);
  if (found.ok()) slots_of_thread()[map_slot(number)] = {number, gone, found.value()};
  return found;
}

// MPI has no call that asks; to pack no item of it tells.
Result<const DatatypeMap*> map_for_call(MPI_Datatype type, MPI_Comm comm) {
  PERDURE_TRY_ASSIGN(const DatatypeMap* map, map_of(type));
  if (is_known_committed(*map)) return map;
  char nothing = 0;
  int at = 0;
  if (PMPI_Pack(&nothing, 0, type, &nothing, 0, &at, comm) != MPI_SUCCESS) {
    return Status(Code::invalid_argument, "a datatype was not committed; call MPI_Type_commit");
  }
  std::atomic_ref(map->committed).store(true, std::memory_order_relaxed);
  return map;
}

std::uint32_t times_met(MPI_Datatype type) {
  const std::uintptr_t number = number_of(type);
  const std::uint64_t gone = maps_gone.load(std::memory_order_acquire);
  Remembered& known = slots_of_thread()[map_slot(number)];
  const bool current = known.at_maps_gone == gone;
  if (current && known.map != nullptr) return ~std::uint32_t{0};  // another type's, which stays
  if (!current || known.number != number) known = {number, gone, nullptr, 0};
  return ++known.times;
}

}  // namespace perdure
