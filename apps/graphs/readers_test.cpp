// SPDX-License-Identifier: BSD-3-Clause
//
// Edge lists, Matrix Market and R-MAT: the parts of a graph are the graph, and every bad line is an
// error with its number.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "rmat.hpp"
#include "test_folder.hpp"
#include "test_seed.hpp"
#include "text_graphs.hpp"

namespace graphs {
namespace {

using Arcs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

struct Whole {
  std::uint64_t nodes = 0;
  Arcs arcs;
};

template <typename Read>
Whole read_parts(std::uint64_t parts, const Read& read) {
  Whole whole;
  for (std::uint64_t index = 0; index < parts; ++index) {
    const ArcPart part = read(Part{index, parts});
    whole.nodes = std::max(whole.nodes, part.nodes);
    for (const Arc& arc : part.arcs) whole.arcs.emplace_back(arc.source, arc.target);
  }
  return whole;
}

TEST(Part, covers_everything_once_however_large) {
  for (const std::uint64_t size : {UINT64_C(0), UINT64_C(1), UINT64_C(10), UINT64_MAX}) {
    for (const std::uint64_t count : {1U, 3U, 7U, 1000U}) {
      EXPECT_EQ((Part{0, count}.begin(size)), 0U);
      EXPECT_EQ((Part{count - 1, count}.end(size)), size);
      for (std::uint64_t i = 1; i < count; ++i) {
        EXPECT_EQ((Part{i, count}.begin(size)), (Part{i - 1, count}.end(size)));
      }
    }
  }
}

TEST(EdgeList, skips_comments_and_blank_lines_and_takes_any_blanks) {
  const TestFolder folder;
  const std::string path = folder.write("g", "# a\n% b\n\n0 1\n 2\t0 \r\n  \n1 1");
  for (std::uint64_t parts = 1; parts < 12; ++parts) {
    const Whole whole = read_parts(parts, [&](Part part) { return read_edge_list(path, 0, part); });
    EXPECT_EQ(whole.nodes, 3U);
    EXPECT_EQ(whole.arcs, (Arcs{{0, 1}, {2, 0}, {1, 1}})) << parts << " parts";
  }
  EXPECT_EQ(read_edge_list(path, 9, {}).nodes, 9U);
}

TEST(EdgeList, gives_every_line_to_one_part_wherever_they_are_split) {
  const TestFolder folder;
  const std::uint64_t seed = perdure::test_seed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    Arcs arcs;
    std::string text;
    for (std::uint64_t i = random() % 60; i > 0; --i) {
      arcs.emplace_back(random() % 1000, random() % 10);
      text += std::to_string(arcs.back().first) + ' ' + std::to_string(arcs.back().second) + '\n';
      if (random() % 9 == 0) text += "# " + std::string(random() % 50, 'x') + '\n';
    }
    const std::string path = folder.write("g", text);
    for (const std::uint64_t parts : {1U, 2U, 5U, 40U}) {
      const auto read = [&](Part part) { return read_edge_list(path, 0, part); };
      EXPECT_EQ(read_parts(parts, read).arcs, arcs) << "seed " << seed << ", " << parts << " parts";
    }
  }
}

std::string edge_list_error(const std::string& text, std::uint64_t nodes = 0) {
  const TestFolder folder;
  const std::string path = folder.write("g", text);
  return error_of([&] {
    for (std::uint64_t part = 0; part < 2; ++part) read_edge_list(path, nodes, {part, 2});
  });
}

TEST(EdgeList, has_no_nodes_where_the_file_is_empty) {
  const TestFolder folder;
  EXPECT_EQ(read_edge_list(folder.write("g", ""), 0, {}).nodes, 0U);
}

TEST(EdgeList, has_nodes_below_the_limit_of_the_program_that_reads_it) {
  const TestFolder folder;
  const std::string path = folder.write("g", "0 1\n2 4\n");
  EXPECT_EQ(read_edge_list(path, 0, {}, 5).nodes, 5U);
  EXPECT_NE(error_of([&] { read_edge_list(path, 0, {}, 4); }).find("line 2: node 4 is not below 4"),
            std::string::npos);
}

TEST(EdgeList, names_the_line_that_is_wrong) {
  EXPECT_NE(edge_list_error("0 1\n1 x\n").find("g: line 2: 'x' is not"), std::string::npos);
  EXPECT_NE(edge_list_error("0 1\n\n1\n").find("line 3: '' is not"), std::string::npos);
  EXPECT_NE(edge_list_error("0 1\n1").find("line 2: '' is not"), std::string::npos);
  EXPECT_NE(edge_list_error("0 -1\n").find("line 1: '-1' is not"), std::string::npos);
  EXPECT_NE(edge_list_error("0 1 0.5\n").find("line 1: a third field"), std::string::npos);
  EXPECT_NE(edge_list_error("0 1\n0 5\n", 5).find("line 2: node 5 is not below 5"),
            std::string::npos);
  EXPECT_NE(edge_list_error("4294967295 1\n").find("the limit"), std::string::npos);
  EXPECT_NE(edge_list_error("99999999999999999999 1\n").find("is not the number"),
            std::string::npos);
  EXPECT_NE(edge_list_error(std::string(3 << 20, '7')).find("more than 1048576 bytes"),
            std::string::npos);
  EXPECT_NE(error_of([] { read_edge_list("/nonexistent/g", 0, {}); }).find("/nonexistent/g: No"),
            std::string::npos);
  EXPECT_NE(error_of([] { read_edge_list("/", 0, {}); }).find("not an ordinary file"),
            std::string::npos);
}

TEST(MatrixMarket, reads_patterns_and_values_and_both_triangles) {
  const TestFolder folder;
  const std::string pattern =
      folder.write("p.mtx",
                   "%%MatrixMarket matrix coordinate pattern general\n% c\n\n3 3 3\n"
                   "1 2\n3 1\n2 2\n");
  const std::string real = folder.write(
      "r.mtx", "%%matrixmarket MATRIX Coordinate Real Symmetric\n3 3 2\n2 1 -1.5e3\n3 3 +2\n");
  for (std::uint64_t parts = 1; parts < 6; ++parts) {
    const auto read = [](const std::string& path) {
      return [path](Part part) { return read_matrix_market(path, part); };
    };
    EXPECT_EQ(read_parts(parts, read(pattern)).arcs, (Arcs{{0, 1}, {2, 0}, {1, 1}}));
    EXPECT_EQ(read_parts(parts, read(pattern)).nodes, 3U);
    EXPECT_EQ(read_parts(parts, read(real)).arcs, (Arcs{{1, 0}, {0, 1}, {2, 2}}));
  }
  EXPECT_EQ(read_matrix_market(real, {}).entries, 2U);
  EXPECT_EQ(read_matrix_market(real, {}).entries_declared, 2U);
}

std::string matrix_error(const std::string& text) {
  const TestFolder folder;
  const std::string path = folder.write("m.mtx", text);
  return error_of([&] {
    for (std::uint64_t part = 0; part < 2; ++part) read_matrix_market(path, {part, 2});
  });
}

TEST(MatrixMarket, names_the_line_that_is_wrong) {
  const std::string head = "%%MatrixMarket matrix coordinate integer general\n";
  EXPECT_NE(matrix_error("").find("m.mtx is empty"), std::string::npos);
  EXPECT_NE(matrix_error("1 1 1\n").find("line 1: it does not begin"), std::string::npos);
  EXPECT_NE(matrix_error("%%MatrixMarket matrix array real general\n2 2\n").find("array"),
            std::string::npos);
  EXPECT_NE(matrix_error("%%MatrixMarket matrix coordinate real skew-symmetric\n").find("skew"),
            std::string::npos);
  EXPECT_NE(matrix_error(head).find("no line with the sizes"), std::string::npos);
  EXPECT_NE(matrix_error(head + "2 3 1\n1 1 1\n").find("line 2: 2 rows and 3 columns"),
            std::string::npos);
  EXPECT_NE(matrix_error(head + "2 2\n").find("line 2: it should have"), std::string::npos);
  EXPECT_NE(matrix_error(head + "2 2 1\n0 1 1\n").find("line 3: row or column 0"),
            std::string::npos);
  EXPECT_NE(matrix_error(head + "2 2 1\n1 3 1\n").find("line 3: row or column 3"),
            std::string::npos);
  EXPECT_NE(matrix_error(head + "2 2 1\n1 2\n").find("line 3: '' is not the value"),
            std::string::npos);
  EXPECT_NE(matrix_error(head + "2 2 1\n1 2 x\n").find("line 3: 'x' is not the value"),
            std::string::npos);
  EXPECT_NE(matrix_error(head + "2 2 1\n1 2 1 1\n").find("line 3: it has more fields"),
            std::string::npos);
}

TEST(Rmat, is_the_same_graph_whatever_the_number_of_parts) {
  const Rmat rmat{9, 7, 42};
  const auto read = [&](Part part) { return generate_rmat(rmat, part); };
  const Whole whole = read_parts(1, read);
  EXPECT_EQ(whole.nodes, 512U);
  for (const std::uint64_t parts : {2U, 3U, 64U})
    EXPECT_EQ(read_parts(parts, read).arcs, whole.arcs);
  const auto other = [&](Part part) { return generate_rmat({9, 7, 43}, part); };
  EXPECT_NE(read_parts(1, other).arcs, whole.arcs);
}

TEST(Rmat, has_no_loops_and_few_nodes_with_many_arcs) {
  const Whole whole = read_parts(1, [](Part part) { return generate_rmat({12, 16, 1}, part); });
  std::vector<std::uint32_t> in_degree(whole.nodes), out_degree(whole.nodes);
  for (const auto& [source, target] : whole.arcs) {
    ASSERT_NE(source, target);
    ++out_degree.at(source);
    ++in_degree.at(target);
  }
  std::sort(in_degree.rbegin(), in_degree.rend());
  std::sort(out_degree.rbegin(), out_degree.rend());
  // The heaviest node is expected in 0.76^12 of the arcs, some 2,400; the average is below 16.
  EXPECT_GT(in_degree[0], 1500U);
  EXPECT_GT(out_degree[0], 1500U);
  EXPECT_LT(in_degree[whole.nodes / 2], 16U);
  EXPECT_GT(whole.arcs.size(), 60000U);
}

TEST(Rmat, renumbers_nodes_by_a_permutation) {
  for (const unsigned scale : {1U, 2U, 3U, 8U, 13U}) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      std::set<std::uint32_t> seen;
      for (std::uint32_t node = 0; node < 1U << scale; ++node) {
        seen.insert(scrambled(node, scale, seed));
      }
      EXPECT_EQ(seen.size(), std::size_t{1} << scale);
      EXPECT_LT(*seen.rbegin(), 1U << scale);
    }
  }
}

}  // namespace
}  // namespace graphs
