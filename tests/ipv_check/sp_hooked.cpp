// SPDX-License-Identifier: BSD-3-Clause
//
// SP of the NAS benchmarks, class S, with u an object of in-place versioning and its update hooked
// by hand: rows of the interior, whose first loads go to the old copy; the boundary is copied. A
// persistent version at each of the 100 time steps. The argument:
//
//   native      without objects and hooks
//   right       the rules are kept
//   skip        in iteration 50 a plane of the box is not stored to
//   late        in iteration 50 rows are read, after their update, where loads before it go
//
// Prints the norms of the error in all digits, which are the same for `native` and `right`.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "npb/sp/classes.hpp"
#include "npb/sp/solver.hpp"
#include "perdure/perdure_ipv.h"
#include "perdure/perdure_ipv_abi.h"

namespace {

using namespace npb;
using namespace npb::flow;

constexpr int iterations = 100;
constexpr int wrong_iteration = 50;
constexpr Index wrong_plane = 5;

double& at(double& place, std::ptrdiff_t difference) {
  return *reinterpret_cast<double*>(reinterpret_cast<char*>(&place) + difference);
}

struct OpenRequest {
  bool hooked = true;
  bool skips = false;
  bool reads_late = false;
};

// What of `request` there is to be done wrong, is done to this row. A sum that nobody wants.
double update_row(double* u, const double* rhs, Index count, std::ptrdiff_t load,
                  OpenRequest request) {
  double sum = 0;
  for (Index i = 0; i < count && !request.skips; ++i) {
    u[i] = at(u[i], load) + rhs[i];
  }
  if (request.reads_late) sum = at(u[0], load);  // MISTAKE late
  return sum;
}

double update(Flow& flow, OpenRequest request) {
  double* u = flow.u.get();
  const auto bytes_to = [&flow](Index i, Index j, Index k) {
    return static_cast<std::size_t>(5 * flow.point(i, j, k)) * sizeof(double);
  };
  const auto inner = static_cast<std::size_t>(flow.n - 2);
  perdure_ipv_box box{u + 5 * flow.point(1, 1, 1), 3, {}, {}, nullptr, 0};
  const std::size_t counts[] = {5 * inner * sizeof(double), inner, inner};
  const std::size_t strides[] = {1, bytes_to(0, 1, 0), bytes_to(0, 0, 1)};
  std::copy_n(counts, 3, box.counts);
  std::copy_n(strides, 3, box.strides);
  const perdure_ipv_answer by = perdure_ipv_box_begin(&box);
  double sum = 0;
  for (Index k = 1; k < flow.n - 1; ++k) {
    for (Index j = 1; j < flow.n - 1; ++j) {
      const Index first = 5 * flow.point(1, j, k);
      sum += update_row(u + first, flow.rhs.get() + first, 5 * (flow.n - 2), by.load,
                        k == wrong_plane ? request : OpenRequest());
    }
  }
  perdure_ipv_box_end(&box, 0);  // MISTAKE skip
  return sum;
}

int run(OpenRequest request) {
  sp::Solver solver(sp::class_of('S'));
  Flow& flow = solver.flow;
  const Index n = flow.n;
  const std::size_t bytes = static_cast<std::size_t>(5 * n * n * n) * sizeof(double);
  if (request.hooked && (perdure_ipv_open(nullptr, nullptr) != 0 ||
                         perdure_ipv_object("u", flow.u.get(), bytes, nullptr) != 0 ||
                         perdure_ipv_restart(nullptr) != 0)) {
    return 1;
  }
  for (int iteration = 1; iteration <= iterations; ++iteration) {
    fill_ghosts(flow);
    compute_residual(flow);
    scale_residual(flow);
    sp::solve_factors(flow, solver.lhs.get());
    if (!request.hooked) {
      add_change(flow, 1);
      continue;
    }
    if (std::isnan(update(flow, iteration == wrong_iteration ? request : OpenRequest()))) return 1;
    if (perdure_ipv_persist(nullptr) != 0) return 1;
  }
  if (request.hooked) perdure_ipv_close();
  for (const double norm : error_norm(flow)) std::printf("%.17g\n", norm);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string request = argc > 1 ? argv[1] : "right";
  return run(
      {.hooked = request != "native", .skips = request == "skip", .reads_late = request == "late"});
}
