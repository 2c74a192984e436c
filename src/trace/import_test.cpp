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

struct Request {
  std::uint32_t time = 0;
  std::uint64_t object = 0;
  std::uint32_t bytes = 1;
  std::int64_t next = -1;
};

std::vector<std::byte> oracle(std::initializer_list<Request> requests) {
  std::vector<std::byte> bytes;
  for (const Request& request : requests) {
    std::byte packed[24] = {};
    std::memcpy(packed, &request.time, 4);
    std::memcpy(packed + 4, &request.object, 8);
    std::memcpy(packed + 12, &request.bytes, 4);
    std::memcpy(packed + 16, &request.next, 8);
    bytes.insert(bytes.end(), packed, packed + 24);
  }
  return bytes;
}

TEST(Import, reads_oracle_general_and_counts_what_the_format_loses) {
  auto bytes = oracle({{1, 77, 4096, 2}, {1, ~0UL, 69632, INT64_MAX}, {9, 77, 4097, -1}});
  const auto outcome = import_bytes("oracle_general", bytes, FilterMode::none);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.records, (std::vector<Record>{{0, 1, 0}, {1, 1, 0}, {0, 1, 0}}));
  EXPECT_EQ(outcome.pages, (std::vector<std::uint64_t>{77, ~std::uint64_t{0}}));
  EXPECT_EQ(outcome.imported.cut_requests, 2U);
  EXPECT_EQ(outcome.imported.largest_bytes, 69632U);
  bytes.pop_back();
  EXPECT_EQ(import_bytes("oracle_general", bytes, FilterMode::none).status.code(), Code::damaged);
}

TEST(Import, takes_no_other_bytes_for_oracle_general) {
  const std::pair<std::vector<std::byte>, const char*> wrong[] = {
      {oracle({{5}, {4}}), "request 2 is earlier"},
      {oracle({{5}, {5, 7, 1, 1}}), "request 2 names as the next one of its object 1,"},
      {oracle({{5, 7, 1, 0}}), "request 1 names"},
      {oracle({{5}, {5, 7, 1, -2}}), "request 2 names"},
      {oracle({{5}, {5, 7, 1, INT64_MIN}}), "request 2 names"}};
  for (const auto& [bytes, words] : wrong) {
    const Status status = import_bytes("oracle_general", bytes, FilterMode::none).status;
    EXPECT_EQ(status.code(), Code::damaged);
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }
  const std::string text =
      "What a text would be: a hundred and twenty bytes, a multiple of 24, "
      "as the length alone once decided. And so on, up to here.....";
  ASSERT_GE(text.size(), 120U);
  EXPECT_EQ(import_text("oracle_general", text.substr(0, 120)).status.code(), Code::damaged);
}

TEST(Import, says_of_a_compressed_file_how_to_read_it) {
  const std::pair<std::string, const char*> compressed[] = {
      {{"\x1f\x8b\x08\0\0\0\0\0", 8}, "gzip -dc"},
      {"\x28\xb5\x2f\xfd and so on", "zstd -dc"},
      {{"\xfd"
        "7zXZ\0",
        6},
       "xz -dc"},
      {"BZh9", "bzip2 -dc"}};
  for (const auto& [begins, command] : compressed) {
    for (const char* format : {"lackey", "din", "dramsim3", "ramulator", "csv", "oracle_general"}) {
      const Status status = import_text(format, begins + std::string(500, '\x80')).status;
      EXPECT_EQ(status.code(), Code::damaged);
      EXPECT_NE(status.message().find("is compressed"), std::string::npos) << status.message();
      EXPECT_NE(status.message().find(command), std::string::npos) << status.message();
    }
  }
  // A trace whose first time has the same bytes is a trace.
  EXPECT_TRUE(import_bytes("oracle_general", oracle({{0x00088b1f}}), FilterMode::none).status.ok());
}

TEST(Import, shows_bytes_that_are_no_text_escaped) {
  for (const char* format : {"lackey", "din", "dramsim3", "ramulator", "csv"}) {
    const Status status = import_text(format, "op,address\nr,1\n\xff\x01\x7f\xc3\n").status;
    for (const char letter : status.message()) EXPECT_TRUE(letter >= ' ' && letter <= '~');
  }
  const Status status = import_text("lackey", "\xff\x01z\n").status;
  EXPECT_NE(status.message().find("\\xff\\x01z"), std::string::npos) << status.message();
}

TEST(Import, reads_each_page_of_a_request_in_csv) {
  const auto outcome = import_text("csv",
                                   "# time, OP ,ignored,Size,address\n"
                                   "0.5,2a,x,69632,4095\r\n"
                                   "\n# a comment\n"
                                   "0.1,\"R\",,1,0x11000\n"
                                   "7,write,,4096,0\n");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.imported.requests, 3U);
  ASSERT_EQ(outcome.pages.size(), 18U);  // 0 to 17
  ASSERT_EQ(outcome.records.size(), 20U);
  EXPECT_EQ(outcome.records[18], (Record{17, 1, 0}));
  EXPECT_EQ(outcome.records[19], (Record{0, 0, 1}));
}

TEST(Import, reads_csv_without_a_header_and_in_sectors) {
  std::vector<std::byte> trace;
  Header header = small_header(0);
  header.mode = FilterMode::none;
  auto writer = Writer::create(memory_sink(trace), header).take();
  const std::string text = "16,r,4096\n8,w,1\n";
  auto source = memory_source(std::as_bytes(std::span(text.data(), text.size())), false);
  const auto imported =
      import_accesses(ImportFormat::csv, *source, header, *writer, {"address,op,size", 512});
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  ASSERT_TRUE(writer->finish({}).ok());
  auto reader = Reader::open(memory_source(trace)).take();
  ASSERT_TRUE(verify(*reader).ok());
  EXPECT_EQ(reader->page_numbers(), (std::vector<std::uint64_t>{2, 1}));
}

TEST(Import, names_what_is_wrong_in_csv) {
  const std::pair<const char*, const char*> wrong[] = {
      {"time,size,address\n", "no 'op'"},
      {"op,size\n", "no 'address'"},
      {"op,address\nx,1\n", "line 2 is not of this format: x,1"},
      {"op,address\nr,1\nr\n", "line 3 is not"},
      {"op,address\nr,-1\n", "line 2 is not"},
      {"op,address\nr,1.5\n", "line 2 is not"},
      {"op,address,size\nr,1,0\n", "line 2 has an access that can't be"},
      {"op,address,size\nr,1,67108865\n", "line 2 has an access that can't be"},
      {"op,address\nr,18446744073709551615\n", "line 2 has an access that can't be"}};
  for (const auto& [text, words] : wrong) {
    const Status status = import_text("csv", text).status;
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(words), std::string::npos) << text << status.message();
  }
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
