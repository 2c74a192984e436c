// SPDX-License-Identifier: BSD-3-Clause
//
// Replays the traces of this folder and compares every figure with the one that was computed by
// hand.
//
// A file has lines of words: `#` comments; `policy NAME`, `frames DRAM MRAM`, `compute_ns N`,
// `option NAME VALUE`; `record PAGE READS WRITES`; `expect TERM COUNT NS NJ`, where TERM has _ for
// blanks; and `total TIME_NS DYNAMIC_NJ STATIC_NJ`. Terms that are not expected must be 0, except
// standby.
#include <gtest/gtest.h>

#include <algorithm>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "sim/run.hpp"
#include "source_tree.hpp"
#include "trace/writer.hpp"

namespace perdure::sim {
namespace {

struct Expected {
  double count = 0, ns = 0, nj = 0;
};

struct Golden {
  Configuration machine;
  std::vector<trace::Record> records;
  std::map<std::string, Expected> terms;
  double time_ns = 0, dynamic_nj = 0, static_nj = 0;
};

bool read_line(const std::string& line, Golden& golden) {
  std::istringstream words(line);
  std::string word, name;
  words >> word;
  if (word.empty() || word == "#") return true;
  if (word == "policy") {
    words >> golden.machine.policy;
  } else if (word == "frames") {
    words >> golden.machine.dram_bytes >> golden.machine.mram_bytes;
    golden.machine.dram_bytes *= 4096;
    golden.machine.mram_bytes *= 4096;
  } else if (word == "compute_ns") {
    double compute_ns = 0;
    words >> compute_ns;
    golden.machine.compute_ns = compute_ns;
  } else if (word == "option") {
    words >> name;
    words >> golden.machine.policy_options[name];
  } else if (word == "record") {
    trace::Record& record = golden.records.emplace_back();
    words >> record.page >> record.reads >> record.writes;
  } else if (word == "expect") {
    words >> name;
    std::replace(name.begin(), name.end(), '_', ' ');
    Expected& term = golden.terms[name];
    words >> term.count >> term.ns >> term.nj;
  } else if (word == "total") {
    words >> golden.time_ns >> golden.dynamic_nj >> golden.static_nj;
  } else {
    return false;
  }
  return !words.fail();
}

void check(const std::filesystem::path& path) {
  SCOPED_TRACE(path.filename().string());
  Golden golden;
  golden.machine.devices = devices_of_preset("hosogaya2008").take();
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    ASSERT_TRUE(read_line(line, golden)) << line;
  }
  std::vector<std::byte> bytes;
  trace::Header header;
  header.floor_pages = 0;
  auto writer = trace::Writer::create(trace::memory_sink(bytes), header).take();
  for (const auto& r : golden.records) writer->append(r.page, r.reads, r.writes);
  ASSERT_TRUE(writer->finish({}).ok());
  auto reader = trace::Reader::open(trace::memory_source(bytes)).take();
  const auto outcome = run(*reader, golden.machine);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  const Cost& cost = outcome.value().cost;
  std::size_t found = 0;
  for (const Term& term : cost.terms) {
    if (term.name.ends_with("standby") || term.name == "computation") continue;
    const auto at = golden.terms.find(term.name);
    const Expected expected = at == golden.terms.end() ? Expected{} : at->second;
    found += at == golden.terms.end() ? 0U : 1U;
    EXPECT_DOUBLE_EQ(term.count, expected.count) << term.name;
    EXPECT_DOUBLE_EQ(*term.ns, expected.ns) << term.name;
    EXPECT_NEAR(*term.nj, expected.nj, 1e-6) << term.name;
  }
  EXPECT_EQ(found, golden.terms.size()) << "a term is expected that there is not";
  EXPECT_DOUBLE_EQ(*cost.time_ns, golden.time_ns);
  EXPECT_NEAR(*cost.dynamic_nj, golden.dynamic_nj, 1e-6);
  EXPECT_NEAR(*cost.static_nj, golden.static_nj, 1e-6);
}

TEST(Golden, every_trace_costs_what_was_computed_by_hand) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_file("tests/golden"))) {
    if (entry.path().extension() != ".golden") continue;
    check(entry.path());
    ++files;
  }
  EXPECT_EQ(files, 3U);
}

}  // namespace
}  // namespace perdure::sim
