// SPDX-License-Identifier: BSD-3-Clause
#include "partition.hpp"

#include "job/collective.hpp"

namespace pagerank {
namespace {

constexpr std::uint64_t groups_max = 1 << 16;
constexpr std::size_t round_arcs = 1 << 20;  // that a rank sends at once

// One round of send_to_owners(): arcs [begin, end).
class Round {
 public:
  explicit Round(std::size_t ranks) : counts_(ranks), came_(ranks) {}

  void run(const Arc* begin, const Arc* end, const Partition& partition, std::vector<Arc>& all) {
    sort_by_owner(begin, end, partition);
    MPI_Alltoall(counts_.data(), 1, MPI_INT, came_.data(), 1, MPI_INT, MPI_COMM_WORLD);
    const std::vector<int> places = job::starts_of(came_);
    const std::size_t before = all.size();
    all.resize(before + static_cast<std::size_t>(places.back() + came_.back()));
    static_assert(sizeof(Arc) == sizeof(std::uint64_t), "an arc is sent as one word");
    MPI_Alltoallv(sorted_.data(), counts_.data(), starts_.data(), MPI_UINT64_T, all.data() + before,
                  came_.data(), places.data(), MPI_UINT64_T, MPI_COMM_WORLD);
  }

 private:
  void sort_by_owner(const Arc* begin, const Arc* end, const Partition& partition) {
    owners_.clear();
    std::fill(counts_.begin(), counts_.end(), 0);
    for (const Arc* arc = begin; arc < end; ++arc) {
      owners_.push_back(static_cast<int>(partition.owner_of(arc->target)));
      ++counts_[static_cast<std::size_t>(owners_.back())];
    }
    starts_ = job::starts_of(counts_);
    sorted_.resize(owners_.size());
    std::vector<int> next = starts_;
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      sorted_[static_cast<std::size_t>(next[static_cast<std::size_t>(owners_[i])]++)] = begin[i];
    }
  }

  std::vector<int> counts_, starts_, came_;
  std::vector<int> owners_;
  std::vector<Arc> sorted_;
};

}  // namespace

Partition make_partition(std::uint64_t nodes, const std::vector<Arc>& arcs) {
  const auto ranks = static_cast<std::uint64_t>(job::rank_count());
  const std::uint64_t group_nodes =
      std::max<std::uint64_t>(1, (nodes + groups_max - 1) / groups_max);
  std::vector<std::uint64_t> weights((nodes + group_nodes - 1) / group_nodes);
  for (const Arc& arc : arcs) ++weights[arc.target / group_nodes];
  job::add_over_ranks(weights);
  std::uint64_t total = nodes;
  for (const std::uint64_t weight : weights) total += weight;
  Partition partition{{0}};
  partition.first.resize(ranks + 1, nodes);
  std::uint64_t sum = 0;
  std::uint64_t rank = 1;
  for (std::uint64_t group = 0; group < weights.size(); ++group) {
    // A group belongs to the rank in whose share of the total its middle lies.
    const std::uint64_t weight = weights[group] + group_nodes;
    while (rank < ranks && sum + weight / 2 >= total / ranks * rank) {
      partition.first[rank++] = group * group_nodes;
    }
    sum += weight;
  }
  return partition;
}

std::vector<Arc> send_to_owners(std::vector<Arc> arcs, const Partition& partition) {
  if (partition.first.size() == 2) return arcs;
  const std::uint64_t rounds = job::max_over_ranks((arcs.size() + round_arcs - 1) / round_arcs);
  std::vector<Arc> all;
  all.reserve(arcs.size() + arcs.size() / 8);  // about what comes, if the ranks read equally much
  Round round(partition.first.size() - 1);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const std::size_t begin = std::min<std::size_t>(arcs.size(), i * round_arcs);
    const std::size_t end = std::min<std::size_t>(arcs.size(), begin + round_arcs);
    round.run(arcs.data() + begin, arcs.data() + end, partition, all);
  }
  return all;
}

}  // namespace pagerank
