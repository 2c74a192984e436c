// SPDX-License-Identifier: BSD-3-Clause
//
// Halo: brings a rank's boundary planes into the vectors of its neighbours, one-sided.
//
// The windows are the vectors themselves, so that what the neighbours put is part of the state, is
// committed by its owner, and need not be exchanged again after a restart. The state may have made
// them (persistent windows). Vectors in write-protected memory (log mode of arrays) can't be
// windows: an MPI library may let the kernel store into them, which fails instead of faulting. They
// get their planes through a window of their own.
#pragma once

#include <vector>

#include "buffer.hpp"
#include "grid.hpp"
#include "job/collective.hpp"

namespace hpccg {

// A window in which the halo of `vector` begins at displacement `first`, in doubles.
struct VectorWindow {
  double* vector;
  MPI_Win window;
  MPI_Aint first = 0;
};

class Halo {
 public:
  // Collective. `vectors` are all that exchange() will be called for. `landing`: see above.
  Halo(const Grid& grid, const std::vector<double*>& vectors, bool landing);
  // The same with windows on the whole vectors, which stay the caller's.
  Halo(const Grid& grid, const std::vector<VectorWindow>& windows);
  ~Halo();
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;

  // Collective: fence, put, fence. Before the first fence the neighbours may read and store their
  // halo; after the second one `vector` is whole.
  void exchange(double* vector);

 private:
  void put_planes(const double* vector, const VectorWindow& exposed) const;

  Grid grid_;
  Buffer<double> landing_;
  std::vector<VectorWindow> exposed_;
  bool owned_ = true;
};

}  // namespace hpccg
