// SPDX-License-Identifier: BSD-3-Clause
#include "results.hpp"

#include <mpi.h>

#include <algorithm>

#include "job/collective.hpp"

namespace pagerank {
namespace {

bool is_before(const RankedNode& a, const RankedNode& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.node < b.node;
}

void keep_first(std::vector<RankedNode>& nodes, std::uint64_t count) {
  const std::size_t kept = std::min<std::size_t>(nodes.size(), count);
  std::partial_sort(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(kept), nodes.end(),
                    is_before);
  nodes.resize(kept);
}

// Where the rank of a node is in the file.
MPI_Offset offset_of(std::uint64_t node) {
  return static_cast<MPI_Offset>(node) * MPI_Offset{sizeof(double)};
}

void check_file(int code, const std::string& path) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  std::string sentence(text, static_cast<std::size_t>(length));
  sentence.resize(std::min(sentence.size(), sentence.find(", error stack")));  // MPICH adds it
  throw job::SharedError(path + ": " + sentence + "; give a path that every rank can write to");
}

}  // namespace

std::vector<RankedNode> top_nodes(const Graph& graph, const std::vector<double>& ranks,
                                  std::uint64_t count) {
  std::vector<RankedNode> local;
  local.reserve(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) local.push_back({ranks[i], graph.first + i});
  keep_first(local, count);
  const int mine = static_cast<int>(local.size() * sizeof(RankedNode));
  std::vector<int> bytes(static_cast<std::size_t>(job::rank_count()));
  MPI_Gather(&mine, 1, MPI_INT, bytes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  const std::vector<int> places = job::starts_of(bytes);
  const auto total = static_cast<std::size_t>(places.back() + bytes.back());
  std::vector<RankedNode> all(total / sizeof(RankedNode));
  MPI_Gatherv(local.data(), mine, MPI_BYTE, all.data(), bytes.data(), places.data(), MPI_BYTE, 0,
              MPI_COMM_WORLD);
  keep_first(all, count);
  return all;
}

void write_ranks(const std::string& path, const Graph& graph, const std::vector<double>& ranks) {
  MPI_File file = MPI_FILE_NULL;
  int code = MPI_File_open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY,
                           MPI_INFO_NULL, &file);
  job::on_every_rank([&] { check_file(code, path); });
  // An older and longer file would keep its end.
  code = MPI_File_set_size(file, offset_of(graph.nodes));
  constexpr std::size_t piece = 1 << 24;  // a count is an int
  for (std::size_t at = 0; at < ranks.size() && code == MPI_SUCCESS; at += piece) {
    const int count = static_cast<int>(std::min(piece, ranks.size() - at));
    code = MPI_File_write_at(file, offset_of(graph.first + at), ranks.data() + at, count,
                             MPI_DOUBLE, MPI_STATUS_IGNORE);
  }
  const int close_code = MPI_File_close(&file);
  job::on_every_rank([&] {
    check_file(code, path);
    check_file(close_code, path);
  });
}

}  // namespace pagerank
