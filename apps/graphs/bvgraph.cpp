// SPDX-License-Identifier: BSD-3-Clause
#include "bvgraph.hpp"

#include <algorithm>
#include <vector>

#include "input_file.hpp"

namespace graphs {
namespace {

const std::uint8_t* bytes_of(const std::string& text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

// The nodes of a part, and where in the graph file the lists from `warm_up` on begin.
struct Slice {
  std::uint64_t first = 0;
  std::uint64_t last = 0;              // one more than the last node
  std::uint64_t warm_up = 0;           // the first node that a list of the part may refer to
  std::vector<std::uint64_t> offsets;  // of nodes warm_up to last, both included
};

class Offsets {
 public:
  Offsets(const std::string& path, const BvProperties& properties, std::uint64_t graph_bits)
      : path_(path), bytes_(InputFile(path).read()), properties_(properties), bits_(graph_bits) {
    if (properties.nodes >= bytes_.size() * 8) {
      throw InputError(path + " has " + std::to_string(bytes_.size()) + " bytes, too few for " +
                       std::to_string(properties.nodes) + " nodes; is it whole?");
    }
  }

  Slice slice_of(Part part) const {
    Slice slice;
    const std::uint64_t begin = part.begin(bits_);
    const std::uint64_t end = part.end(bits_);
    scan([&](std::uint64_t node, std::uint64_t offset) {
      if (offset < begin) slice.first = node + 1;
      if (offset < end) slice.last = node + 1;
    });
    if (part.index + 1 == part.count) slice.last = properties_.nodes;
    slice.first = std::min(slice.first, properties_.nodes);
    slice.last = std::min(slice.last, properties_.nodes);
    slice.warm_up = slice.first - std::min(slice.first, reach());
    scan([&](std::uint64_t node, std::uint64_t offset) {
      if (node >= slice.warm_up && node <= slice.last) slice.offsets.push_back(offset);
    });
    return slice;
  }

 private:
  // How many nodes before a node a chain of references that begins there can lead.
  std::uint64_t reach() const {
    const std::uint64_t chain = std::min(properties_.max_references, properties_.nodes);
    return properties_.window * chain;  // both have at most 32 bits
  }

  // Calls visit(node, offset) for all nodes and the end of the last one's list.
  template <typename Visit>
  void scan(Visit visit) const {
    BitReader reader(bytes_of(bytes_), bytes_.size());
    std::uint64_t offset = 0;
    for (std::uint64_t node = 0; node <= properties_.nodes; ++node) {
      const std::uint64_t gap = gap_of(node, reader);
      if (gap > bits_ - offset) {
        throw InputError(path_ + ": the list of node " + std::to_string(node) +
                         " would begin after the end of the graph file (" + std::to_string(bits_) +
                         " bits); are both files whole and of one graph?");
      }
      offset += gap;
      visit(node, offset);
    }
  }

  std::uint64_t gap_of(std::uint64_t node, BitReader& reader) const {
    const std::uint64_t at = reader.position();
    try {
      return reader.read(properties_.offsets, properties_.zeta_k);
    } catch (const BitError& error) {
      throw InputError(path_ + ": offset of node " + std::to_string(node) + ", bit " +
                       std::to_string(at) + ": " + error.what());
    }
  }

  std::string path_;
  std::string bytes_;
  const BvProperties& properties_;
  std::uint64_t bits_;
};

// The lists of the nodes of a slice, one after the other.
class Lists {
 public:
  Lists(const InputFile& file, const BvProperties& properties, const Slice& slice)
      : path_(file.path()),
        properties_(properties),
        slice_(slice),
        bytes_(file.read(slice.offsets.front() / 8, (slice.offsets.back() + 7) / 8)),
        reader_(bytes_of(bytes_), bytes_.size(), slice.offsets.front() / 8 * 8),
        recent_(properties.window + 1) {}

  void append_to(std::vector<Arc>& arcs) {
    for (std::uint64_t node = slice_.warm_up; node < slice_.last; ++node) {
      Successors& list = recent_[node % recent_.size()];
      read_list(node, list);
      if (node < slice_.first) continue;
      if (!list.known)
        fail(node,
             "it refers, over other lists, to more nodes before it than "
             "'maxrefcount' of the properties allows");
      for (const std::uint32_t successor : list.nodes) {
        arcs.push_back({static_cast<std::uint32_t>(node), successor});
      }
    }
  }

 private:
  // A list is unknown if it refers to one before the slice; then no list of the slice needs it.
  struct Successors {
    bool known = false;
    std::vector<std::uint32_t> nodes;
  };

  [[noreturn]] void fail(std::uint64_t node, const std::string& what) const {
    throw InputError(path_ + ": list of node " + std::to_string(node) + ", bit " +
                     std::to_string(reader_.position()) + ": " + what);
  }

  void read_list(std::uint64_t node, Successors& list) {
    const std::uint64_t* offset = &slice_.offsets[node - slice_.warm_up];
    try {
      reader_.seek(offset[0]);
      list.nodes.clear();
      list.known = decode(node, list.nodes);
    } catch (const BitError& error) {
      fail(node, error.what());
    }
    if (list.known && reader_.position() != offset[1]) {
      fail(node, "it ends here, but the offsets say bit " + std::to_string(offset[1]));
    }
  }

  // False if the list is unknown.
  bool decode(std::uint64_t node, std::vector<std::uint32_t>& list) {
    const std::uint64_t degree = read(properties_.outdegrees);
    if (degree > properties_.nodes) {
      fail(node, "it has " + std::to_string(degree) + " successors, more than there are nodes");
    }
    if (degree == 0) return true;
    const std::uint64_t back = properties_.window > 0 ? read(properties_.references) : 0;
    if (back > properties_.window || back > node) {
      fail(node, "it refers to the list " + std::to_string(back) + " nodes before it");
    }
    copied_.clear();
    if (back > 0) {
      if (node - back < slice_.warm_up) return false;
      const Successors& other = recent_[(node - back) % recent_.size()];
      if (!other.known) return false;
      copy_blocks(node, other.nodes);
    }
    if (copied_.size() > degree) fail(node, "it copies more successors than it has");
    read_extras(node, degree - copied_.size());
    merge(node, list);
    return true;
  }

  // Blocks are copied and skipped in turn. What follows the last one is copied if that one was
  // skipped. All but the first have at least one element.
  void copy_blocks(std::uint64_t node, const std::vector<std::uint32_t>& from) {
    const std::uint64_t blocks = read(properties_.block_counts);
    std::size_t at = 0;
    for (std::uint64_t block = 0; block < blocks; ++block) {
      const std::uint64_t length = read(properties_.blocks) + (block == 0 ? 0 : 1);
      if (length > from.size() - at) fail(node, "its blocks are longer than the list they are of");
      if (block % 2 == 0) append(from, at, at + length);
      at += length;
    }
    if (blocks % 2 == 0) append(from, at, from.size());
  }

  void append(const std::vector<std::uint32_t>& from, std::size_t begin, std::size_t end) {
    copied_.insert(copied_.end(), from.begin() + static_cast<std::ptrdiff_t>(begin),
                   from.begin() + static_cast<std::ptrdiff_t>(end));
  }

  void read_extras(std::uint64_t node, std::uint64_t count) {
    intervals_.clear();
    residuals_.clear();
    if (count > 0 && properties_.min_interval > 0) count -= read_intervals(node, count);
    std::uint64_t successor = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t code = read(properties_.residuals);
      successor = i == 0 ? around(node, code) : after(node, successor, code);
      residuals_.push_back(static_cast<std::uint32_t>(successor));
    }
  }

  // The number of successors in the intervals, of which there are at most `count`.
  std::uint64_t read_intervals(std::uint64_t node, std::uint64_t count) {
    const std::uint64_t intervals = reader_.gamma();
    std::uint64_t end = 0;  // one more than the last interval's last node
    std::uint64_t total = 0;
    for (std::uint64_t i = 0; i < intervals; ++i) {
      const std::uint64_t code = reader_.gamma();
      const std::uint64_t left = i == 0 ? around(node, code) : after(node, end, code);
      const std::uint64_t gap = reader_.gamma();
      if (gap > count || properties_.min_interval + gap > count - total) {
        fail(node, "its intervals have more successors than it has");
      }
      const std::uint64_t length = properties_.min_interval + gap;
      if (length > properties_.nodes - left) fail(node, "an interval ends after the last node");
      for (std::uint64_t j = 0; j < length; ++j) {
        intervals_.push_back(static_cast<std::uint32_t>(left + j));
      }
      total += length;
      end = left + length;
    }
    return total;
  }

  // The first of a kind: 0, 1, 2, 3, … are node, node - 1, node + 1, node - 2, …
  std::uint64_t around(std::uint64_t node, std::uint64_t code) const {
    const std::uint64_t distance = code / 2 + code % 2;
    const bool before = code % 2 == 1;
    if (before ? distance > node : distance >= properties_.nodes - node) {
      fail(node, "a successor lies " + std::to_string(distance) + " nodes " +
                     (before ? "before" : "after") + " it, which is no node");
    }
    return before ? node - distance : node + distance;
  }

  std::uint64_t after(std::uint64_t node, std::uint64_t successor, std::uint64_t code) const {
    if (properties_.nodes - successor < 2 || code > properties_.nodes - successor - 2) {
      fail(node, "a successor lies after the last node");
    }
    return successor + code + 1;
  }

  void merge(std::uint64_t node, std::vector<std::uint32_t>& list) {
    extras_.resize(intervals_.size() + residuals_.size());
    std::merge(intervals_.begin(), intervals_.end(), residuals_.begin(), residuals_.end(),
               extras_.begin());
    list.resize(copied_.size() + extras_.size());
    std::merge(copied_.begin(), copied_.end(), extras_.begin(), extras_.end(), list.begin());
    if (std::adjacent_find(list.begin(), list.end()) != list.end()) {
      fail(node, "it has a successor twice");
    }
  }

  std::uint64_t read(Code code) { return reader_.read(code, properties_.zeta_k); }

  std::string path_;
  const BvProperties& properties_;
  const Slice& slice_;
  std::string bytes_;
  BitReader reader_;
  std::vector<Successors> recent_;  // the list of node x is at x mod (window + 1)
  std::vector<std::uint32_t> copied_, intervals_, residuals_, extras_;
};

}  // namespace

std::string bvgraph_basename(const std::string& name) {
  for (const char* ending : {".graph", ".properties", ".offsets"}) {
    if (name.ends_with(ending)) return name.substr(0, name.rfind('.'));
  }
  return name;
}

ArcPart read_bvgraph(const std::string& basename, Part part) {
  const std::string base = bvgraph_basename(basename);
  const BvProperties properties = read_bv_properties(base + ".properties");
  const InputFile graph(base + ".graph");
  const Slice slice = Offsets(base + ".offsets", properties, graph.bytes() * 8).slice_of(part);
  ArcPart read;
  read.nodes = properties.nodes;
  read.entries_declared = properties.arcs;
  Lists(graph, properties, slice).append_to(read.arcs);
  read.entries = read.arcs.size();
  return read;
}

}  // namespace graphs
