// SPDX-License-Identifier: BSD-3-Clause
#include "window_state.hpp"

#include <string>

#include "job/pool_calls.hpp"

namespace hpccg {
namespace {

using job::check;

double* base_of(MPI_Win window) {
  double* base = nullptr;
  int found = 0;
  MPI_Win_get_attr(window, MPI_WIN_BASE, static_cast<void*>(&base), &found);
  return base;
}

}  // namespace

WindowState::WindowState(const Grid& grid, const Options& options)
    : PooledState(grid, options), twin_(mode_ == PERDURE_TWIN), points_(grid.points()) {
  make_window(grid, options);
  check(perdure_win_pool(window_, &pool_), "perdure_win_pool");
  x_ = open_array("x", points_);
  r_ = open_array("r", points_);
  open_scalars();
}

WindowState::~WindowState() {
  MPI_Win_free(&window_);
}

void WindowState::make_window(const Grid& grid, const Options& options) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  const auto set = [info](const char* key, const std::string& value) {
    MPI_Info_set(info, key, value.c_str());
  };
  set("perdure_name", "p");
  set("perdure_pool", options.pool);
  set("perdure_job", "hpccg");
  set("perdure_mode", name_of(options.protection));
  set("perdure_threads", std::to_string(options.threads));
  if (!options.emulation.model.empty()) set("perdure_emulate", options.emulation.model);
  set("perdure_delay", options.emulation.delay);
  if (options.checksum != Checksum::standard) {
    set("perdure_checksum", options.checksum == Checksum::on ? "true" : "false");
  }
  void* base = nullptr;
  MPI_Win_allocate(static_cast<MPI_Aint>(grid.points_with_halo() * sizeof(double)), sizeof(double),
                   info, MPI_COMM_WORLD, static_cast<void*>(&base), &window_);
  MPI_Info_free(&info);
}

// The window's pool was restarted when the window was made.
std::uint64_t WindowState::restore() {
  std::uint64_t version = 0;
  check(perdure_win_restart(window_, &version), "perdure_win_restart");
  check_restored(version);
  return version;
}

double* WindowState::p_of(bool working) const {
  if (!twin_) return base_of(window_);
  MPI_Win halves[2] = {MPI_WIN_NULL, MPI_WIN_NULL};
  check(perdure_win_halves(window_, &halves[0], &halves[1]), "perdure_win_halves");
  return base_of(halves[working ? 1 : 0]);
}

Vectors WindowState::source() {
  if (in_place_) return target();
  // The solver only reads what it gets from here, but its vectors have one type.
  const auto consistent = [](const perdure_array* array) {
    return static_cast<double*>(const_cast<void*>(perdure_consistent(array)));
  };
  return {consistent(x_), consistent(r_), p_of(false)};
}

Vectors WindowState::target() {
  return {static_cast<double*>(perdure_working(x_)), static_cast<double*>(perdure_working(r_)),
          p_of(true)};
}

std::vector<VectorWindow> WindowState::own_windows() {
  const auto first = static_cast<MPI_Aint>(points_);
  if (!twin_) return {{base_of(window_), window_, first}};
  MPI_Win halves[2] = {MPI_WIN_NULL, MPI_WIN_NULL};
  check(perdure_win_halves(window_, &halves[0], &halves[1]), "perdure_win_halves");
  return {{base_of(halves[0]), halves[0], first}, {base_of(halves[1]), halves[1], first}};
}

}  // namespace hpccg
