// SPDX-License-Identifier: BSD-3-Clause
#include "state.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "disk_state.hpp"
#include "job/collective.hpp"
#include "memory_state.hpp"
#include "window_state.hpp"

namespace pagerank {

std::vector<double> State::ranks() const {
  std::vector<double> ranks(graph_.own);
  const double* shares = current();
  for (std::size_t i = 0; i < graph_.own; ++i) {
    ranks[i] = shares[i] * std::max(graph_.out_degree[i], 1U);
  }
  return ranks;
}

std::unique_ptr<State> make_state(const Graph& graph, const Options& options) {
  switch (options.protection) {
    case Protection::none:
      return std::make_unique<MemoryState>(graph);
    case Protection::disk:
      return std::make_unique<DiskState>(graph, options);
    case Protection::copy:
    case Protection::twin:
    case Protection::log:
      break;
  }
  return std::make_unique<WindowState>(graph, options);
}

// Whole pages, and at least one. MPICH 4.0.2 puts to wrong addresses of a shared-memory window of
// three or more ranks if their sizes are no multiples of a page; and an empty part gets a window
// too, as it takes part in the fences.
Window::Window(std::size_t count, MPI_Info hints) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes =
      (std::max<std::size_t>(count, 1) * sizeof(double) + page - 1) / page * page;
  MPI_Comm errors_return = MPI_COMM_NULL;  // so that a failure can be reported in a sentence
  MPI_Comm_dup(MPI_COMM_WORLD, &errors_return);
  MPI_Comm_set_errhandler(errors_return, MPI_ERRORS_RETURN);
  const int code = MPI_Win_allocate(static_cast<MPI_Aint>(bytes), sizeof(double), hints,
                                    errors_return, static_cast<void*>(&values_), &window_);
  MPI_Comm_free(&errors_return);
  job::check_mpi(code, "MPI_Win_allocate");
  MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
}

Window::~Window() {
  if (window_ != MPI_WIN_NULL) MPI_Win_free(&window_);
}

Window::Window(Window&& other) noexcept
    : window_(std::exchange(other.window_, MPI_WIN_NULL)),
      values_(std::exchange(other.values_, nullptr)) {}

}  // namespace pagerank
