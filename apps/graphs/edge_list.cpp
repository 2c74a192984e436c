// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "text_graphs.hpp"
#include "text_lines.hpp"

namespace graphs {
namespace {

std::uint32_t node_of(const TextLines& lines, std::string_view word, std::uint64_t below,
                      const char* why) {
  const auto node = number_of(word);
  if (!node) {
    lines.fail(quoted(word) + " is not the number of a node; a line is \"SOURCE TARGET\"");
  }
  if (*node >= below) {
    lines.fail("node " + std::to_string(*node) + " is not below " + std::to_string(below) + why);
  }
  return static_cast<std::uint32_t>(*node);
}

}  // namespace

ArcPart read_edge_list(const std::string& path, std::uint64_t nodes, Part part,
                       std::uint64_t limit) {
  const InputFile file(path);
  TextLines lines(file, 0, part);
  ArcPart read;
  read.nodes = nodes;
  const std::uint64_t below = nodes > 0 ? nodes : limit;
  const char* why = nodes > 0 ? "; see --nodes" : ", the limit of this program";
  for (std::string_view line; lines.next(line);) {
    const std::string_view source = take_word(line);
    if (source.empty() || source[0] == '#' || source[0] == '%') continue;
    const std::string_view target = take_word(line);
    const Arc arc{node_of(lines, source, below, why), node_of(lines, target, below, why)};
    if (!take_word(line).empty()) {
      lines.fail("a third field; weights are not used, so cut them off (cut -f1,2)");
    }
    read.arcs.push_back(arc);
    if (nodes == 0) {
      read.nodes = std::max(read.nodes, std::max<std::uint64_t>(arc.source, arc.target) + 1);
    }
  }
  read.entries = read.arcs.size();
  return read;
}

}  // namespace graphs
