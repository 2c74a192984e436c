// SPDX-License-Identifier: BSD-3-Clause
#include "graph.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "exchange.hpp"
#include "job/collective.hpp"

namespace pagerank {
namespace {

// Sorts the arcs by target into the lists of sources.
void fill_lists(Graph& graph, const std::vector<Arc>& arcs) {
  graph.begin.assign(graph.own + 1, 0);
  for (const Arc& arc : arcs) ++graph.begin[arc.target - graph.first + 1];
  for (std::size_t node = 0; node < graph.own; ++node) graph.begin[node + 1] += graph.begin[node];
  std::vector<std::uint64_t> next(graph.begin.begin(), graph.begin.end() - 1);
  graph.sources.reserve(arcs.size() + read_ahead);  // so that it never moves
  graph.sources.resize(arcs.size());
  for (const Arc& arc : arcs) graph.sources[next[arc.target - graph.first]++] = arc.source;
}

// The order of a list decides the rounding of its sum, so it may not depend on the number of ranks.
void sort_lists(Graph& graph) {
  const auto at = [&](std::uint64_t arc) {
    return graph.sources.begin() + static_cast<std::ptrdiff_t>(arc);
  };
  auto kept = graph.sources.begin();
  std::uint64_t begin = 0;
  for (std::size_t node = 0; node < graph.own; ++node) {
    const std::uint64_t end = graph.begin[node + 1];
    std::sort(at(begin), at(end));
    kept = std::unique_copy(at(begin), at(end), kept);  // never overtakes what it reads
    begin = end;
    graph.begin[node + 1] = static_cast<std::uint64_t>(kept - graph.sources.begin());
  }
  graph.sources.erase(kept, graph.sources.end());
}

// A set of nodes, a bit each, that numbers its members in increasing order.
class NodeSet {
 public:
  explicit NodeSet(std::uint64_t nodes) : words_(nodes / 64 + 1), before_(words_.size()) {}
  void insert(std::uint64_t node) { words_[node / 64] |= bit(node); }
  std::size_t number_members() {
    std::size_t members = 0;
    for (std::size_t word = 0; word < words_.size(); ++word) {
      before_[word] = static_cast<std::uint32_t>(members);
      members += static_cast<std::size_t>(std::popcount(words_[word]));
    }
    return members;
  }
  std::uint32_t number_of(std::uint64_t member) const {
    const std::uint64_t below = words_[member / 64] & (bit(member) - 1);
    return before_[member / 64] + static_cast<std::uint32_t>(std::popcount(below));
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::size_t word = 0; word < words_.size(); ++word) {
      for (std::uint64_t left = words_[word]; left != 0; left &= left - 1) {
        visit(word * 64 + static_cast<std::uint64_t>(std::countr_zero(left)));
      }
    }
  }

 private:
  static std::uint64_t bit(std::uint64_t node) { return std::uint64_t{1} << (node % 64); }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> before_;
};

// Turns the sources from nodes into indices; returns the ghosts.
std::vector<std::uint32_t> number_sources(Graph& graph) {
  const auto is_own = [&](std::uint64_t node) { return node - graph.first < graph.own; };
  NodeSet set(graph.nodes);
  for (const std::uint32_t source : graph.sources) {
    if (!is_own(source)) set.insert(source);
  }
  graph.ghosts = set.number_members();
  if (job::max_over_ranks(std::uint64_t{graph.values()}) > UINT32_MAX) {
    throw job::SharedError("a rank needs the values of more than 2^32 nodes; use more ranks");
  }
  for (std::uint32_t& source : graph.sources) {
    source = is_own(source) ? static_cast<std::uint32_t>(source - graph.first)
                            : static_cast<std::uint32_t>(graph.own) + set.number_of(source);
  }
  std::vector<std::uint32_t> ghosts;
  ghosts.reserve(graph.ghosts);
  set.for_each([&](std::uint64_t node) { ghosts.push_back(static_cast<std::uint32_t>(node)); });
  return ghosts;
}

// Tells the owners which of their nodes this rank needs, and learns what the others need.
void plan_exchange(Graph& graph, const std::vector<std::uint32_t>& ghosts) {
  const std::size_t ranks = graph.partition.first.size() - 1;
  std::vector<std::vector<std::uint32_t>> wanted(ranks);
  std::vector<std::uint64_t> places(ranks, graph.own);
  for (const std::uint32_t node : ghosts) wanted[graph.partition.owner_of(node)].push_back(node);
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    places[rank] = places[rank - 1] + wanted[rank - 1].size();
  }
  graph.sent = exchange_lists(wanted, graph.sent_count);
  for (std::uint32_t& node : graph.sent) node -= static_cast<std::uint32_t>(graph.first);
  graph.place_at = exchange_words(places);
}

// Each rank counts the arcs of its own nodes and ghosts; the owners add up.
void count_out_degrees(Graph& graph, const std::vector<std::uint32_t>& ghosts) {
  std::vector<std::uint32_t> counts(graph.values());
  for (const std::uint32_t source : graph.sources) ++counts[source];
  std::vector<std::vector<std::uint32_t>> remote(graph.partition.first.size() - 1);
  for (std::size_t i = 0; i < ghosts.size(); ++i) {
    remote[graph.partition.owner_of(ghosts[i])].push_back(counts[graph.own + i]);
  }
  std::vector<int> came;
  const std::vector<std::uint32_t> added = exchange_lists(remote, came);
  counts.resize(graph.own);
  for (std::size_t i = 0; i < added.size(); ++i) counts[graph.sent[i]] += added[i];
  counts.shrink_to_fit();
  graph.out_degree = std::move(counts);
}

}  // namespace

Graph make_graph(std::uint64_t nodes, std::vector<Arc> arcs) {
  if (nodes == 0) throw job::SharedError("the graph has no nodes, so there is nothing to rank");
  Graph graph;
  graph.nodes = nodes;
  graph.arcs_read = job::sum_over_ranks(std::uint64_t{arcs.size()});
  graph.partition = make_partition(nodes, arcs);
  const auto rank = static_cast<std::size_t>(job::this_rank());
  graph.first = graph.partition.first[rank];
  graph.own = graph.partition.first[rank + 1] - graph.first;
  fill_lists(graph, send_to_owners(std::move(arcs), graph.partition));  // and frees them
  sort_lists(graph);
  graph.arcs = job::sum_over_ranks(std::uint64_t{graph.sources.size()});
  const std::vector<std::uint32_t> ghosts = number_sources(graph);
  plan_exchange(graph, ghosts);
  count_out_degrees(graph, ghosts);
  graph.sources.resize(graph.sources.size() + read_ahead);
  return graph;
}

std::uint64_t fingerprint_of(const Graph& graph) {
  job::Hash local;
  local.add(graph.nodes);
  local.add(graph.first);
  for (const std::uint64_t begin : graph.begin) local.add(begin);
  for (const std::uint32_t source : graph.sources) local.add(std::uint64_t{source});
  for (const std::uint32_t degree : graph.out_degree) local.add(std::uint64_t{degree});
  return job::hash_over_ranks([&](job::Hash& all) { all.add(local.value()); });
}

}  // namespace pagerank
