// SPDX-License-Identifier: BSD-3-Clause
//
// Pooled state: what is the same whether p is an array of a pool or a window that has one. x, r and
// the scalars are in the pool, with the extents of the grid that they belong to.
#pragma once

#include <stdexcept>

#include "job/pool_calls.hpp"
#include "job/stopwatch.hpp"
#include "perdure/perdure_mpi.h"
#include "state.hpp"

namespace hpccg {

inline perdure_mode mode_of(Protection protection) {
  if (protection == Protection::twin) return PERDURE_TWIN;
  return protection == Protection::log ? PERDURE_LOG : PERDURE_COPY;
}

inline unsigned flags_of(Checksum checksum) {
  if (checksum == Checksum::standard) return 0;
  return checksum == Checksum::on ? PERDURE_CHECKSUM : PERDURE_NO_CHECKSUM;
}

class PooledState : public State {
 public:
  PooledState(const Grid& grid, const Options& options)
      : mode_(mode_of(options.protection)),
        flags_(flags_of(options.checksum)),
        asked_{grid.nx, grid.ny, grid.nz},
        extents_(asked_) {}

  void advance() override { in_place_ = true; }
  bool commit_due() override { return job::commit_due(pool_, ends_); }
  void commit() override {
    const job::Stopwatch watch;
    job::check(perdure_commit(pool_, nullptr), "perdure_commit");
    in_place_ = false;
    blocking_s_.push_back(watch.seconds());
  }
  std::uint64_t committed_bytes() const override { return job::status_of(pool_).committed_bytes; }
  std::uint64_t model_ns() const override { return job::status_of(pool_).model_ns; }

 protected:
  struct Extents {
    std::uint64_t nx, ny, nz;
  };

  // With a buffer, that of the application.
  perdure_array* open_array(const char* name, std::uint64_t count, double* buffer = nullptr) {
    const perdure_array_options with{flags_, buffer, 0, nullptr};
    perdure_array* array = nullptr;
    job::check(perdure_array_open(pool_, name, PERDURE_DOUBLE, 1, &count, mode_, &with, &array),
               "perdure_array_open");
    return array;
  }

  void open_scalars() {
    const auto bind = [&](const char* name, auto& value) {
      job::check(perdure_scalar(pool_, name, &value, sizeof value), "perdure_scalar");
    };
    bind("iteration", scalars_.iteration);
    bind("rtrans", scalars_.rtrans);
    bind("extents", extents_);
  }

  // After a restart that brought `version` back.
  void check_restored(std::uint64_t version) {
    if (asked_.nx != extents_.nx || asked_.ny != extents_.ny || asked_.nz != extents_.nz) {
      throw std::runtime_error("the pool holds a grid of other extents");
    }
    in_place_ = version == 0;
  }

  perdure_mode mode_;
  unsigned flags_;
  bool in_place_ = true;  // twin: the current iterate is in the working copy, or half
  Extents asked_;
  Extents extents_;
  perdure_pool* pool_ = nullptr;
  perdure_array* x_ = nullptr;
  perdure_array* r_ = nullptr;
};

}  // namespace hpccg
