// SPDX-License-Identifier: BSD-3-Clause
#include "rmat.hpp"

#include "mixed.hpp"

namespace graphs {
namespace {

// Draws of 32 bits: numbers of one arc, independent of those of all others.
class Draws {
 public:
  explicit Draws(std::uint64_t key) : key_(key) {}
  std::uint32_t next() {
    if (!half_left_) word_ = mixed(key_ += 0x9e3779b97f4a7c15U);
    half_left_ = !half_left_;
    return static_cast<std::uint32_t>(half_left_ ? word_ >> 32 : word_);
  }

 private:
  std::uint64_t key_;
  std::uint64_t word_ = 0;
  bool half_left_ = false;
};

constexpr std::uint32_t threshold(double probability) {
  return static_cast<std::uint32_t>(probability * 4294967296.0);
}

// Each level chooses a quadrant of the adjacency matrix: a, b (target), c (source) or d (both).
Arc draw_arc(std::uint64_t key, unsigned scale) {
  constexpr std::uint32_t below_b = threshold(0.57);
  constexpr std::uint32_t below_c = threshold(0.57 + 0.19);
  constexpr std::uint32_t below_d = threshold(0.57 + 0.19 + 0.19);
  Draws draws(key);
  Arc arc{0, 0};
  for (unsigned level = 0; level < scale; ++level) {
    const std::uint32_t drawn = draws.next();
    const std::uint32_t source = drawn >= below_c ? 1 : 0;
    const std::uint32_t target = (drawn >= below_b ? 1U : 0U) ^ source ^ (drawn >= below_d ? 1 : 0);
    arc.source = arc.source << 1 | source;
    arc.target = arc.target << 1 | target;
  }
  return arc;
}

}  // namespace

// Each step can be undone: an odd factor modulo a power of two, and a shift that is mixed in.
std::uint32_t scrambled(std::uint32_t node, unsigned scale, std::uint64_t seed) {
  const std::uint64_t mask = (std::uint64_t{1} << scale) - 1;
  const unsigned shift = (scale + 1) / 2;
  std::uint64_t x = node;
  for (std::uint64_t round = 1; round <= 3; ++round) {
    const std::uint64_t factor = mixed(seed + round) | 1;
    x = (x * factor + mixed(seed - round)) & mask;
    x ^= x >> shift;
  }
  return static_cast<std::uint32_t>(x);
}

ArcPart generate_rmat(const Rmat& rmat, Part part) {
  const std::uint64_t nodes = std::uint64_t{1} << rmat.scale;
  const std::uint64_t end = part.end(nodes * rmat.edge_factor);
  ArcPart made;
  made.nodes = nodes;
  made.arcs.reserve(end - part.begin(nodes * rmat.edge_factor));
  const std::uint64_t key = mixed(rmat.seed + 0x9e3779b97f4a7c15U);
  for (std::uint64_t i = part.begin(nodes * rmat.edge_factor); i < end; ++i) {
    const Arc arc = draw_arc(mixed(key + i), rmat.scale);
    if (arc.source == arc.target) continue;
    made.arcs.push_back({scrambled(arc.source, rmat.scale, rmat.seed),
                         scrambled(arc.target, rmat.scale, rmat.seed)});
  }
  made.entries = end - part.begin(nodes * rmat.edge_factor);
  return made;
}

}  // namespace graphs
