// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of the simulator share: traces in memory, and runs of them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/run.hpp"
#include "trace/reader.hpp"
#include "trace/testing/random_trace.hpp"
#include "trace/writer.hpp"

namespace perdure::sim {

inline constexpr std::uint64_t test_page = 4096;

inline std::vector<std::byte> bytes_of(const std::vector<trace::Record>& records,
                                       std::uint32_t floor_pages = 0,
                                       const trace::Ending& ending = {}) {
  std::vector<std::byte> bytes;
  trace::Header header;
  header.floor_pages = floor_pages;
  auto writer = trace::Writer::create(trace::memory_sink(bytes), header).take();
  for (const trace::Record& r : records) writer->append(r.page, r.reads, r.writes);
  EXPECT_TRUE(writer->finish(ending).ok());
  return bytes;
}

inline std::unique_ptr<trace::Reader> reader_of(const std::vector<std::byte>& bytes,
                                                bool seekable = true) {
  return trace::Reader::open(trace::memory_source(bytes, seekable)).take();
}

inline std::vector<trace::Record> random_records(std::uint64_t seed, std::size_t count,
                                                 std::uint32_t pages) {
  return trace::dense_records(trace::random_accesses(seed, count, pages));
}

inline Configuration configuration_of(const std::string& policy, std::uint64_t dram_frames,
                                      std::uint64_t mram_frames) {
  Configuration configuration;
  configuration.devices = devices_of_preset("hosogaya2008").take();
  configuration.policy = policy;
  configuration.dram_bytes = dram_frames * test_page;
  configuration.mram_bytes = mram_frames * test_page;
  return configuration;
}

inline std::string text_of(const Counters& counters) {
  std::string text;
  for (const PlaceCounters& at : counters.at) {
    for (const std::uint64_t count : {at.reads, at.writes, at.page_ins, at.first_touches,
                                      at.page_outs, at.clean_evictions, at.moved_in}) {
      text += std::to_string(count) + " ";
    }
    text += "| ";
  }
  return text;
}

}  // namespace perdure::sim
