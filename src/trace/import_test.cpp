// SPDX-License-Identifier: BSD-3-Clause
//
// Importers: what each format means, and what each refuses.
#include "trace/import.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "trace/testing/trace_fixture.hpp"

namespace perdure::trace {
namespace {

struct Outcome {
  Status status;
  Imported imported;
  std::vector<Record> records;
  std::vector<std::uint64_t> pages;
};

Outcome import_bytes(const std::string& format, std::span<const std::byte> bytes, FilterMode mode) {
  Outcome outcome;
  Header header = small_header(0);
  header.mode = mode;
  std::vector<std::byte> trace;
  auto writer = Writer::create(memory_sink(trace), header).take();
  auto source = memory_source(bytes, false);
  const auto imported = import_accesses(import_format(format).take(), *source, header, *writer);
  outcome.status = imported.status();
  if (!imported.ok()) return outcome;
  outcome.imported = imported.value();
  EXPECT_TRUE(writer->finish({}).ok());
  EXPECT_TRUE(read_all(trace, outcome.records).ok());
  auto reader = Reader::open(memory_source(trace)).take();
  EXPECT_TRUE(verify(*reader).ok());
  outcome.pages = reader->page_numbers();
  return outcome;
}

Outcome import_text(const std::string& format, const std::string& text,
                    FilterMode mode = FilterMode::none) {
  return import_bytes(format, std::as_bytes(std::span(text.data(), text.size())), mode);
}

TEST(Import, reads_lackey) {
  const auto outcome = import_text("lackey",
                                   "==7== Lackey\n"
                                   "I  04016a90,3\n"
                                   " S 1ffeffe7e8,8\n"
                                   " L 1ffeffe7e8,8\n"
                                   " M 0421c7cc,4\n"
                                   " L 00000fff,2\n");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.imported.requests, 4U);
  EXPECT_EQ(outcome.imported.left_out, 1U);
  EXPECT_EQ(outcome.pages, (std::vector<std::uint64_t>{0x1ffeffe, 0x421c, 0, 1}));
  EXPECT_EQ(
      outcome.records,
      (std::vector<Record>{{0, 0, 1}, {0, 1, 0}, {1, 1, 0}, {1, 0, 1}, {2, 1, 0}, {3, 1, 0}}));
}

TEST(Import, passes_accesses_through_the_cache_of_the_header) {
  const std::string text = " L 1000,8\n L 1008,8\n S 1010,8\n L 101000,8\n S 1000,8\n";
  const auto paper = import_text("lackey", text, FilterMode::paper);
  EXPECT_EQ(paper.records, (std::vector<Record>{{0, 1, 0}, {1, 1, 0}, {0, 0, 1}}));
  const auto modern = import_text("lackey", text, FilterMode::modern);
  EXPECT_EQ(modern.records, (std::vector<Record>{{0, 1, 0}, {1, 1, 0}, {0, 0, 1}, {0, 1, 0}}));
}

TEST(Import, reads_din) {
  const auto outcome = import_text("din", "0 1fff\n1 2000 a comment\r\n2 400\n\n0 0x1000");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.records, (std::vector<Record>{{0, 1, 0}, {1, 0, 1}, {0, 1, 0}}));
  EXPECT_EQ(outcome.imported.left_out, 1U);
}

TEST(Import, reads_dramsim3_and_ramulator) {
  const auto dramsim3 = import_text("dramsim3", "0x1000 READ 0\n0x2040 WRITE 17\n");
  EXPECT_EQ(dramsim3.records, (std::vector<Record>{{0, 1, 0}, {1, 0, 1}}))
      << dramsim3.status.message();
  const auto ramulator = import_text("ramulator", "LD 0x1000\nST 0x2040\n0x1000 R\n0x1000 W\n");
  EXPECT_EQ(ramulator.records, (std::vector<Record>{{0, 1, 0}, {1, 0, 1}, {0, 1, 0}, {0, 0, 1}}))
      << ramulator.status.message();
}

TEST(Import, reads_oracle_general) {
  std::vector<std::byte> bytes;
  for (const std::uint64_t object : {77UL, ~0UL, 77UL}) {
    std::byte request[24] = {};
    std::memcpy(request + 4, &object, sizeof object);
    bytes.insert(bytes.end(), request, request + 24);
  }
  const auto outcome = import_bytes("oracle_general", bytes, FilterMode::none);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.records, (std::vector<Record>{{0, 1, 0}, {1, 1, 0}, {0, 1, 0}}));
  EXPECT_EQ(outcome.pages, (std::vector<std::uint64_t>{77, ~std::uint64_t{0}}));
  bytes.pop_back();
  EXPECT_EQ(import_bytes("oracle_general", bytes, FilterMode::none).status.code(), Code::damaged);
}

TEST(Import, names_the_line_that_is_wrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {"lackey", " L 1000,8\n X 1000,8\n"},
      {"lackey", " L 1000,8\n L 1000\n"},
      {"lackey", " L 1000,8\n L zz,8\n"},
      {"lackey", " L 1000,8\n L 1000,0\n"},
      {"lackey", " L 1000,8\n L ffffffffffffffff,8\n"},
      {"lackey", " L 1000,8\n L 1000,99999999\n"},
      {"din", "0 1000\n7 1000\n"},
      {"din", "0 1000\n0\n"},
      {"dramsim3", "0x1 READ 1\n0x1 READ\n"},
      {"dramsim3", "0x1 READ 1\n1 READ 1\n"},
      {"ramulator", "LD 0x1\nLD 0x1 7\n"},
      {"ramulator", "LD 0x1\nAD 0x1\n"}};
  for (const auto& [format, text] : wrong) {
    const auto outcome = import_text(format, text);
    EXPECT_EQ(outcome.status.code(), Code::damaged) << format << ": " << text;
    EXPECT_NE(outcome.status.message().find("line 2"), std::string::npos)
        << outcome.status.message();
  }
}

TEST(Import, refuses_inputs_without_accesses_or_line_ends) {
  EXPECT_EQ(import_text("lackey", "").status.code(), Code::damaged);
  EXPECT_EQ(import_text("lackey", "I  1000,4\n").status.code(), Code::damaged);
  EXPECT_EQ(import_text("din", std::string(300000, 'a')).status.code(), Code::damaged);
}

TEST(Import, refuses_to_filter_what_was_filtered) {
  EXPECT_EQ(import_text("dramsim3", "0x1 READ 1\n", FilterMode::paper).status.code(),
            Code::invalid_argument);
  EXPECT_EQ(import_format("drmemtrace").status().code(), Code::invalid_argument);
}

// Lines longer than a chunk's rest are joined.
TEST(Import, joins_lines_across_chunks) {
  std::string text;
  for (int i = 0; i < 60000; ++i) text += " L " + std::to_string(1000 + i % 7) + "000,8\n";
  const auto outcome = import_text("lackey", text);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.imported.requests, 60000U);
  EXPECT_EQ(outcome.pages.size(), 7U);
}

}  // namespace
}  // namespace perdure::trace
