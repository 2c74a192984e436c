// SPDX-License-Identifier: BSD-3-Clause
#include "pool_state.hpp"

#include <cstdlib>
#include <string>

#include "job/pool_calls.hpp"
#include "job/stopwatch.hpp"

namespace hpccg {
namespace {

using job::check;

double* doubles(void* address) {
  return static_cast<double*>(address);
}

// The solver only reads what it gets from here, but its vectors have one type.
double* doubles(const void* address) {
  return doubles(const_cast<void*>(address));
}

}  // namespace

PoolState::PoolState(const Grid& grid, const Options& options)
    : PooledState(grid, options),
      async_(options.protection == Protection::async),
      streams_(mode_ == PERDURE_TWIN && options.twin_store == TwinStore::stream) {
  // The library reads it where it opens the pool.
  if (!options.commit_plan.empty()) {
    setenv("PERDURE_ENERGY_PLAN", options.commit_plan.c_str(), 1);
  }
  perdure_options open{};
  open.job = "hpccg";
  const job::Emulation& emulation = options.emulation;
  open.emulate = emulation.model.empty() ? nullptr : emulation.model.c_str();
  open.delay = emulation.mode();
  open.copy_threads = options.threads;
  check(perdure_open_mpi(MPI_COMM_WORLD, options.pool.c_str(), &open, &pool_), "perdure_open_mpi");
  open_arrays(grid);
}

PoolState::~PoolState() {
  perdure_close(pool_);
}

// p comes last: it is the last that an iteration writes, so async has the longest time to save it.
void PoolState::open_arrays(const Grid& grid) {
  if (mode_ == PERDURE_COPY) {
    x_buffer_ = Buffer<double>(grid.points());
    r_buffer_ = Buffer<double>(grid.points());
    p_buffer_ = Buffer<double>(grid.points_with_halo());
  }
  x_ = open_array("x", grid.points(), x_buffer_.get());
  r_ = open_array("r", grid.points(), r_buffer_.get());
  p_ = open_array("p", grid.points_with_halo(), p_buffer_.get());
  open_scalars();
}

std::uint64_t PoolState::restore() {
  std::uint64_t version = 0;
  check(perdure_restart(pool_, &version), "perdure_restart");
  check_restored(version);
  return version;
}

Vectors PoolState::source() {
  if (in_place_) return target();
  return {doubles(perdure_consistent(x_)), doubles(perdure_consistent(r_)),
          doubles(perdure_consistent(p_))};
}

Vectors PoolState::target() {
  return {doubles(perdure_working(x_)), doubles(perdure_working(r_)), doubles(perdure_working(p_))};
}

std::vector<double*> PoolState::windows() {
  double* working = doubles(perdure_working(p_));
  double* consistent = doubles(perdure_consistent(p_));
  if (working == consistent) return {working};
  // Every rank must name the copies in the same order, and their roles alternate alike on all.
  return {working, consistent};
}

void PoolState::store(VectorName name, std::size_t first, std::size_t count, const double* block) {
  perdure_array* array = name == VectorName::x ? x_ : name == VectorName::r ? r_ : p_;
  check(perdure_write(array, first, count, block), "perdure_write");
}

void PoolState::before_writing_x_and_r() {
  if (!pending_) return;
  const job::Stopwatch watch;
  check(perdure_before_write(x_), "perdure_before_write");
  check(perdure_before_write(r_), "perdure_before_write");
  waited_s_ += watch.seconds();
}

void PoolState::before_writing_p() {
  if (!pending_) return;
  const job::Stopwatch watch;
  check(perdure_before_write(p_), "perdure_before_write");
  waited_s_ += watch.seconds();
}

void PoolState::commit() {
  finish();
  if (!async_) return PooledState::commit();
  const job::Stopwatch watch;
  check(perdure_commit_begin(pool_), "perdure_commit_begin");
  pending_ = true;
  waited_s_ = watch.seconds();
}

void PoolState::finish() {
  if (!pending_) return;
  const job::Stopwatch watch;
  check(perdure_commit_wait(pool_, nullptr), "perdure_commit_wait");
  pending_ = false;
  blocking_s_.push_back(waited_s_ + watch.seconds());
}

}  // namespace hpccg
