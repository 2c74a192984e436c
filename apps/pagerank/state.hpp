// SPDX-License-Identifier: BSD-3-Clause
//
// State: what must survive, and how it does; one class per protection, and the solver knows only
// this face. It is the shares of the own nodes and of the ghosts, and four scalars.
//
// The share of a node is what each of its successors gets of its rank R: R / N, with N its
// out-degree; for a node without successors it is R. So an arc costs one load, and R is share times
// max(N, 1), rounded alike in every run.
//
// The solver reads the current iterate, makes the shares of own nodes in next(), and advance()
// makes that one the current iterate, with the ghosts that the other ranks put. As the ghosts are
// part of what is committed, a restart needs no communication.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ghosts.hpp"
#include "graph.hpp"
#include "options.hpp"

namespace pagerank {

struct Scalars {
  std::uint64_t iteration = 0;
  double dangling = 0;  // sum of the ranks of nodes without successors
  double total = 0;     // sum of all ranks: 1, except for rounding
  double change = 0;    // L1 norm of the last iteration's change
};

class State {
 public:
  explicit State(const Graph& graph) : graph_(graph), ghosts_(graph) {}
  virtual ~State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Collective. Brings back the newest committed iterate; its version, 0 if there is none.
  virtual std::uint64_t restore() { return 0; }

  virtual const double* current() const = 0;  // graph.values() shares
  virtual double* next() = 0;                 // graph.own shares
  virtual void advance() = 0;                 // collective
  virtual bool commit_due() { return true; }  // collective; asked where a commit may be made
  virtual void commit() {}                    // collective
  // Whether the job is to end after the last commit; known from commit_due() on.
  bool ends() const { return ends_; }

  Scalars& scalars() { return scalars_; }
  const Scalars& scalars() const { return scalars_; }

  // The rank of each own node. Reads the current iterate.
  std::vector<double> ranks() const;

  std::uint64_t bytes() const { return graph_.values() * sizeof(double); }
  std::uint64_t put_bytes() const { return ghosts_.bytes_put(); }  // by each advance()
  virtual std::uint64_t committed_bytes() const { return 0; }      // copied or flushed by this rank
  virtual std::uint64_t model_ns() const { return 0; }             // of an emulated device
  const std::vector<double>& commit_s() const { return commit_s_; }

 protected:
  const Graph& graph_;
  Ghosts ghosts_;
  Scalars scalars_;
  bool ends_ = false;
  std::vector<double> commit_s_;  // that each commit kept this rank waiting
};

// Collective. Throws SharedError for a protection that this program was built without.
std::unique_ptr<State> make_state(const Graph& graph, const Options& options);

// A window of an array of `count` doubles on each rank, which it allocates and frees. Collective.
class Window {
 public:
  Window(std::size_t count, MPI_Info hints);
  ~Window();
  Window(Window&& other) noexcept;
  Window& operator=(Window&&) = delete;
  MPI_Win handle() const { return window_; }
  double* values() const { return values_; }  // as allocated; a twin window's place changes

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  double* values_ = nullptr;
};

}  // namespace pagerank
