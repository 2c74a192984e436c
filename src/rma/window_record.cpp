// SPDX-License-Identifier: BSD-3-Clause
#include "rma/window_record.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "mpi/at_finalize.hpp"
#include "mpi/caller_scope.hpp"
#include "mpi/handle_table.hpp"
#include "mpi/mpi_library.hpp"
#include "mpi/record_line.hpp"
#include "rma/mpi_calls.hpp"

namespace perdure {
namespace {

struct WindowRecord {
  const char* kind = "";
  std::uint64_t bytes = 0;
  std::uint64_t made_ns = 0;
  int ranks = 1;
  std::atomic<std::uint64_t> fences = 0;
  std::atomic<std::uint64_t> unlocks = 0;  // of passive epochs, flushes too
  std::atomic<std::uint64_t> completes = 0;
};

HandleTable<MPI_Win, WindowRecord> recorded_windows;
std::mutex unfreed_mutex;
std::set<WindowRecord*> unfreed;

std::string window_line(const WindowRecord& record) {
  int rank = 0;
  PMPI_Comm_rank(comm_world(), &rank);
  const double open_s = static_cast<double>(monotonic_ns() - record.made_ns) * 1e-9;
  const auto count = [](const char* name, std::uint64_t value) {
    return std::string(",\"") + name + "\":" + std::to_string(value);
  };
  return std::string("{\"window\":\"") + record.kind + "\"" + count("bytes", record.bytes) +
         count("rank", static_cast<std::uint64_t>(rank)) +
         count("ranks", static_cast<std::uint64_t>(record.ranks)) + count("fences", record.fences) +
         count("unlocks", record.unlocks) + count("completes", record.completes) +
         ",\"open_s\":" + std::to_string(open_s) + "}";
}

void end_unfreed() {
  const std::lock_guard<std::mutex> lock(unfreed_mutex);
  for (const WindowRecord* record : unfreed) append_line(record_variable, window_line(*record));
  unfreed.clear();  // they stay in the table, which calls until the end of MPI look into
}

int note_made(int error, const char* kind, MPI_Aint bytes, MPI_Comm comm, const MPI_Win* win,
              bool ours) {
  if (error != MPI_SUCCESS || !ours) return error;
  auto record = std::make_unique<WindowRecord>();
  record->kind = kind;
  record->bytes = bytes < 0 ? 0 : static_cast<std::uint64_t>(bytes);
  record->made_ns = monotonic_ns();
  PMPI_Comm_size(comm, &record->ranks);
  at_finalize<end_unfreed>();
  if (!recorded_windows.add(*win, record.get()).ok()) return error;
  const std::lock_guard<std::mutex> lock(unfreed_mutex);
  unfreed.insert(record.release());  // until the window is freed
  return error;
}

template <typename TheCall, typename Unit>
int recorded_create(void* base, MPI_Aint size, Unit unit, MPI_Info info, MPI_Comm comm,
                    MPI_Win* win) {
  const bool ours = !CallerScope::from_library();
  const int error = TheCall::next.load()(base, size, unit, info, comm, win);
  return note_made(error, "create", size, comm, win, ours);
}

template <typename TheCall, const char* kind, typename Unit>
int recorded_allocate(MPI_Aint size, Unit unit, MPI_Info info, MPI_Comm comm, void* base,
                      MPI_Win* win) {
  const bool ours = !CallerScope::from_library();
  const int error = TheCall::next.load()(size, unit, info, comm, base, win);
  return note_made(error, kind, size, comm, win, ours);
}

int recorded_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  const bool ours = !CallerScope::from_library();
  const int error = WindowCalls::Win_create_dynamic::next.load()(info, comm, win);
  return note_made(error, "dynamic", 0, comm, win, ours);
}

int recorded_free(MPI_Win* win) {
  const std::unique_ptr<WindowRecord> record(win == nullptr ? nullptr
                                                            : recorded_windows.find(*win));
  if (record != nullptr) {
    recorded_windows.remove(*win);
    const std::lock_guard<std::mutex> lock(unfreed_mutex);
    unfreed.erase(record.get());
  }
  const int error = WindowCalls::Win_free::next.load()(win);
  if (record != nullptr) append_line(record_variable, window_line(*record));
  return error;
}

// Calls that end an epoch.
template <typename TheCall, std::atomic<std::uint64_t> WindowRecord::* counter>
int counted(int argument, MPI_Win win) {
  if (WindowRecord* record = recorded_windows.find(win)) (record->*counter).fetch_add(1);
  return TheCall::next.load()(argument, win);
}

template <typename TheCall, std::atomic<std::uint64_t> WindowRecord::* counter>
int counted_all(MPI_Win win) {
  if (WindowRecord* record = recorded_windows.find(win)) (record->*counter).fetch_add(1);
  return TheCall::next.load()(win);
}

constexpr char kind_allocate[] = "allocate";
constexpr char kind_shared[] = "shared";

template <typename Create, typename Allocate, typename Shared, typename Unit>
void observe_creation() {
  observe<Create>(from_caller<recorded_create<Create, Unit>>);
  observe<Allocate>(from_caller<recorded_allocate<Allocate, kind_allocate, Unit>>);
  observe<Shared>(from_caller<recorded_allocate<Shared, kind_shared, Unit>>);
}

}  // namespace

void record_window_calls() {
  if (environment(record_variable).empty()) return;
  using Calls = WindowCalls;
  observe_creation<Calls::Win_create, Calls::Win_allocate, Calls::Win_allocate_shared, int>();
#if MPI_VERSION >= 4
  observe_creation<Calls::Win_create_c, Calls::Win_allocate_c, Calls::Win_allocate_shared_c,
                   MPI_Aint>();
#endif
  observe<Calls::Win_create_dynamic>(from_caller<recorded_dynamic>);
  observe<Calls::Win_free>(recorded_free);
  observe<Calls::Win_fence>(counted<Calls::Win_fence, &WindowRecord::fences>);
  observe<Calls::Win_unlock>(counted<Calls::Win_unlock, &WindowRecord::unlocks>);
  observe<Calls::Win_unlock_all>(counted_all<Calls::Win_unlock_all, &WindowRecord::unlocks>);
  observe<Calls::Win_flush_all>(counted_all<Calls::Win_flush_all, &WindowRecord::unlocks>);
  observe<Calls::Win_complete>(counted_all<Calls::Win_complete, &WindowRecord::completes>);
}

}  // namespace perdure
