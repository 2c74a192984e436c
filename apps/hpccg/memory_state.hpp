// Memory state: vectors in DRAM that nothing protects; what the other modes are compared with.
#pragma once

#include "buffer.hpp"
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

}  // namespace hpccg
