// SPDX-License-Identifier: BSD-3-Clause
//
// Every kind of bad trace gets its error, and no byte that is changed gives other records.
#include <gtest/gtest.h>

#include <cstring>

#include "base/checksum.hpp"
#include "trace/frame.hpp"
#include "trace/testing/trace_fixture.hpp"
#include "trace/trace_format.hpp"

namespace perdure::trace {
namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

void expect_error(std::span<const std::byte> bytes, Code code, const std::string& words) {
  for (const bool seekable : {true, false}) {
    std::vector<Record> records;
    const Status status = read_all(bytes, records, seekable);
    EXPECT_EQ(status.code(), code) << words << ": " << status.message();
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }
}

// Where the frames begin, and the trailer.
std::vector<std::size_t> frames_of(const std::vector<std::byte>& bytes) {
  TraceHeaderFormat header = {};
  std::memcpy(&header, bytes.data(), sizeof header);
  std::vector<std::size_t> begins = {sizeof header + header.command_bytes};
  while (begins.back() + sizeof(TrailerFormat) < bytes.size()) {
    FrameHeaderFormat frame = {};
    std::memcpy(&frame, bytes.data() + begins.back(), sizeof frame);
    begins.push_back(begins.back() + sizeof frame + frame.stored_bytes);
  }
  return begins;
}

std::vector<std::byte> long_trace(std::uint64_t seed) {
  return trace_of(random_accesses(seed, 200000, 300), small_header(0));
}

TEST(BadTrace, is_empty) {
  expect_error({}, Code::damaged, "empty");
}

TEST(BadTrace, is_foreign) {
  expect_error(bytes_of("a text that is no trace at all"), Code::foreign, "no trace of Perdure");
  expect_error(bytes_of("==12== Lackey, an example Valgrind tool\n"), Code::foreign, "lackey");
  expect_error(bytes_of("I  04016a90,3\n L 1ffe,8\n"), Code::foreign, "lackey");
  expect_error(bytes_of("0x1234 READ 17\n0x99 WRITE 20\n"), Code::foreign, "dramsim3");
  expect_error(bytes_of("LD 0x1234\nST 0x12\n"), Code::foreign, "ramulator");
  expect_error(bytes_of("0 1fff\n1 2000\n"), Code::foreign, "din");
  expect_error(bytes_of("\x28\xb5\x2f\xfd a zstd frame"), Code::foreign, "unpacked");
  expect_error(bytes_of("PDR"), Code::foreign, "no trace of Perdure");
}

TEST(BadTrace, is_newer) {
  auto bytes = trace_of(random_accesses(1, 100, 10), small_header(0));
  const std::uint32_t version = trace_format_version + 1;
  std::memcpy(bytes.data() + offsetof(TraceHeaderFormat, format_version), &version, sizeof version);
  expect_error(bytes, Code::newer_format, "has format 2, this Perdure reads up to 1");
}

TEST(BadTrace, that_is_truncated_says_what_is_whole) {
  const auto bytes = long_trace(6);
  const std::vector<std::size_t> frames = frames_of(bytes);
  ASSERT_GT(frames.size(), 4U);
  FrameHeaderFormat first = {};
  std::memcpy(&first, bytes.data() + frames[0], sizeof first);
  auto reader = Reader::open(memory_source(std::span(bytes).first(frames[1] + 60)));
  ASSERT_TRUE(reader.ok());
  const auto totals = reader.value()->totals();
  ASSERT_EQ(totals.status().code(), Code::damaged);
  const std::string whole = std::to_string(first.records) + " records before are whole";
  EXPECT_NE(totals.status().message().find(whole), std::string::npos) << totals.status().message();
  const auto batch = reader.value()->next();  // they can be read
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(batch.value().records.size(), first.records);
  const Status end = reader.value()->next().status();
  EXPECT_EQ(end.code(), Code::damaged);
  EXPECT_NE(end.message().find(whole), std::string::npos) << end.message();
}

TEST(BadTrace, is_truncated_at_any_byte) {
  const auto bytes = trace_of(random_accesses(2, 3000, 40), small_header(4));
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    for (const bool seekable : {true, false}) {
      std::vector<Record> records;
      const Status status = read_all(std::span(bytes).first(size), records, seekable);
      ASSERT_FALSE(status.ok()) << size;
      ASSERT_TRUE(status.code() == Code::damaged || size < sizeof(std::uint64_t)) << size;
    }
    auto reader = Reader::open(memory_source(std::span(bytes).first(size)));
    ASSERT_FALSE(reader.ok() && reader.value()->totals().ok()) << size;
  }
  expect_error(std::span(bytes).first(bytes.size() - 100), Code::damaged, "truncated");
}

