// SPDX-License-Identifier: BSD-3-Clause
#include "load.hpp"

#include <string>

#include "graphs/bvgraph.hpp"
#include "graphs/rmat.hpp"
#include "graphs/text_graphs.hpp"
#include "job/collective.hpp"

namespace pagerank {
namespace {

graphs::ArcPart read_part(const Options& options, graphs::Part part) {
  switch (options.format) {
    case Format::rmat:
      return graphs::generate_rmat(options.rmat, part);
    case Format::bvgraph:
      return graphs::read_bvgraph(options.graph, part);
    case Format::matrix_market:
      return graphs::read_matrix_market(options.graph, part);
    case Format::edges:
      break;
  }
  return graphs::read_edge_list(options.graph, options.nodes, part);
}

}  // namespace

Graph load_graph(const Options& options) {
  graphs::ArcPart read;
  job::on_every_rank([&] {
    read = read_part(options, {static_cast<std::uint64_t>(job::this_rank()),
                               static_cast<std::uint64_t>(job::rank_count())});
  });
  const std::uint64_t entries = job::sum_over_ranks(read.entries);
  if (read.entries_declared && entries != *read.entries_declared) {
    throw job::SharedError(options.graph + " has " + std::to_string(entries) +
                           " arcs, but promises " + std::to_string(*read.entries_declared) +
                           "; is it whole?");
  }
  return make_graph(job::max_over_ranks(read.nodes), std::move(read.arcs));
}

}  // namespace pagerank
