// SPDX-License-Identifier: BSD-3-Clause
#include "bvgraph_writer.hpp"

#include <algorithm>
#include <bit>
#include <fstream>

namespace graphs {
namespace {

unsigned highest_bit(std::uint64_t value) {
  return static_cast<unsigned>(std::bit_width(value)) - 1;
}

const char* name_of(Code code) {
  switch (code) {
    case Code::unary:
      return "UNARY";
    case Code::gamma:
      return "GAMMA";
    case Code::delta:
      return "DELTA";
    case Code::zeta:
      return "ZETA";
    case Code::nibble:
      break;
  }
  return "NIBBLE";
}

class ListWriter {
 public:
  ListWriter(const Lists& lists, const BvProperties& properties, std::mt19937_64& random)
      : lists_(lists), properties_(properties), random_(random), chain_(lists.size()) {}

  void write(std::size_t node) {
    const auto& list = lists_[node];
    put(list.size(), properties_.outdegrees);
    if (list.empty()) return;
    const std::size_t back = choose_reference(node);
    if (properties_.window > 0) put(back, properties_.references);
    std::vector<std::uint32_t> extras = list;
    if (back > 0) {
      chain_[node] = chain_[node - back] + 1;
      ++use_.references;
      extras = write_blocks(list, lists_[node - back]);
    }
    if (extras.empty()) return;
    if (properties_.min_interval > 0) extras = write_intervals(node, extras);
    write_residuals(node, extras);
  }

  BitWriter& stream() { return stream_; }
  const BvUse& use() const { return use_; }

 private:
  void put(std::uint64_t value, Code code) { stream_.write(value, code, properties_.zeta_k); }

  // Any node of the window with a chain that may grow; 0 if there is no such node.
  std::size_t choose_reference(std::size_t node) {
    const std::size_t back = random_() % (std::min<std::size_t>(node, properties_.window) + 1);
    if (back == 0 || chain_[node - back] >= properties_.max_references) return 0;
    return back;
  }

  // Returns what is not copied. The last block is left out, as the reader knows its length.
  std::vector<std::uint32_t> write_blocks(const std::vector<std::uint32_t>& list,
                                          const std::vector<std::uint32_t>& from) {
    std::vector<std::size_t> blocks;
    bool copying = true;
    std::size_t length = 0;
    for (const std::uint32_t node : from) {
      const bool copied = std::binary_search(list.begin(), list.end(), node);
      if (copied != copying) {
        blocks.push_back(length);
        length = 0;
        copying = copied;
      }
      ++length;
    }
    put(blocks.size(), properties_.block_counts);
    use_.blocks += blocks.size();
    if (blocks.empty()) ++use_.whole_copies;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      put(blocks[i] - (i == 0 ? 0 : 1), properties_.blocks);
    }
    std::vector<std::uint32_t> extras;
    std::set_difference(list.begin(), list.end(), from.begin(), from.end(),
                        std::back_inserter(extras));
    return extras;
  }

  static std::uint64_t around(std::size_t node, std::uint32_t successor) {
    return successor >= node ? 2 * (successor - node) : 2 * (node - successor) - 1;
  }

  std::vector<std::uint32_t> write_intervals(std::size_t node,
                                             const std::vector<std::uint32_t>& extras) {
    std::vector<std::pair<std::uint32_t, std::uint64_t>> intervals;
    std::vector<std::uint32_t> residuals;
    for (std::size_t i = 0; i < extras.size();) {
      std::size_t end = i + 1;
      while (end < extras.size() && extras[end] == extras[end - 1] + 1) ++end;
      if (end - i >= properties_.min_interval) {
        intervals.emplace_back(extras[i], end - i);
      } else {
        residuals.insert(residuals.end(), extras.begin() + static_cast<std::ptrdiff_t>(i),
                         extras.begin() + static_cast<std::ptrdiff_t>(end));
      }
      i = end;
    }
    put(intervals.size(), Code::gamma);
    use_.intervals += intervals.size();
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      const auto [left, length] = intervals[i];
      put(i == 0 ? around(node, left) : left - end - 1, Code::gamma);
      put(length - properties_.min_interval, Code::gamma);
      end = left + length;
    }
    return residuals;
  }

  void write_residuals(std::size_t node, const std::vector<std::uint32_t>& residuals) {
    use_.residuals += residuals.size();
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      put(i == 0 ? around(node, residuals[0]) : residuals[i] - residuals[i - 1] - 1,
          properties_.residuals);
    }
  }

  const Lists& lists_;
  const BvProperties& properties_;
  std::mt19937_64& random_;
  std::vector<std::uint64_t> chain_;  // length of the chain of references that ends at each node
  BitWriter stream_;
  BvUse use_;
};

