// SPDX-License-Identifier: BSD-3-Clause
//
// Window state: p is a persistent MPI window, into which the neighbours put its halo; x and r are
// arrays of the window's pool, and all three are one version. Modes copy, twin and log.
//
// In mode twin p has two halves, each a window; a step is made in the working half, and the
// neighbours put to the working half. An iterate between two commits is made in place.
#pragma once

#include "pooled_state.hpp"

namespace hpccg {

class WindowState final : public PooledState {
 public:
  WindowState(const Grid& grid, const Options& options);
  ~WindowState() override;
  WindowState(const WindowState&) = delete;
  WindowState& operator=(const WindowState&) = delete;

  std::uint64_t restore() override;
  Vectors source() override;
  Vectors target() override;
  std::vector<VectorWindow> own_windows() override;

 private:
  void make_window(const Grid& grid, const Options& options);
  double* p_of(bool working) const;

  bool twin_;
  std::size_t points_;
  MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace hpccg
