// SPDX-License-Identifier: BSD-3-Clause
#include "pool_state.hpp"

#include <cstdlib>
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

double* doubles(void* address) {
  return static_cast<double*>(address);
}

// The solver only reads what it gets from here, but its vectors have one type.
double* doubles(const void* address) {
  return doubles(const_cast<void*>(address));
}

}  // namespace

PoolState::PoolState(const Grid& grid, const Options& options)
    : protection_(options.protection),
      streams_(protection_ == Protection::twin && options.twin_store == TwinStore::stream),
      extents_{grid.nx, grid.ny, grid.nz} {
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
  open_arrays(grid, options);
}

PoolState::~PoolState() {
  perdure_close(pool_);
}

// p comes last: it is the last that an iteration writes, so async has the longest time to save it.
void PoolState::open_arrays(const Grid& grid, const Options& options) {
  if (mode_of(protection_) == PERDURE_COPY) {
    x_buffer_ = Buffer<double>(grid.points());
    r_buffer_ = Buffer<double>(grid.points());
    p_buffer_ = Buffer<double>(grid.points_with_halo());
  }
  const auto open = [&](const char* name, std::uint64_t count, double* buffer,
                        perdure_array** array) {
    const perdure_array_options with{flags_of(options.checksum), buffer};
    check(perdure_array_open(pool_, name, PERDURE_DOUBLE, 1, &count, mode_of(protection_), &with,
                             array),
          "perdure_array_open");
  };
  open("x", grid.points(), x_buffer_.get(), &x_);
  open("r", grid.points(), r_buffer_.get(), &r_);
  open("p", grid.points_with_halo(), p_buffer_.get(), &p_);
  check(perdure_scalar(pool_, "iteration", &scalars_.iteration, sizeof scalars_.iteration),
        "perdure_scalar");
  check(perdure_scalar(pool_, "rtrans", &scalars_.rtrans, sizeof scalars_.rtrans),
        "perdure_scalar");
  check(perdure_scalar(pool_, "extents", &extents_, sizeof extents_), "perdure_scalar");
}

std::uint64_t PoolState::restore() {
  const Extents asked = extents_;
  std::uint64_t version = 0;
  check(perdure_restart(pool_, &version), "perdure_restart");
  if (asked.nx != extents_.nx || asked.ny != extents_.ny || asked.nz != extents_.nz) {
    throw std::runtime_error("the pool holds a grid of other extents");
  }
  in_place_ = version == 0;
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

bool PoolState::commit_due() {
  return job::commit_due(pool_, ends_);
}

void PoolState::commit() {
  finish();
  const job::Stopwatch watch;
  if (protection_ == Protection::async) {
    check(perdure_commit_begin(pool_), "perdure_commit_begin");
    pending_ = true;
    waited_s_ = watch.seconds();
    return;
  }
  check(perdure_commit(pool_, nullptr), "perdure_commit");
  in_place_ = false;
  blocking_s_.push_back(watch.seconds());
}

void PoolState::finish() {
  if (!pending_) return;
  const job::Stopwatch watch;
  check(perdure_commit_wait(pool_, nullptr), "perdure_commit_wait");
  pending_ = false;
  blocking_s_.push_back(waited_s_ + watch.seconds());
}

std::uint64_t PoolState::committed_bytes() const {
  return job::status_of(pool_).committed_bytes;
}
std::uint64_t PoolState::model_ns() const {
  return job::status_of(pool_).model_ns;
}

}  // namespace hpccg
