// SPDX-License-Identifier: BSD-3-Clause
//
// What a window says of itself: as the program asked for it, where the real window differs.
#include <string>

#include "mpi/info.hpp"
#include "mpi/mpi_library.hpp"
#include "rma/window_calls.hpp"
#include "rma/window_pool.hpp"

namespace perdure {
namespace {

// A rank's memory; MPI_PROC_NULL means the lowest rank that has any.
const ExposedTarget* find_target(const Window& window, int rank, std::uint32_t* found) {
  const auto& targets = window.exposure.targets;
  if (rank != MPI_PROC_NULL) {
    if (rank < 0 || static_cast<std::size_t>(rank) >= targets.size()) return nullptr;
    *found = static_cast<std::uint32_t>(rank);
    return &targets[*found];
  }
  for (*found = 0; *found + 1 < targets.size(); ++*found) {
    if (targets[*found].copy_bytes != 0) break;
  }
  return &targets[*found];
}

template <typename Unit>
int query_exposed(const Window& window, int rank, MPI_Aint* size, Unit* disp_unit, void* base) {
  if (window.flavor != WindowFlavor::shared) {
    return raise_on_window(window.handle, {Code::invalid_argument,
                                           "MPI_Win_shared_query of a window that MPI_Win_allocate_"
                                           "shared did not make"});
  }
  std::uint32_t found = 0;
  const ExposedTarget* target = find_target(window, rank, &found);
  if (target == nullptr) {
    return raise_on_window(window.handle,
                           {Code::invalid_argument, "no rank " + std::to_string(rank) + " here"});
  }
  *size = static_cast<MPI_Aint>(target->copy_bytes);
  *disp_unit = static_cast<Unit>(target->unit_bytes);
  *static_cast<void**>(base) = window.exposure.address(found, window.copy());
  return MPI_SUCCESS;
}

// Changes what may change while a window lives; the rest must be as it is.
Status change_options(Window& window, const KeyValues& keys) {
  auto rule = keys.find("perdure_commit");
  if (rule != keys.end()) {
    PERDURE_TRY_ASSIGN(window.options.commit, parse_commit_rule(rule->second));
    window.options.given[rule->first] = rule->second;
  }
  for (const auto& [key, value] : keys) {
    if (!key.starts_with("perdure_") || key == "perdure_commit") continue;
    const auto known = window.options.given.find(key);
    if (known != window.options.given.end() && known->second == value) continue;
    return Status(Code::invalid_argument, key, "='", value,
                  "' can't be changed while the window exists; only perdure_commit can");
  }
  return Status::success();
}

}  // namespace

int win_shared_query(MPI_Win win, int rank, MPI_Aint* size, int* disp_unit, void* base) {
  const Window* window = find_window(win);
  if (window == nullptr || !window->in_pool()) {
    return WindowCalls::Win_shared_query::real(win, rank, size, disp_unit, base);
  }
  return query_exposed(*window, rank, size, disp_unit, base);
}

#if MPI_VERSION >= 4
int win_shared_query_c(MPI_Win win, int rank, MPI_Aint* size, MPI_Aint* disp_unit, void* base) {
  const Window* window = find_window(win);
  if (window == nullptr || !window->in_pool()) {
    return WindowCalls::Win_shared_query_c::real(win, rank, size, disp_unit, base);
  }
  return query_exposed(*window, rank, size, disp_unit, base);
}
#endif

int win_get_attr(MPI_Win win, int keyval, void* value, int* flag) {
  Window* window = find_window(win);
  if (window == nullptr || !window->in_pool())
    return WindowCalls::Win_get_attr::real(win, keyval, value, flag);
  if (keyval == MPI_WIN_BASE) {
    *static_cast<void**>(value) = window->base();
  } else if (keyval == MPI_WIN_SIZE) {
    *static_cast<MPI_Aint**>(value) = &window->size_bytes;
  } else if (keyval == MPI_WIN_DISP_UNIT) {
    *static_cast<int**>(value) = &window->disp_unit;
  } else if (keyval == MPI_WIN_CREATE_FLAVOR) {
    *static_cast<int**>(value) = &window->create_flavor;
  } else {
    return WindowCalls::Win_get_attr::real(win, keyval, value, flag);
  }
  *flag = 1;
  return MPI_SUCCESS;
}

int win_get_info(MPI_Win win, MPI_Info* info) {
  const int error = WindowCalls::Win_get_info::real(win, info);
  const Window* window = find_window(win);
  if (error != MPI_SUCCESS || window == nullptr) return error;
  for (const auto& [key, value] : window->options.given) {
    PMPI_Info_set(*info, key.c_str(), value.c_str());
  }
  return MPI_SUCCESS;
}

int win_set_info(MPI_Win win, MPI_Info info) {
  Window* window = find_window(win);
  if (window == nullptr) return WindowCalls::Win_set_info::real(win, info);
  if (Status changed = change_options(*window, read_info(info)); !changed.ok()) {
    return raise_on_window(win, changed);
  }
  return WindowCalls::Win_set_info::real(win, info);
}

}  // namespace perdure
