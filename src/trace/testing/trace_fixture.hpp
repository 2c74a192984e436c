// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of traces share: traces in memory, written and read.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "trace/reader.hpp"
#include "trace/testing/random_trace.hpp"
#include "trace/writer.hpp"

namespace perdure::trace {

inline Header small_header(std::uint32_t floor_pages) {
  Header header;
  header.floor_pages = floor_pages;
  header.created_ns = 1;
  header.command = "./solver --grid 8";
  return header;
}

inline std::vector<std::byte> trace_of(const std::vector<RandomAccess>& accesses,
                                       const Header& header, const Ending& ending = {}) {
  std::vector<std::byte> bytes;
  auto writer = Writer::create(memory_sink(bytes), header);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  for (const RandomAccess& access : accesses) {
    writer.value()->append(access.page, access.is_write ? 0 : 1, access.is_write ? 1 : 0);
  }
  const Status finished = writer.value()->finish(ending);
  EXPECT_TRUE(finished.ok()) << finished.message();
  return bytes;
}

// Reads to the end: the status, and the records up to there.
inline Status read_all(std::span<const std::byte> bytes, std::vector<Record>& records,
                       bool seekable = true) {
  PERDURE_TRY_ASSIGN(auto reader, Reader::open(memory_source(bytes, seekable)));
  for (;;) {
    PERDURE_TRY_ASSIGN(auto batch, reader->next());
    if (batch.kind == Batch::Kind::end) return Status::success();
    records.insert(records.end(), batch.records.begin(), batch.records.end());
  }
}

}  // namespace perdure::trace
