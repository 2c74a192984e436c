// SPDX-License-Identifier: BSD-3-Clause
//
// Memory state: vectors in DRAM that nothing protects; what the other modes are compared with. And
// the yardstick of a commit: the same, with one memcpy of them where the others commit.
#pragma once

#include <cstring>

#include "buffer.hpp"
#include "job/stopwatch.hpp"
#include "state.hpp"

namespace hpccg {

class MemoryState : public State {
 public:
  explicit MemoryState(const Grid& grid)
      : x_(grid.points()), r_(grid.points()), p_(grid.points_with_halo()) {}

  Vectors source() override { return {x_.get(), r_.get(), p_.get()}; }
  Vectors target() override { return source(); }

 private:
  Buffer<double> x_, r_, p_;
};

class MemcpyState final : public MemoryState {
 public:
  explicit MemcpyState(const Grid& grid)
      : MemoryState(grid),
        points_(grid.points()),
        points_with_halo_(grid.points_with_halo()),
        x_copy_(points_),
        r_copy_(points_),
        p_copy_(points_with_halo_) {}

  void commit() override {
    const job::Stopwatch watch;
    const Vectors from = source();
    std::memcpy(x_copy_.get(), from.x, points_ * sizeof(double));
    std::memcpy(r_copy_.get(), from.r, points_ * sizeof(double));
    std::memcpy(p_copy_.get(), from.p, points_with_halo_ * sizeof(double));
    blocking_s_.push_back(watch.seconds());
  }

 private:
  std::size_t points_, points_with_halo_;
  Buffer<double> x_copy_, r_copy_, p_copy_;
};

}  // namespace hpccg
