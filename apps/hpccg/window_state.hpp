// SPDX-License-Identifier: BSD-3-Clause
//
// Window state: p is a persistent MPI window, into which the neighbours put its halo; x and r are
// arrays of the window's pool, and all three are one version. Modes copy, twin and log.
//
// In mode twin p has two halves, each a window; a step is made in the working half, and the
// neighbours put to the working half. An iterate between two commits is made in place.
#pragma once

#include "perdure/perdure_mpi.h"
#include "state.hpp"

namespace hpccg {

class WindowState final : public State {
 public:
  WindowState(const Grid& grid, const Options& options);
  ~WindowState() override;
  WindowState(const WindowState&) = delete;
  WindowState& operator=(const WindowState&) = delete;

  std::uint64_t restore() override;
  Vectors source() override;
  Vectors target() override;
  std::vector<VectorWindow> own_windows() override;
  void advance() override { in_place_ = true; }
  bool commit_due() override;
  void commit() override;
  std::uint64_t committed_bytes() const override;
  std::uint64_t model_ns() const override;

 private:
  struct Extents {
    std::uint64_t nx, ny, nz;
  };

  void make_window(const Grid& grid, const Options& options);
  void open_arrays(const Grid& grid, const Options& options);
  double* p_of(bool working) const;

  bool twin_;
  bool in_place_ = true;  // the current iterate is in the working half
  std::size_t points_;
  Extents asked_;
  Extents extents_;
  MPI_Win window_ = MPI_WIN_NULL;
  perdure_pool* pool_ = nullptr;  // the window's
  perdure_array* x_ = nullptr;
  perdure_array* r_ = nullptr;
};

}  // namespace hpccg
