// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations: a displacement is translated, and the operation is noted.
//
// A large put or get in a passive-target epoch, between ranks of a node whose window is in the
// pool, is a copy: this process has the target's memory mapped. MPICH sends what is in the memory
// of MPI_Win_allocate_shared in messages from 64 KiB on, at a twentieth of the speed. An MPI
// library may put off taking a lock until an operation needs it, so one byte is fetched by MPI
// first, and waited for. Open MPI copies there by itself.
#include <cstring>

#include "mpi/mpi_library.hpp"
#include "rma/window_calls.hpp"

namespace perdure {
namespace {

// Where in the real window `at` of `target` is; unchanged where the window is not persistent.
// Inlined by force: as a call it would make each operation save all its arguments.
[[gnu::always_inline]] inline MPI_Aint place(MPI_Win win, int target, MPI_Aint at) {
  Window* window = find_window(win);
  return window == nullptr ? at : window->operation(target, at);
}

constexpr std::uint64_t least_copied = 16 << 10;
constexpr MPI_Count least_items = least_copied / 8;  // fewer are not looked at
#ifdef OPEN_MPI
constexpr bool mpi_copies = true;
#else
constexpr bool mpi_copies = false;
#endif

struct Transfer {
  int target;
  MPI_Aint at;
  MPI_Count count;
  MPI_Datatype type;
};

// How many bytes `count` items of a predefined type are, if they lie side by side; else 0.
std::uint64_t bytes_of(MPI_Count count, MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  int size = 0;
  MPI_Aint lowest = 0;
  MPI_Aint extent = 0;
  if (type == type_null()) return 0;  // an error that is MPI's to raise
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  if (combiner != MPI_COMBINER_NAMED || count <= 0) return 0;
  PMPI_Type_size(type, &size);
  PMPI_Type_get_extent(type, &lowest, &extent);
  if (lowest != 0 || extent != size) return 0;
  return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size);
}

// Where in this process the transfer's bytes at the target are; null: MPI is to do it.
std::byte* copied_place(const Window& window, const Transfer& transfer, std::uint64_t bytes) {
  const Exposure& exposure = window.exposure;
  if (bytes < least_copied || window.locks.load(std::memory_order_relaxed) == 0) return nullptr;
  if (static_cast<std::size_t>(transfer.target) >= exposure.targets.size()) return nullptr;
  const ExposedTarget& target = exposure.targets[static_cast<std::size_t>(transfer.target)];
  const auto at = static_cast<std::uint64_t>(transfer.at) * target.unit_bytes;
  if (transfer.at < 0 || at > target.copy_bytes || bytes > target.copy_bytes - at) return nullptr;
  std::byte* copy = window.address(static_cast<std::uint32_t>(transfer.target));
  return copy == nullptr ? nullptr : copy + at;
}

int await_lock(const Transfer& transfer, MPI_Aint place, MPI_Win win) {
  std::byte byte{};
  const int error =
      WindowCalls::Get::real(&byte, 1, type_byte(), transfer.target, place, 1, type_byte(), win);
  return error == MPI_SUCCESS ? PMPI_Win_flush(transfer.target, win) : error;
}

// Whether a put or get was done by copying, or failed in the attempt. `copy` is given the place and
// the bytes.
template <typename Copy>
bool copies(MPI_Win win, MPI_Count origin_count, MPI_Datatype origin_type, const Transfer& transfer,
            int& error, const Copy& copy) {
  if (mpi_copies || transfer.count < least_items) return false;
  Window* window = find_window(win);
  if (window == nullptr || !window->exposure.made) return false;
  if (origin_count != transfer.count || origin_type != transfer.type) return false;
  const std::uint64_t bytes = bytes_of(transfer.count, transfer.type);
  std::byte* place = copied_place(*window, transfer, bytes);
  if (place == nullptr) return false;
  error = await_lock(transfer, window->operation(transfer.target, transfer.at), win);
  if (error == MPI_SUCCESS) copy(place, bytes);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before whatever MPI says of its end
  return true;
}

}  // namespace

int put(const void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
        int target_count, MPI_Datatype target_type, MPI_Win win) {
  int error = MPI_SUCCESS;
  const auto copy = [&](std::byte* to, std::uint64_t bytes) { std::memcpy(to, origin, bytes); };
  if (copies(win, origin_count, origin_type, {target, at, target_count, target_type}, error,
             copy)) {
    return error;
  }
  return WindowCalls::Put::real(origin, origin_count, origin_type, target, place(win, target, at),
                                target_count, target_type, win);
}

int get(void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
        int target_count, MPI_Datatype target_type, MPI_Win win) {
  int error = MPI_SUCCESS;
  const auto copy = [&](std::byte* from, std::uint64_t bytes) { std::memcpy(origin, from, bytes); };
  if (copies(win, origin_count, origin_type, {target, at, target_count, target_type}, error,
             copy)) {
    return error;
  }
  return WindowCalls::Get::real(origin, origin_count, origin_type, target, place(win, target, at),
                                target_count, target_type, win);
}

int accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, int target,
               MPI_Aint at, int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
  return WindowCalls::Accumulate::real(origin, origin_count, origin_type, target,
                                       place(win, target, at), target_count, target_type, op, win);
}

int get_accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, void* result,
                   int result_count, MPI_Datatype result_type, int target, MPI_Aint at,
                   int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
  return WindowCalls::Get_accumulate::real(origin, origin_count, origin_type, result, result_count,
                                           result_type, target, place(win, target, at),
                                           target_count, target_type, op, win);
}

int fetch_and_op(const void* origin, void* result, MPI_Datatype type, int target, MPI_Aint at,
                 MPI_Op op, MPI_Win win) {
  return WindowCalls::Fetch_and_op::real(origin, result, type, target, place(win, target, at), op,
                                         win);
}

int compare_and_swap(const void* origin, const void* compare, void* result, MPI_Datatype type,
                     int target, MPI_Aint at, MPI_Win win) {
  return WindowCalls::Compare_and_swap::real(origin, compare, result, type, target,
                                             place(win, target, at), win);
}

int rput(const void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
         int target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  return WindowCalls::Rput::real(origin, origin_count, origin_type, target, place(win, target, at),
                                 target_count, target_type, win, request);
}

int rget(void* origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
         int target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  return WindowCalls::Rget::real(origin, origin_count, origin_type, target, place(win, target, at),
                                 target_count, target_type, win, request);
}

int raccumulate(const void* origin, int origin_count, MPI_Datatype origin_type, int target,
                MPI_Aint at, int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win,
                MPI_Request* request) {
  return WindowCalls::Raccumulate::real(origin, origin_count, origin_type, target,
                                        place(win, target, at), target_count, target_type, op, win,
                                        request);
}

int rget_accumulate(const void* origin, int origin_count, MPI_Datatype origin_type, void* result,
                    int result_count, MPI_Datatype result_type, int target, MPI_Aint at,
                    int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win,
                    MPI_Request* request) {
  return WindowCalls::Rget_accumulate::real(origin, origin_count, origin_type, result, result_count,
                                            result_type, target, place(win, target, at),
                                            target_count, target_type, op, win, request);
}

#if MPI_VERSION >= 4
int put_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
          MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Win win) {
  int error = MPI_SUCCESS;
  const auto copy = [&](std::byte* to, std::uint64_t bytes) { std::memcpy(to, origin, bytes); };
  if (copies(win, origin_count, origin_type, {target, at, target_count, target_type}, error,
             copy)) {
    return error;
  }
  return WindowCalls::Put_c::real(origin, origin_count, origin_type, target, place(win, target, at),
                                  target_count, target_type, win);
}

int get_c(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
          MPI_Count target_count, MPI_Datatype target_type, MPI_Win win) {
  int error = MPI_SUCCESS;
  const auto copy = [&](std::byte* from, std::uint64_t bytes) { std::memcpy(origin, from, bytes); };
  if (copies(win, origin_count, origin_type, {target, at, target_count, target_type}, error,
             copy)) {
    return error;
  }
  return WindowCalls::Get_c::real(origin, origin_count, origin_type, target, place(win, target, at),
                                  target_count, target_type, win);
}

int accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                 MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                 MPI_Win win) {
  return WindowCalls::Accumulate_c::real(origin, origin_count, origin_type, target,
                                         place(win, target, at), target_count, target_type, op,
                                         win);
}

int get_accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
                     void* result, MPI_Count result_count, MPI_Datatype result_type, int target,
                     MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                     MPI_Win win) {
  return WindowCalls::Get_accumulate_c::real(
      origin, origin_count, origin_type, result, result_count, result_type, target,
      place(win, target, at), target_count, target_type, op, win);
}

int rput_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
           MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Win win,
           MPI_Request* request) {
  return WindowCalls::Rput_c::real(origin, origin_count, origin_type, target,
                                   place(win, target, at), target_count, target_type, win, request);
}

int rget_c(void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint at,
           MPI_Count target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  return WindowCalls::Rget_c::real(origin, origin_count, origin_type, target,
                                   place(win, target, at), target_count, target_type, win, request);
}

int raccumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                  MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                  MPI_Win win, MPI_Request* request) {
  return WindowCalls::Raccumulate_c::real(origin, origin_count, origin_type, target,
                                          place(win, target, at), target_count, target_type, op,
                                          win, request);
}

int rget_accumulate_c(const void* origin, MPI_Count origin_count, MPI_Datatype origin_type,
                      void* result, MPI_Count result_count, MPI_Datatype result_type, int target,
                      MPI_Aint at, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op,
                      MPI_Win win, MPI_Request* request) {
  return WindowCalls::Rget_accumulate_c::real(
      origin, origin_count, origin_type, result, result_count, result_type, target,
      place(win, target, at), target_count, target_type, op, win, request);
}

#endif

}  // namespace perdure
