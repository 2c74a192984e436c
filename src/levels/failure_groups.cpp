// SPDX-License-Identifier: BSD-3-Clause
//
// Schemes, whose names are their codings', and the failure groups of a job.
#include <algorithm>
#include <map>

#include "levels/coding.hpp"
#include "levels/redundancy.hpp"

namespace perdure {
namespace {

// How many groups. At least as many as a node has ranks, so that no group has two of one node; as
// near to full groups as leaves each of them more than `rows` members. 0: that can't be.
std::size_t groups_for(std::size_t ranks, std::size_t ranks_per_node_max, const Scheme& scheme) {
  const std::size_t least =
      std::max(ranks_per_node_max, (ranks + group_size_max - 1) / group_size_max);
  const std::size_t most = ranks / (scheme.rows + 1);
  if (least > most) return 0;
  const std::size_t full = (ranks + scheme.group_size / 2) / scheme.group_size;
  return std::clamp(full, least, most);
}

}  // namespace

std::uint32_t Scheme::losses() const {
  return coding_of(coding)->losses(group_size - rows, rows);
}

std::string Scheme::text() const {
  return coding_of(coding)->name(*this);
}

Result<Scheme> parse_scheme(const std::string& text) {
  std::string names;
  for (const Coding* const coding : codings()) {
    if (const auto scheme = coding->parse(text)) return *scheme;
    names += (names.empty() ? "" : "; or ") + coding->names();
  }
  return Status(Code::invalid_argument, "'", text, "' is no scheme of redundancy; it is ", names,
                ", with at most ", group_size_max, " ranks in a group");
}

// The ranks, sorted by node, are dealt to the groups in turn: those of one node, at most as many as
// there are groups, come to different ones, and sizes differ by one at most.
Result<std::vector<std::vector<std::uint32_t>>> failure_groups(std::span<const std::uint32_t> nodes,
                                                               const Scheme& scheme) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> ranks_of;
  for (std::uint32_t rank = 0; rank < nodes.size(); ++rank) ranks_of[nodes[rank]].push_back(rank);
  std::size_t largest = 0;
  for (const auto& [node, ranks] : ranks_of) largest = std::max(largest, ranks.size());
  const std::size_t count = groups_for(nodes.size(), largest, scheme);
  if (count == 0) {
    return Status(
        Code::unsupported, "redundancy ", scheme.text(), " needs ", scheme.rows + 1,
        " nodes or more, and ", scheme.rows,
        " ranks elsewhere for each rank of a node; this job has ", nodes.size(), " ranks on ",
        ranks_of.size(), " nodes, ", largest,
        " of them on one; spread them over more nodes, or choose a scheme of fewer losses");
  }
  std::vector<std::vector<std::uint32_t>> groups(count);
  std::size_t turn = 0;
  for (const auto& [node, ranks] : ranks_of) {
    for (const std::uint32_t rank : ranks) groups[turn++ % count].push_back(rank);
  }
  for (auto& group : groups) std::ranges::sort(group);
  std::ranges::sort(groups);
  return groups;
}

}  // namespace perdure
