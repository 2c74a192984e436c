// SPDX-License-Identifier: BSD-3-Clause
//
// Schemes by their names, and the failure groups of a job.
#include <algorithm>
#include <map>
#include <optional>

#include "base/quantity.hpp"
#include "levels/redundancy.hpp"

namespace perdure {
namespace {

// All of `text` as a number of 1 to group_size_max.
std::optional<std::uint32_t> count_in(std::string_view text) {
  const auto count = number_in<std::uint32_t>(text);
  return count.value_or(0) == 0 || *count > group_size_max ? std::nullopt : count;
}

std::optional<Scheme> scheme_of(std::string_view text) {
  if (text == "partner") return Scheme{2, 1};
  if (text == "xor") return Scheme{8, 1};
  if (text.starts_with("xor:")) {
    const auto size = count_in(text.substr(4));
    if (size && *size >= 2) return Scheme{*size, 1};
  }
  const std::size_t plus = text.find('+');
  if (text.starts_with("rs:") && plus != std::string_view::npos) {
    const auto kept = count_in(text.substr(3, plus - 3));
    const auto losses = count_in(text.substr(plus + 1));
    if (kept && losses && *kept + *losses <= group_size_max)
      return Scheme{*kept + *losses, *losses};
  }
  return std::nullopt;
}

// How many groups. At least as many as a node has ranks, so that no group has two of one node; as
// near to full groups as leaves each of them more than `losses` members. 0: that can't be.
std::size_t groups_for(std::size_t ranks, std::size_t ranks_per_node_max, const Scheme& scheme) {
  const std::size_t least =
      std::max(ranks_per_node_max, (ranks + group_size_max - 1) / group_size_max);
  const std::size_t most = ranks / (scheme.losses + 1);
  if (least > most) return 0;
  const std::size_t full = (ranks + scheme.group_size / 2) / scheme.group_size;
  return std::clamp(full, least, most);
}

}  // namespace

std::string Scheme::text() const {
  if (group_size == 2 && losses == 1) return "partner";
  if (losses == 1) return "xor:" + std::to_string(group_size);
  return "rs:" + std::to_string(group_size - losses) + "+" + std::to_string(losses);
}

Result<Scheme> parse_scheme(const std::string& text) {
  if (const auto scheme = scheme_of(text)) return *scheme;
  return Status(
      Code::invalid_argument,
      "'" + text +
          "' is no scheme of redundancy; it is partner, xor, xor:G for groups of G ranks, "
          "or rs:K+M for groups of K + M of which M may be lost, with at most " +
          std::to_string(group_size_max) + " ranks in a group");
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
        Code::unsupported, "redundancy ", scheme.text(), " needs ", scheme.losses + 1,
        " nodes or more, and ", scheme.losses,
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
