// SPDX-License-Identifier: BSD-3-Clause
//
// State: what must survive (x, r, p, the iteration and r·r), and how it does. One class per
// protection; the solver knows only this face.
//
// The solver reads the current iterate from source() and makes the next one in target(), element by
// element, so the two may be the same memory. advance() makes the target the current iterate;
// commit() does the same and makes it durable.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "grid.hpp"
#include "halo.hpp"
#include "options.hpp"

namespace hpccg {

// x and r have grid.points() elements, p has grid.points_with_halo().
struct Vectors {
  double* x = nullptr;
  double* r = nullptr;
  double* p = nullptr;
};

struct Scalars {
  std::uint64_t iteration = 0;
  double rtrans = 0;  // r·r
};

enum class VectorName { x, r, p };

class State {
 public:
  virtual ~State() = default;

  // Collective. Brings back the newest committed iterate; its version, 0 if there is none.
  virtual std::uint64_t restore() { return 0; }

  virtual Vectors source() = 0;
  virtual Vectors target() = 0;
  Scalars& scalars() { return scalars_; }

  // Every memory that target().p will be, and whether it is write-protected (see halo.hpp).
  virtual std::vector<double*> windows() { return {target().p}; }
  virtual bool write_protected() const { return false; }
  // Windows on these memories that the state has made itself; empty: it makes none.
  virtual std::vector<VectorWindow> own_windows() { return {}; }

  // Whether results are given to store() in blocks instead of being written to target().
  virtual bool streams() const { return false; }
  virtual void store(VectorName, std::size_t /*first*/, std::size_t /*count*/,
                     const double* /*block*/) {}

  // Local; before the first store of an iteration to x and r, and to p.
  virtual void before_writing_x_and_r() {}
  virtual void before_writing_p() {}

  virtual void advance() {}
  virtual bool commit_due() { return true; }  // collective; asked where a commit may be made
  virtual void commit() { advance(); }        // collective
  // Whether the job is to end after the last commit; known from commit_due() on.
  bool ends() const { return ends_; }
  virtual void finish() {}  // collective; waits for the last commit

  virtual std::uint64_t committed_bytes() const { return 0; }  // copied or flushed by this rank
  virtual std::uint64_t model_ns() const { return 0; }         // of an emulated device

  // Seconds that each commit kept this rank waiting.
  const std::vector<double>& blocking_s() const { return blocking_s_; }

 protected:
  Scalars scalars_;
  bool ends_ = false;
  std::vector<double> blocking_s_;
};

std::unique_ptr<State> make_state(const Grid& grid, const Options& options);

}  // namespace hpccg