void save(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Only what differs from the default is named, as WebGraph does it.
std::string flags_of(const BvProperties& properties) {
  const BvProperties standard;
  std::string flags;
  const auto add = [&](const char* component, Code BvProperties::* code) {
    if (properties.*code == standard.*code) return;
    if (!flags.empty()) flags += " | ";
    flags += std::string(component) + "_" + name_of(properties.*code);
  };
  add("OUTDEGREES", &BvProperties::outdegrees);
  add("BLOCKS", &BvProperties::blocks);
  add("RESIDUALS", &BvProperties::residuals);
  add("REFERENCES", &BvProperties::references);
  add("BLOCK_COUNT", &BvProperties::block_counts);
  add("OFFSETS", &BvProperties::offsets);
  return flags;
}

void save_properties(const std::string& path, const BvProperties& properties) {
  const bool unlimited = properties.max_references == UINT64_MAX;
  std::ofstream(path) << "#BVGraph properties\nversion=0\n"
                      << "graphclass=it.unimi.dsi.webgraph.BVGraph\nnodes=" << properties.nodes
                      << "\narcs=" << properties.arcs << "\nwindowsize=" << properties.window
                      << "\nmaxrefcount="
                      << (unlimited ? "-1" : std::to_string(properties.max_references))
                      << "\nminintervallength=" << properties.min_interval
                      << "\nzetak=" << properties.zeta_k
                      << "\ncompressionflags=" << flags_of(properties) << "\n";
}

}  // namespace

void BitWriter::bits(std::uint64_t value, unsigned count) {
  for (unsigned left = count; left > 0; --left) {
    if (written_ % 8 == 0) bytes_.push_back('\0');
    const auto bit = static_cast<unsigned>(value >> (left - 1) & 1);
    bytes_.back() =
        static_cast<char>(static_cast<unsigned char>(bytes_.back()) | bit << (7 - written_ % 8));
    ++written_;
  }
}

void BitWriter::unary(std::uint64_t value) {
  for (std::uint64_t i = 0; i < value; ++i) bits(0, 1);
  bits(1, 1);
}

void BitWriter::gamma(std::uint64_t value) {
  const unsigned high = highest_bit(value + 1);
  unary(high);
  bits(value + 1, high);
}

void BitWriter::delta(std::uint64_t value) {
  const unsigned high = highest_bit(value + 1);
  gamma(high);
  bits(value + 1, high);
}

void BitWriter::zeta(std::uint64_t value, unsigned k) {
  const unsigned h = highest_bit(value + 1) / k;
  const std::uint64_t left = std::uint64_t{1} << (h * k);
  unary(h);
  if (value + 1 < 2 * left) {
    bits(value + 1 - left, h * k + k - 1);
  } else {
    bits(value + 1, h * k + k);
  }
}

void BitWriter::nibble(std::uint64_t value) {
  const unsigned groups = value == 0 ? 1 : highest_bit(value) / 3 + 1;
  for (unsigned group = groups; group > 0; --group) {
    bits(group == 1 ? 1 : 0, 1);
    bits(value >> ((group - 1) * 3), 3);
  }
}

void BitWriter::write(std::uint64_t value, Code code, unsigned zeta_k) {
  switch (code) {
    case Code::unary:
      return unary(value);
    case Code::gamma:
      return gamma(value);
    case Code::delta:
      return delta(value);
    case Code::zeta:
      return zeta(value, zeta_k);
    case Code::nibble:
      return nibble(value);
  }
}

BvUse write_bvgraph(const std::string& base, const Lists& lists, BvProperties properties,
                    std::mt19937_64& random) {
  properties.nodes = lists.size();
  properties.arcs = 0;
  for (const auto& list : lists) properties.arcs += list.size();
  ListWriter graph(lists, properties, random);
  BitWriter offsets;
  std::uint64_t before = 0;
  offsets.write(0, properties.offsets, properties.zeta_k);
  for (std::size_t node = 0; node < lists.size(); ++node) {
    graph.write(node);
    const std::uint64_t after = graph.stream().position();
    offsets.write(after - before, properties.offsets, properties.zeta_k);
    before = after;
  }
  save(base + ".graph", graph.stream().bytes());
  save(base + ".offsets", offsets.bytes());
  save_properties(base + ".properties", properties);
  return graph.use();
}

}  // namespace graphs
