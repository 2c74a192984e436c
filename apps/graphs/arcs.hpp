// SPDX-License-Identifier: BSD-3-Clause
//
// Arcs as a reader gives them: the part of a graph's arcs that one rank has read or generated.
//
// What is read is not trusted: an InputError names the file, the place in it, what is there and
// what to do. It is local; job::on_every_rank makes it an error of all ranks. Nothing here knows
// MPI, and nothing is shared between threads.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

namespace graphs {

// Nodes are numbered from 0 and have 32 bits; the last number marks what is no node.
constexpr std::uint64_t nodes_max = UINT32_MAX;

struct Arc {
  std::uint32_t source;
  std::uint32_t target;
};

class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Which of `count` parts of the input to read; all of them together are the whole graph.
struct Part {
  std::uint64_t index = 0;
  std::uint64_t count = 1;

  // Where the part begins in something of `size` units; the next one begins where it ends.
  std::uint64_t begin(std::uint64_t size) const { return share(size, index); }
  std::uint64_t end(std::uint64_t size) const { return share(size, index + 1); }

 private:
  std::uint64_t share(std::uint64_t size, std::uint64_t parts) const {
    return size / count * parts + size % count * parts / count;
  }
};

struct ArcPart {
  std::uint64_t nodes = 0;  // of the graph, or 1 + the largest number seen in this part
  std::vector<Arc> arcs;
  std::uint64_t entries = 0;                      // that the file had in this part
  std::optional<std::uint64_t> entries_declared;  // that its header says all parts have
};

}  // namespace graphs
