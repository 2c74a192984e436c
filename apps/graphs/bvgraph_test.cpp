// SPDX-License-Identifier: BSD-3-Clause
//
// BVGraphs: what is written is read, in every form and whatever the number of parts; what is
// damaged is an error with its place or another graph, and never anything else.
// ctest: SOURCES testing/bvgraph_writer.cpp
#include "bvgraph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "input_file.hpp"
#include "source_tree.hpp"
#include "test_folder.hpp"
#include "test_seed.hpp"
#include "testing/bvgraph_writer.hpp"

namespace graphs {
namespace {

const std::uint8_t* bytes_of(const std::string& text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

std::string code_of(std::uint64_t value, Code code, unsigned zeta_k) {
  BitWriter writer;
  writer.write(value, code, zeta_k);
  std::string text;
  for (std::uint64_t i = 0; i < writer.position(); ++i) {
    const auto byte = static_cast<unsigned char>(writer.bytes()[i / 8]);
    text += (byte >> (7 - i % 8) & 1) != 0 ? '1' : '0';
  }
  return text;
}

// Lists with runs, and with much in common with those before, so that every form has a use.
Lists random_lists(std::size_t nodes, std::mt19937_64& random) {
  Lists lists(nodes);
  for (std::size_t node = 0; node < nodes; ++node) {
    std::set<std::uint32_t> list;
    if (node > 0 && random() % 3 > 0) {
      const auto& before = lists[node - 1 - random() % std::min<std::size_t>(node, 5)];
      for (const std::uint32_t successor : before) {
        if (random() % 8 > 0) list.insert(successor);
      }
      if (random() % 4 == 0) list.insert(before.begin(), before.end());
    }
    for (std::uint64_t i = random() % 4; i > 0; --i) {
      const std::uint64_t left = random() % nodes;
      const std::uint64_t length = random() % 3 == 0 ? random() % 12 : 1;
      for (std::uint64_t j = left; j < std::min(left + length, nodes); ++j) {
        list.insert(static_cast<std::uint32_t>(j));
      }
    }
    if (random() % 6 == 0) list.clear();
    lists[node].assign(list.begin(), list.end());
  }
  return lists;
}

Lists lists_of(const std::string& base, std::uint64_t parts, std::size_t nodes) {
  Lists lists(nodes);
  for (std::uint64_t index = 0; index < parts; ++index) {
    const ArcPart part = read_bvgraph(base, {index, parts});
    EXPECT_EQ(part.nodes, nodes);
    for (const Arc& arc : part.arcs) lists.at(arc.source).push_back(arc.target);
  }
  return lists;
}

BvProperties with(Code outdegrees, Code references, Code block_counts, Code blocks, Code residuals,
                  Code offsets, unsigned zeta_k) {
  BvProperties properties;
  properties.outdegrees = outdegrees;
  properties.references = references;
  properties.block_counts = block_counts;
  properties.blocks = blocks;
  properties.residuals = residuals;
  properties.offsets = offsets;
  properties.zeta_k = zeta_k;
  return properties;
}

std::vector<BvProperties> all_codings() {
  using enum Code;
  std::vector<BvProperties> all;
  for (const unsigned k : {1U, 2U, 3U, 5U, 8U}) {
    all.push_back(with(gamma, unary, gamma, gamma, zeta, gamma, k));
  }
  all.push_back(with(delta, gamma, unary, delta, gamma, delta, 3));
  all.push_back(with(gamma, delta, delta, unary, delta, gamma, 3));
  all.push_back(with(delta, unary, gamma, gamma, nibble, delta, 3));
  return all;
}

TEST(BitReader, knows_the_codes_of_the_paper) {
  // Boldi and Vigna, "Codes for the World-Wide Web", encode from 1; we from 0.
  const std::vector<std::string> gamma{"1",     "010",   "011",   "00100",
                                       "00101", "00110", "00111", "0001000"};
  const std::vector<std::string> delta{"1",     "0100",  "0101",  "01100",
                                       "01101", "01110", "01111", "00100000"};
  const std::vector<std::string> zeta2{"10",    "110",   "111",   "01000",
                                       "01001", "01010", "01011", "011000"};
  const std::vector<std::string> zeta3{"100",  "1010", "1011", "1100",
                                       "1101", "1110", "1111", "0100000"};
  for (std::uint64_t value = 0; value < 8; ++value) {
    EXPECT_EQ(code_of(value, Code::gamma, 3), gamma[value]);
    EXPECT_EQ(code_of(value, Code::delta, 3), delta[value]);
    EXPECT_EQ(code_of(value, Code::zeta, 2), zeta2[value]);
    EXPECT_EQ(code_of(value, Code::zeta, 3), zeta3[value]);
    EXPECT_EQ(code_of(value, Code::zeta, 1), gamma[value]);  // zeta_1 is gamma
  }
  EXPECT_EQ(code_of(0, Code::nibble, 3), "1000");
  EXPECT_EQ(code_of(9, Code::nibble, 3), "00011001");
}

TEST(BitReader, reads_what_was_written_in_every_code) {
  std::mt19937_64 random(perdure::test_seed());
  for (const Code code : {Code::unary, Code::gamma, Code::delta, Code::zeta, Code::nibble}) {
    for (unsigned k = 1; k <= 9; ++k) {
      BitWriter writer;
      std::vector<std::uint64_t> values;
      for (int i = 0; i < 500; ++i) {
        values.push_back(random() >> (code == Code::unary ? 56 : 10 + random() % 54));
        writer.write(values.back(), code, k);
      }
      BitReader reader(bytes_of(writer.bytes()), writer.bytes().size());
      for (const std::uint64_t value : values) ASSERT_EQ(reader.read(code, k), value) << "k " << k;
      EXPECT_EQ(reader.position(), writer.position());
    }
  }
}

TEST(BitReader, refuses_a_code_that_does_not_end) {
  const std::string zeros(20, '\0');
  for (const Code code : {Code::unary, Code::gamma, Code::delta, Code::zeta, Code::nibble}) {
    BitReader reader(bytes_of(zeros), zeros.size());
    EXPECT_THROW(reader.read(code, 3), BitError);
  }
  BitReader empty(nullptr, 0);
  EXPECT_THROW(empty.unary(), BitError);
}

TEST(BvGraph, is_read_as_written_in_every_coding_and_number_of_parts) {
  const TestFolder folder;
  const std::uint64_t seed = perdure::test_seed();
  std::mt19937_64 random(seed);
  BvUse used;
  for (const BvProperties& coding : all_codings()) {
    for (const std::uint64_t window : {7U, 0U, 1U, 30U}) {
      for (const std::uint64_t min_interval : {4U, 0U, 2U}) {
        BvProperties properties = coding;
        properties.window = window;
        properties.min_interval = min_interval;
        properties.max_references = random() % 3 == 0 ? UINT64_MAX : 1 + random() % 4;
        const Lists lists = random_lists(1 + random() % 150, random);
        const BvUse use = write_bvgraph(folder / "graph", lists, properties, random);
        used.references += use.references;
        used.blocks += use.blocks;
        used.whole_copies += use.whole_copies;
        used.intervals += use.intervals;
        used.residuals += use.residuals;
        for (const std::uint64_t parts : {1U, 2U, 3U, 16U}) {
          ASSERT_EQ(lists_of(folder / "graph", parts, lists.size()), lists)
              << "seed " << seed << ", window " << window << ", intervals " << min_interval;
        }
      }
    }
  }
  for (const std::uint64_t count :
       {used.references, used.blocks, used.whole_copies, used.intervals, used.residuals}) {
    EXPECT_GT(count, 100U);
  }
}

TEST(BvGraph, may_have_no_arcs_and_fewer_nodes_than_parts) {
  const TestFolder folder;
  std::mt19937_64 random(1);
  for (const std::size_t nodes : {1U, 2U, 3U}) {
    const Lists lists(nodes);
    write_bvgraph(folder / "graph", lists, {}, random);
    EXPECT_EQ(lists_of(folder / "graph", 8, nodes), lists);
  }
}

TEST(BvGraph, is_found_by_the_name_of_any_of_its_files) {
  EXPECT_EQ(bvgraph_basename("a/web.graph"), "a/web");
  EXPECT_EQ(bvgraph_basename("a/web.properties"), "a/web");
  EXPECT_EQ(bvgraph_basename("a/web.offsets"), "a/web");
  EXPECT_EQ(bvgraph_basename("a/web.2"), "a/web.2");
}

class DamagedGraph : public ::testing::Test {
 protected:
  DamagedGraph() : random_(1), lists_(random_lists(60, random_)) { write(); }

  void write() { write_bvgraph(folder_ / "graph", lists_, {}, random_); }
  std::string read_error() const {
    return error_of([&] {
      for (std::uint64_t part = 0; part < 3; ++part) read_bvgraph(folder_ / "graph", {part, 3});
    });
  }
  std::string with_property(const std::string& old_text, const std::string& new_text) {
    write();
    std::string text = InputFile(folder_ / "graph.properties").read();
    text.replace(text.find(old_text), old_text.size(), new_text);
    folder_.write("graph.properties", text);
    return read_error();
  }
  void cut(const std::string& name, std::uint64_t bytes) {
    const std::string text = InputFile(folder_ / name).read();
    folder_.write(name, text.substr(0, text.size() - bytes));
  }

  TestFolder folder_;
  std::mt19937_64 random_;
  Lists lists_;
};

TEST_F(DamagedGraph, names_the_file_that_is_missing_or_too_short) {
  cut("graph.graph", 5);
  EXPECT_NE(read_error().find("graph.offsets: the list of node"), std::string::npos);
  write();
  cut("graph.offsets", 40);
  EXPECT_NE(read_error().find("graph.offsets"), std::string::npos);
  write();
  std::filesystem::remove(folder_ / "graph.graph");
  EXPECT_NE(read_error().find("graph.graph: No such file"), std::string::npos);
}

TEST_F(DamagedGraph, refuses_properties_that_it_does_not_know) {
  EXPECT_NE(with_property("nodes=60", "nodes=6x").find("'nodes=6x' is not a number"),
            std::string::npos);
  EXPECT_NE(with_property("nodes=60", "nodes=-1").find("'nodes=-1' is not in 0"),
            std::string::npos);
  EXPECT_NE(with_property("nodes=60", "knots=60").find("has no line 'nodes='"), std::string::npos);
  EXPECT_NE(with_property("zetak=3", "zetak=99").find("zetak=99"), std::string::npos);
  EXPECT_NE(with_property("version=0", "version=1").find("version=1"), std::string::npos);
  EXPECT_NE(with_property(".BVGraph", ".EFGraph").find("not of a BVGraph"), std::string::npos);
  EXPECT_NE(with_property("flags=", "flags=RESIDUALS_GOLOMB").find("'RESIDUALS_GOLOMB'"),
            std::string::npos);
  EXPECT_NE(with_property("flags=", "flags=BLOCKS_ZETA").find("'BLOCKS_ZETA'"), std::string::npos);
}

TEST_F(DamagedGraph, names_the_node_where_another_number_of_nodes_leads_astray) {
  EXPECT_NE(with_property("nodes=60", "nodes=6000").find("graph.offsets"), std::string::npos);
  EXPECT_NE(with_property("nodes=60", "nodes=30").find("graph.graph: list of node"),
            std::string::npos);
}

// All that a flipped bit may lead to: an InputError, or lists that are increasing and below n.
void expect_error_or_graph(const std::string& base) {
  for (std::uint64_t index = 0; index < 3; ++index) {
    ArcPart part;
    if (!error_of([&] { part = read_bvgraph(base, {index, 3}); }).empty()) continue;
    for (std::size_t i = 0; i < part.arcs.size(); ++i) {
      ASSERT_LT(part.arcs[i].source, part.nodes);
      ASSERT_LT(part.arcs[i].target, part.nodes);
      if (i > 0 && part.arcs[i - 1].source == part.arcs[i].source) {
        ASSERT_LT(part.arcs[i - 1].target, part.arcs[i].target);
      }
    }
  }
}

TEST_F(DamagedGraph, is_an_error_or_a_graph_whatever_bytes_are_flipped) {
  const std::uint64_t seed = perdure::test_seed();
  std::mt19937_64 random(seed);
  const std::vector<BvProperties> codings = all_codings();
  for (int round = 0; round < 2000; ++round) {
    BvProperties properties = codings[random() % codings.size()];
    properties.window = random() % 10;
    if (round % 20 == 0) write_bvgraph(folder_ / "graph", lists_, properties, random);
    const char* name =
        std::array{"graph.graph", "graph.graph", "graph.offsets", "graph.properties"}[random() % 4];
    const std::string whole = InputFile(folder_ / name).read();
    std::string damaged = whole;
    for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    }
    folder_.write(name, damaged);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(expect_error_or_graph(folder_ / "graph"));
    folder_.write(name, whole);
  }
}

TEST(Cnr2000, has_the_nodes_and_arcs_that_its_publisher_counted) {
  const char* named = std::getenv("PERDURE_TEST_GRAPH");
  const std::string base =
      bvgraph_basename(named != nullptr ? named : perdure::source_file("../shared/data/cnr-2000"));
  if (!std::filesystem::exists(base + ".graph")) {
    GTEST_SKIP() << "no " << base << ".graph; name one by PERDURE_TEST_GRAPH";
  }
  std::uint64_t arcs = 0;
  for (std::uint64_t index = 0; index < 3; ++index) {
    const ArcPart part = read_bvgraph(base, {index, 3});
    EXPECT_EQ(part.nodes, 325557U);
    EXPECT_EQ(part.entries_declared, 3216152U);
    arcs += part.arcs.size();
    for (std::size_t i = 1; i < part.arcs.size(); ++i) {
      const Arc before = part.arcs[i - 1];
      const Arc arc = part.arcs[i];
      ASSERT_TRUE(before.source < arc.source ||
                  (before.source == arc.source && before.target < arc.target));
      ASSERT_LT(arc.target, 325557U);
    }
  }
  EXPECT_EQ(arcs, 3216152U);
}

}  // namespace
}  // namespace graphs
