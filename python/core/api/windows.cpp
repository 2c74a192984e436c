// SPDX-License-Identifier: BSD-3-Clause
//
// What perdure_mpi.h adds for windows. Windows are Fortran's integers, which mpi4py has of each.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <utility>

#include "api/pool.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace perdure::python {
namespace {

std::uint64_t version_of(int win, int (*Calls::*call)(const int*, std::uint64_t*)) {
  const Calls& calls = window_calls();
  std::uint64_t version = 0;
  checked(calls, [&] { return (calls.*call)(&win, &version); });
  return version;
}

std::pair<int, int> halves(int win) {
  const Calls& calls = window_calls();
  int consistent = 0;
  int working = 0;
  checked(calls, [&] { return calls.win_halves(&win, &consistent, &working); });
  return {consistent, working};
}

std::shared_ptr<PoolState> pool_of(int win) {
  const Calls& calls = window_calls();
  perdure_pool* handle = nullptr;
  checked(calls, [&] { return calls.win_pool(&win, &handle); });
  return std::make_shared<PoolState>(calls, handle, "of windows", PoolState::Kind::windows);
}

}  // namespace

void bind_windows(nb::module_& api) {
  api.def("win_commit", [](int win) { return version_of(win, &Calls::win_commit); }, "win"_a);
  api.def("win_restart", [](int win) { return version_of(win, &Calls::win_restart); }, "win"_a);
  api.def("win_halves", halves, "win"_a);
  api.def("win_pool", pool_of, "win"_a);
}

}  // namespace perdure::python
