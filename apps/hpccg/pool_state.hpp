// SPDX-License-Identifier: BSD-3-Clause
//
// Pool state: vectors that Perdure keeps; copy, async, twin and log.
//
//   copy, async, log   the solver works in one buffer in DRAM; a commit saves it to the pool. async
//                      saves in another thread while the solver only reads: through the product
//                      with the matrix and, for p, until the next direction is made.
//   twin               the vectors lie in the pool, twice. An iterate is made in the working copy
//                      from the committed one; if several iterations go by between two commits, the
//                      later ones work in place.
#pragma once

#include "buffer.hpp"
#include "job/collective.hpp"
#include "perdure/perdure_mpi.h"
#include "state.hpp"

namespace hpccg {

class PoolState final : public State {
 public:
  PoolState(const Grid& grid, const Options& options);
  ~PoolState() override;
  PoolState(const PoolState&) = delete;
  PoolState& operator=(const PoolState&) = delete;

  std::uint64_t restore() override;
  Vectors source() override;
  Vectors target() override;
  std::vector<double*> windows() override;
  bool write_protected() const override { return protection_ == Protection::log; }
  bool streams() const override { return streams_; }
  void store(VectorName name, std::size_t first, std::size_t count, const double* block) override;
  void before_writing_x_and_r() override;
  void before_writing_p() override;
  void advance() override { in_place_ = true; }
  bool commit_due() override;
  void commit() override;
  void finish() override;
  std::uint64_t committed_bytes() const override;
  std::uint64_t model_ns() const override;

 private:
  struct Extents {
    std::uint64_t nx, ny, nz;
  };

  void open_arrays(const Grid& grid, const Options& options);

  Protection protection_;
  bool streams_;
  bool in_place_ = true;  // twin: the current iterate is in the working copy
  bool pending_ = false;  // async: a commit was begun
  double waited_s_ = 0;   // async: for the commit that was begun
  Extents extents_;
  Buffer<double> x_buffer_, r_buffer_, p_buffer_;  // copy and async: the application's own
  perdure_pool* pool_ = nullptr;
  perdure_array* x_ = nullptr;
  perdure_array* r_ = nullptr;
  perdure_array* p_ = nullptr;
};

}  // namespace hpccg
