// SPDX-License-Identifier: BSD-3-Clause
//
// Equation 1 of the paper (section 5.2.2, after Page et al.) is
//
//   R'(u) = c · sum over v in B_u of R'(v) / N_v  +  c · E(u),    c such that |R'|_1 = 1
//
// with B_u the nodes with an arc to u and N_v the out-degree of v. We iterate
//
//   R'(u) = c · (sum over v in B_u of R(v) / N_v  +  D / n)  +  (1 - c) / n,    c = 0.85
//
// that is eq. 1 with its source of rank uniform, c E(u) = (1 - c) / n; and with a node without
// successors, whose rank eq. 1 would lose, linked to all nodes: D is the sum of such ranks. Then
// |R'|_1 = |R|_1 = 1 holds by itself for a fixed c, and no normalisation is needed; that it does
// hold is checked in each iteration, which also finds ghosts that did not arrive.
//
// Order of sums: within a node by source; nodes in blocks; blocks; ranks. Nothing depends on
// timing, so a run that was killed and started again ends with the same bits.
#include "solver.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "job/collective.hpp"
#include "job/stopwatch.hpp"

namespace pagerank {
namespace {

constexpr std::size_t block_nodes = 1024;  // few enough that no sum loses digits to its length
constexpr double total_error_max = 1e-9;

enum Sum : std::size_t { dangling, total, change };
using Sums = std::array<double, 3>;

// Makes the shares of own nodes [first, last); the heart of the program. It is bound by memory: for
// each arc, 4 bytes in order and one load of a share out of order, which is asked for ahead.
Sums make_shares(const Graph& graph, const double* __restrict shares, double* __restrict next,
                 std::size_t first, std::size_t last, double damping, double base) {
  const std::uint32_t* sources = graph.sources.data();
  double sum_dangling = 0;
  double sum_total = 0;
  double sum_change = 0;
  std::uint64_t arc = graph.begin[first];
  for (std::size_t node = first; node < last; ++node) {
    double sum = 0;
    for (const std::uint64_t end = graph.begin[node + 1]; arc < end; ++arc) {
      __builtin_prefetch(shares + sources[arc + read_ahead]);
      sum += shares[sources[arc]];
    }
    const std::uint32_t degree = graph.out_degree[node];
    const double successors = std::max(degree, 1U);
    const double rank = base + damping * sum;
    sum_total += rank;
    sum_change += std::abs(rank - shares[node] * successors);
    if (degree == 0) sum_dangling += rank;
    next[node] = rank / successors;
  }
  return {sum_dangling, sum_total, sum_change};
}

void check_total(const Scalars& scalars) {
  if (std::abs(scalars.total - 1) <= total_error_max) return;  // false for NaN
  throw job::SharedError("the ranks sum to " + std::to_string(scalars.total) +
                         " instead of 1 after " + "iteration " + std::to_string(scalars.iteration) +
                         ": the state is damaged; start anew without it");
}

}  // namespace

void Solver::start() {
  const double rank = 1.0 / static_cast<double>(graph_.nodes);
  double* next = state_.next();
  std::uint64_t without_successors = 0;
  for (std::size_t node = 0; node < graph_.own; ++node) {
    next[node] = rank / std::max(graph_.out_degree[node], 1U);
    if (graph_.out_degree[node] == 0) ++without_successors;
  }
  const auto dangling_nodes = static_cast<double>(job::sum_over_ranks(without_successors));
  state_.scalars() = {0, dangling_nodes * rank, 1, 1};
  state_.advance();
}

void Solver::iterate() {
  Scalars& scalars = state_.scalars();
  const double damping = options_.damping;
  const double base =
      (damping * scalars.dangling + (1 - damping)) / static_cast<double>(graph_.nodes);
  const double* shares = state_.current();
  double* next = state_.next();
  Sums local{};
  for (std::size_t first = 0; first < graph_.own; first += block_nodes) {
    const std::size_t last = std::min(first + block_nodes, graph_.own);
    const Sums block = make_shares(graph_, shares, next, first, last, damping, base);
    for (std::size_t i = 0; i < local.size(); ++i) local[i] += block[i];
  }
  const Sums sums = job::sum_over_ranks(local);
  scalars = {scalars.iteration + 1, sums[dangling], sums[total], sums[change]};
  check_total(scalars);
  state_.advance();
}

bool Solver::done() const {
  const Scalars& scalars = state_.scalars();
  if (state_.ends()) return true;
  return scalars.iteration >= options_.iterations || scalars.change < options_.tolerance;
}

void Solver::run() {
  while (!done()) {
    const job::Stopwatch watch;
    iterate();
    if (state_.scalars().iteration % options_.commit_every == 0 && state_.commit_due()) {
      state_.commit();
    }
    iteration_s_.push_back(watch.seconds());
  }
}

}  // namespace pagerank