TEST(BadTrace, has_a_flipped_bit_anywhere) {
  auto bytes = trace_of(random_accesses(3, 1000, 40), small_header(4));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      bytes[at] ^= std::byte{1} << bit;
      std::vector<Record> records;
      ASSERT_FALSE(read_all(bytes, records, false).ok()) << "byte " << at << " bit " << bit;
      bytes[at] ^= std::byte{1} << bit;
    }
  }
}

TEST(BadTrace, has_frames_in_another_order) {
  const auto bytes = long_trace(4);
  const auto begins = frames_of(bytes);
  ASSERT_GE(begins.size(), 5U);
  const auto frame_at = [&](std::size_t frame) {
    return std::span(bytes).subspan(begins[frame], begins[frame + 1] - begins[frame]);
  };
  std::vector<std::byte> exchanged(bytes.begin(),
                                   bytes.begin() + static_cast<std::ptrdiff_t>(begins[0]));
  for (const std::size_t frame : {1U, 0U}) {
    exchanged.insert(exchanged.end(), frame_at(frame).begin(), frame_at(frame).end());
  }
  exchanged.insert(exchanged.end(), bytes.begin() + static_cast<std::ptrdiff_t>(begins[2]),
                   bytes.end());
  expect_error(exchanged, Code::damaged, "another order");
  std::vector<std::byte> missing(bytes.begin(),
                                 bytes.begin() + static_cast<std::ptrdiff_t>(begins[1]));
  missing.insert(missing.end(), bytes.begin() + static_cast<std::ptrdiff_t>(begins[2]),
                 bytes.end());
  expect_error(missing, Code::damaged, "missing");
}

TEST(BadTrace, has_a_frame_of_another_trace) {
  auto bytes = long_trace(5);
  const auto other = long_trace(6);
  const auto ends = frames_of(bytes), others = frames_of(other);
  std::vector<std::byte> mixed(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(ends[1]));
  mixed.insert(mixed.end(), other.begin() + static_cast<std::ptrdiff_t>(others[1]), other.end());
  expect_error(mixed, Code::damaged, "another trace");
}

TEST(BadTrace, has_bytes_behind_its_end) {
  auto bytes = trace_of(random_accesses(7, 1000, 40), small_header(4));
  bytes.push_back(std::byte{0});
  std::vector<Record> records;
  EXPECT_EQ(read_all(bytes, records, false).code(), Code::damaged);
}

// A footer that is whole, but not this trace's: its checksums are made right.
TEST(BadTrace, has_a_footer_that_disagrees) {
  const auto bytes = trace_of(random_accesses(8, 1000, 40), small_header(4));
  const auto other = trace_of(random_accesses(9, 900, 40), small_header(4));
  const auto begins = frames_of(bytes), others = frames_of(other);
  const std::size_t footer = begins.size() - 2, other_footer = others.size() - 2;
  std::vector<std::byte> mixed(bytes.begin(),
                               bytes.begin() + static_cast<std::ptrdiff_t>(begins[footer]));
  FrameHeaderFormat header = {}, own = {};
  std::memcpy(&own, bytes.data() + begins[footer], sizeof own);
  std::memcpy(&header, other.data() + others[other_footer], sizeof header);
  header.sequence = own.sequence;
  header.previous = own.previous;
  const auto stored =
      std::span(other).subspan(others[other_footer] + sizeof header, header.stored_bytes);
  header.checksum = frame_checksum(header, stored);
  const auto head = std::as_bytes(std::span(&header, 1));
  mixed.insert(mixed.end(), head.begin(), head.end());
  mixed.insert(mixed.end(), stored.begin(), stored.end());
  mixed.insert(mixed.end(), bytes.end() - sizeof(TrailerFormat), bytes.end());
  expect_error(mixed, Code::damaged, "900 accesses");
}

}  // namespace
}  // namespace perdure::trace
