// Failure groups: ranks of different nodes. Pure.
#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

#include "levels/guard_format.hpp"
#include "levels/redundancy.hpp"

namespace perdure {
namespace {

using Groups = std::vector<std::vector<std::uint32_t>>;

constexpr std::uint32_t xor_group_size = 8;

Status wrong_scheme(const std::string& text) {
  return {Code::invalid_argument,
          "redundancy=" + text + " is none of off, partner, xor, xor:G (2 to " +
              std::to_string(group_size_max) + ") and rs:K+M (K + M up to " +
              std::to_string(group_size_max) + ")"};
}

bool parse(std::string_view text, std::uint32_t& value) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

// Ranks in turns over the nodes: all nodes' first ranks, then their second ones, so that neighbours
// in the list are on different nodes as long as nodes last.
std::vector<std::vector<std::uint32_t>> rows_of(std::span<const std::uint32_t> nodes) {
  std::map<std::uint32_t, std::uint32_t> seen;
  std::vector<std::vector<std::uint32_t>> rows;
  for (std::uint32_t rank = 0; rank < nodes.size(); ++rank) {
    const std::uint32_t row = seen[nodes[rank]]++;
    if (row >= rows.size()) rows.resize(row + 1);
    rows[row].push_back(rank);
  }
  return rows;
}

bool fits(const std::vector<std::uint32_t>& group, std::uint32_t rank,
          std::span<const std::uint32_t> nodes) {
  return std::none_of(group.begin(), group.end(),
                      [&](std::uint32_t member) { return nodes[member] == nodes[rank]; });
}

// Puts a rank that is left over into the smallest group that has none of its node.
bool join(Groups& groups, std::uint32_t rank, std::span<const std::uint32_t> nodes) {
  std::vector<std::uint32_t>* best = nullptr;
  for (auto& group : groups) {
    if (group.size() >= group_size_max || !fits(group, rank, nodes)) continue;
    if (best == nullptr || group.size() < best->size()) best = &group;
  }
  if (best != nullptr) best->push_back(rank);
  return best != nullptr;
}

}  // namespace

std::string Scheme::text() const {
  if (group_size == 2 && losses == 1) return "partner";
  if (losses == 1) return "xor:" + std::to_string(group_size);
  return "rs:" + std::to_string(group_size - losses) + "+" + std::to_string(losses);
}

Result<Scheme> parse_scheme(const std::string& text) {
  Scheme scheme;
  if (text == "partner") return scheme;
  if (text == "xor") return Scheme{xor_group_size, 1};
  if (text.starts_with("xor:")) {
    if (!parse(std::string_view(text).substr(4), scheme.group_size)) return wrong_scheme(text);
  } else if (text.starts_with("rs:")) {
    const std::size_t plus = text.find('+');
    std::uint32_t data = 0;
    if (plus == std::string::npos || !parse(std::string_view(text).substr(3, plus - 3), data) ||
        !parse(std::string_view(text).substr(plus + 1), scheme.losses) || data > group_size_max ||
        scheme.losses > group_size_max || data == 0) {
      return wrong_scheme(text);
    }
    scheme.group_size = data + scheme.losses;
  } else {
    return wrong_scheme(text);
  }
  const bool sane = scheme.group_size >= 2 && scheme.group_size <= group_size_max &&
                    scheme.losses >= 1 && scheme.losses < scheme.group_size;
  if (!sane) return wrong_scheme(text);
  return scheme;
}

Result<std::vector<std::vector<std::uint32_t>>> failure_groups(std::span<const std::uint32_t> nodes,
                                                               const Scheme& scheme) {
  Groups groups;
  std::vector<std::uint32_t> left;
  for (const auto& row : rows_of(nodes)) {
    std::size_t at = 0;
    for (; row.size() - at >= scheme.group_size; at += scheme.group_size) {
      const auto begin = row.begin() + static_cast<std::ptrdiff_t>(at);
      groups.emplace_back(begin, begin + scheme.group_size);
    }
    const std::vector<std::uint32_t> rest(row.begin() + static_cast<std::ptrdiff_t>(at), row.end());
    // Enough for a group of their own that bears as many losses.
    if (rest.size() > scheme.losses) {
      groups.push_back(rest);
    } else {
      left.insert(left.end(), rest.begin(), rest.end());
    }
  }
  for (const std::uint32_t rank : left) {
    if (join(groups, rank, nodes)) continue;
    return Status(Code::unsupported,
                  "rank " + std::to_string(rank) +
                      " finds no failure group for redundancy=" + scheme.text() +
                      ": its ranks must be on different nodes, and there are too "
                      "few of them beside its own; use more nodes, smaller groups, or a file of "
                      "groups");
  }
  return groups;
}

}  // namespace perdure
