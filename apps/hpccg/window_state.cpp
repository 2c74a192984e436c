// SPDX-License-Identifier: BSD-3-Clause
#include "window_state.hpp"

#include <stdexcept>
#include <string>

#include "job/pool_calls.hpp"
#include "job/stopwatch.hpp"

namespace hpccg {
namespace {

using job::check;

perdure_mode mode_of(Protection protection) {
  if (protection == Protection::twin) return PERDURE_TWIN;
  return protection == Protection::log ? PERDURE_LOG : PERDURE_COPY;
}

unsigned flags_of(Checksum checksum) {
  if (checksum == Checksum::standard) return 0;
  return checksum == Checksum::on ? PERDURE_CHECKSUM : PERDURE_NO_CHECKSUM;
}

double* base_of(MPI_Win window) {
  double* base = nullptr;
  int found = 0;
  MPI_Win_get_attr(window, MPI_WIN_BASE, static_cast<void*>(&base), &found);
  return base;
}

}  // namespace

WindowState::WindowState(const Grid& grid, const Options& options)
    : twin_(options.protection == Protection::twin),
      points_(grid.points()),
      asked_{grid.nx, grid.ny, grid.nz},
      extents_(asked_) {
  make_window(grid, options);
  check(perdure_win_pool(window_, &pool_), "perdure_win_pool");
  open_arrays(grid, options);
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

void WindowState::open_arrays(const Grid& grid, const Options& options) {
  const std::uint64_t count = grid.points();
  const perdure_array_options with{flags_of(options.checksum), nullptr};
  const auto open = [&](const char* name, perdure_array** array) {
    check(perdure_array_open(pool_, name, PERDURE_DOUBLE, 1, &count, mode_of(options.protection),
                             &with, array),
          "perdure_array_open");
  };
  open("x", &x_);
  open("r", &r_);
  const auto bind = [&](const char* name, void* address, std::size_t bytes) {
    check(perdure_scalar(pool_, name, address, bytes), "perdure_scalar");
  };
  bind("iteration", &scalars_.iteration, sizeof scalars_.iteration);
  bind("rtrans", &scalars_.rtrans, sizeof scalars_.rtrans);
  bind("extents", &extents_, sizeof extents_);
}

// The window's pool was restarted when the window was made.
std::uint64_t WindowState::restore() {
  std::uint64_t version = 0;
  check(perdure_win_restart(window_, &version), "perdure_win_restart");
  if (asked_.nx != extents_.nx || asked_.ny != extents_.ny || asked_.nz != extents_.nz) {
    throw std::runtime_error("the pool holds a grid of other extents");
  }
  in_place_ = version == 0;
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

bool WindowState::commit_due() {
  return job::commit_due(pool_, ends_);
}

void WindowState::commit() {
  const job::Stopwatch watch;
  check(perdure_commit(pool_, nullptr), "perdure_commit");
  in_place_ = false;
  blocking_s_.push_back(watch.seconds());
}

std::uint64_t WindowState::committed_bytes() const {
  return job::status_of(pool_).committed_bytes;
}
std::uint64_t WindowState::model_ns() const {
  return job::status_of(pool_).model_ns;
}

}  // namespace hpccg
