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
#include "pooled_state.hpp"

namespace hpccg {

class PoolState final : public PooledState {
 public:
  PoolState(const Grid& grid, const Options& options);
  ~PoolState() override;
  PoolState(const PoolState&) = delete;
  PoolState& operator=(const PoolState&) = delete;

  std::uint64_t restore() override;
  Vectors source() override;
  Vectors target() override;
  std::vector<double*> windows() override;
  bool write_protected() const override { return mode_ == PERDURE_LOG; }
  bool streams() const override { return streams_; }
  void store(VectorName name, std::size_t first, std::size_t count, const double* block) override;
  void before_writing_x_and_r() override;
  void before_writing_p() override;
  void commit() override;
  void finish() override;

 private:
  void open_arrays(const Grid& grid);

  bool async_;
  bool streams_;
  bool pending_ = false;                           // async: a commit was begun
  double waited_s_ = 0;                            // async: for the commit that was begun
  Buffer<double> x_buffer_, r_buffer_, p_buffer_;  // copy and async: the application's own
  perdure_array* p_ = nullptr;
};

}  // namespace hpccg
