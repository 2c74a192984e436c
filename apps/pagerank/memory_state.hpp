// SPDX-License-Identifier: BSD-3-Clause
//
// Memory state: two windows that nothing protects, read and written in turn.
#pragma once

#include <array>

#include "state.hpp"

namespace pagerank {

class MemoryState : public State {
 public:
  explicit MemoryState(const Graph& graph)
      : State(graph),
        windows_{Window(graph.values(), MPI_INFO_NULL), Window(graph.values(), MPI_INFO_NULL)} {}

  const double* current() const final { return windows_[current_].values(); }
  double* next() final { return windows_[1 - current_].values(); }
  void advance() final {
    current_ = 1 - current_;
    ghosts_.put(windows_[current_].handle(), current());
  }

 protected:
  double* current_values() { return windows_[current_].values(); }

 private:
  std::array<Window, 2> windows_;
  std::size_t current_ = 0;
};

}  // namespace pagerank
