// SPDX-License-Identifier: BSD-3-Clause
#include "halo.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace hpccg {
namespace {

MPI_Win make_window(double* base, std::size_t count) {
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_create(base, static_cast<MPI_Aint>(count * sizeof(double)), sizeof(double), MPI_INFO_NULL,
                 MPI_COMM_WORLD, &window);
  return window;
}

}  // namespace

Halo::Halo(const Grid& grid, const std::vector<double*>& vectors, bool landing)
    : grid_(grid), landing_(landing ? 2 * grid.plane() : 0) {
  if (grid.ranks == 1) return;
  if (landing) {
    exposed_.push_back({nullptr, make_window(landing_.get(), 2 * grid.plane())});
    return;
  }
  for (double* vector : vectors) {
    exposed_.push_back({vector, make_window(vector + grid.points(), 2 * grid.plane())});
  }
}

Halo::Halo(const Grid& grid, const std::vector<VectorWindow>& windows)
    : grid_(grid), landing_(0), exposed_(windows), owned_(false) {}

Halo::~Halo() {
  if (!owned_) return;
  for (VectorWindow& exposed : exposed_) MPI_Win_free(&exposed.window);
}

void Halo::put_planes(const double* vector, const VectorWindow& exposed) const {
  const auto plane = static_cast<int>(grid_.plane());
  const double* top = vector + grid_.points() - grid_.plane();
  if (grid_.has_below()) {
    MPI_Put(vector, plane, MPI_DOUBLE, grid_.rank - 1, exposed.first + plane, plane, MPI_DOUBLE,
            exposed.window);
  }
  if (grid_.has_above()) {
    MPI_Put(top, plane, MPI_DOUBLE, grid_.rank + 1, exposed.first, plane, MPI_DOUBLE,
            exposed.window);
  }
}

void Halo::exchange(double* vector) {
  if (grid_.ranks == 1) return;
  const bool landing = landing_.get() != nullptr;
  const auto exposed =
      std::find_if(exposed_.begin(), exposed_.end(),
                   [&](const VectorWindow& each) { return landing || each.vector == vector; });
  if (exposed == exposed_.end()) throw std::logic_error("exchange() of an unknown vector");
  MPI_Win_fence(MPI_MODE_NOPRECEDE, exposed->window);
  put_planes(vector, *exposed);
  MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED, exposed->window);
  if (landing) {
    std::memcpy(vector + grid_.points(), landing_.get(), 2 * grid_.plane() * sizeof(double));
  }
}

}  // namespace hpccg
