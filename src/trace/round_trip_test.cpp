// SPDX-License-Identifier: BSD-3-Clause
//
// What is written is read: records, page numbers, totals, streams, regions; from memory, files and
// pipes.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "trace/record_codec.hpp"
#include "trace/testing/trace_fixture.hpp"
#include "trace/trace_format.hpp"

namespace perdure::trace {
namespace {

void expect_round_trip(const std::vector<Record>& records, Widths widths) {
  std::uint32_t pages = 0;
  PageCounts all;
  for (const Record& record : records) {
    pages = std::max(pages, record.page + 1);
    all.reads += record.reads;
    all.writes += record.writes;
  }
  std::vector<std::byte> bytes;
  encode_records(records, widths, bytes);
  const std::size_t size = bytes.size();
  EXPECT_LE(size, record_bytes_max(records.size()));
  bytes.resize(size + decode_spare_bytes);
  for (const auto decode : {decode_records, decode_records_portably}) {
    std::vector<Record> decoded(records.size());
    Decoded sums;
    ASSERT_TRUE(decode({bytes.data(), size}, pages, decoded, sums));
    EXPECT_EQ(decoded, records);
    EXPECT_EQ(sums.bytes, size);
    EXPECT_EQ(sums.reads, all.reads);
    EXPECT_EQ(sums.writes, all.writes);
    EXPECT_FALSE(decode({bytes.data(), size}, pages - 1, decoded, sums)) << "a page too few";
    EXPECT_FALSE(decode({bytes.data(), size - 1}, pages, decoded, sums)) << "a byte too few";
  }
}

TEST(RecordCodec, gives_back_every_kind_of_number) {
  std::mt19937_64 random(7);
  std::vector<Record> records;
  std::uint32_t pages = 0;
  for (int i = 0; i < 70000; ++i) {
    const auto number = [&] {
      const auto value = static_cast<std::uint32_t>(random());
      return random() % 3 == 0 ? static_cast<std::uint32_t>(random() % 3) : value >> (value & 31U);
    };
    const bool is_new = pages == 0 || random() % 2 == 0;
    records.push_back(
        {is_new ? pages++ : static_cast<std::uint32_t>(random() % pages), number(), number()});
    if ((records.back().reads | records.back().writes) == 0) records.back().writes = 1;
  }
  for (const Widths widths : {Widths::bits, Widths::bytes}) expect_round_trip(records, widths);
}

// A column as wide as its numbers, of every width, and lengths that fill no group or chunk.
TEST(RecordCodec, gives_back_columns_of_every_width) {
  std::mt19937_64 random(8);
  for (unsigned width = 0; width <= 32; ++width) {
    for (const std::size_t count : {1U, 7U, 8U, 9U, 255U, 256U, 257U, 1000U}) {
      const auto number = [&](unsigned bits) {
        return static_cast<std::uint32_t>(random() & ((std::uint64_t{1} << bits) - 1));
      };
      // The second has all three columns narrow enough for AVX2 where `width` is.
      for (const unsigned writes : {32 - width, width}) {
        std::vector<Record> records(count);
        for (Record& record : records) {
          record = {number(std::min(width, 31U)), number(width), number(writes)};
        }
        for (const Widths widths : {Widths::bits, Widths::bytes}) {
          expect_round_trip(records, widths);
        }
      }
    }
  }
}

TEST(RecordCodec, refuses_what_can_not_be) {
  std::vector<std::byte> bytes;
  encode_records(std::vector<Record>{{7, 1, 0}}, Widths::bits, bytes);
  const std::size_t size = bytes.size();
  bytes.resize(size + decode_spare_bytes);
  std::vector<Record> decoded(1);
  Decoded sums;
  const std::span<const std::byte> whole(bytes.data(), size);
  EXPECT_TRUE(decode_records(whole, 8, decoded, sums));
  EXPECT_FALSE(decode_records(whole, 7, decoded, sums)) << "a page that is not known";
  for (std::size_t less = 0; less < size; ++less) {
    EXPECT_FALSE(decode_records(whole.first(less), 8, decoded, sums)) << less;
  }
  for (const std::size_t width_at : {4U, 5U, 7U}) {
    std::vector<std::byte> wide = bytes;
    wide.resize(1000);
    wide[width_at] = std::byte{33};
    EXPECT_FALSE(decode_records(std::span(wide).first(900), 8, decoded, sums)) << width_at;
  }
}

TEST(Varint, gives_back_every_length) {
  for (unsigned bits = 0; bits < 64; ++bits) {
    for (const std::uint64_t value : {(std::uint64_t{1} << bits) - 1, std::uint64_t{1} << bits}) {
      std::vector<std::byte> bytes;
      put_varint(value, bytes);
      std::span<const std::byte> rest(bytes);
      std::uint64_t read = 0;
      ASSERT_TRUE(take_varint(rest, read));
      EXPECT_EQ(read, value);
      EXPECT_EQ(unzigzag(zigzag(value)), value);
      rest = std::span<const std::byte>(bytes).first(bytes.size() - 1);
      EXPECT_FALSE(take_varint(rest, read));
    }
  }
}

TEST(Trace, without_reduction_holds_every_access) {
  const auto accesses = random_accesses(3, 100000, 500);
  const Ending ending = {123, 456, 789};
  const auto bytes = trace_of(accesses, small_header(0), ending);
  for (const bool seekable : {true, false}) {
    std::vector<Record> records;
    const Status status = read_all(bytes, records, seekable);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(records, dense_records(accesses));
  }
  auto reader = Reader::open(memory_source(bytes)).take();
  EXPECT_EQ(reader->header(), small_header(0));
  const auto totals = reader->totals();
  ASSERT_TRUE(totals.ok()) << totals.status().message();
  EXPECT_EQ(totals.value()->accesses(), accesses.size());
  EXPECT_EQ(totals.value()->ending, ending);
  EXPECT_TRUE(verify(*reader).ok());
  ASSERT_TRUE(reader->rewind().ok());
  EXPECT_EQ(count_pages(*reader).value(), totals.value()->pages);
}

TEST(Trace, keeps_page_numbers_of_any_size) {
  std::vector<RandomAccess> accesses;
  std::mt19937_64 random(11);
  for (int i = 0; i < 5000; ++i) accesses.push_back({random(), true});
  accesses.push_back({~std::uint64_t{0}, false});
  accesses.push_back({0, false});
  const auto bytes = trace_of(accesses, small_header(16));
  auto reader = Reader::open(memory_source(bytes)).take();
  ASSERT_TRUE(verify(*reader).ok());
  ASSERT_EQ(reader->page_numbers().size(), accesses.size());
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    ASSERT_EQ(reader->page_numbers()[i], accesses[i].page);
  }
}

TEST(Trace, keeps_all_counts_when_it_is_reduced) {
  std::uint64_t records = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto accesses = random_accesses(seed, 20000, 100);
    const auto bytes = trace_of(accesses, small_header(8));
    auto reader = Reader::open(memory_source(bytes, false)).take();
    const Status verified = verify(*reader);
    ASSERT_TRUE(verified.ok()) << verified.message();
    const Totals& totals = *reader->totals().value();
    EXPECT_EQ(totals.accesses(), accesses.size());
    records += totals.records;
    all += totals.accesses();
  }
  EXPECT_LT(records * 10, all * 9);
}

TEST(Trace, adds_threads_up_and_keeps_their_totals) {
  std::vector<std::byte> bytes;
  auto writer = Writer::create(memory_sink(bytes), small_header(4)).take();
  writer->append(10, 1, 0, 0);
  writer->append(11, 0, 2, 3);
  writer->append(10, 5, 0, 3);
  writer->append(10, 0, 0, 9);
  ASSERT_TRUE(writer->finish({}).ok());
  EXPECT_EQ(writer->finish({}).code(), Code::wrong_state);
  auto reader = Reader::open(memory_source(bytes)).take();
  const Totals& totals = *reader->totals().value();
  EXPECT_EQ(totals.streams, (std::vector<StreamTotals>{{1, 0}, {0, 0}, {0, 0}, {5, 2}}));
  EXPECT_EQ(totals.pages, (std::vector<PageCounts>{{6, 0}, {0, 2}}));
}

std::vector<std::byte> trace_with_regions() {
  std::vector<std::byte> bytes;
  auto writer = Writer::create(memory_sink(bytes), small_header(4)).take();
  const auto touch = [&](std::uint64_t page) { writer->append(page, 1, 0); };
  touch(1);
  touch(2);
  writer->begin_region("solve");
  touch(2);
  touch(3);
  writer->end_region();
  touch(1);
  writer->begin_region("check");
  writer->end_region();
  writer->begin_region("solve");
  touch(3);
  writer->end_region();
  EXPECT_TRUE(writer->finish({}).ok());
  return bytes;
}

TEST(Regions, are_read_where_they_were_marked) {
  const auto bytes = trace_with_regions();
  auto reader = Reader::open(memory_source(bytes, false)).take();
  std::string seen;
  for (;;) {
    const Batch batch = reader->next().take();
    if (batch.kind == Batch::Kind::end) break;
    if (batch.kind == Batch::Kind::region_begin) seen += "<" + batch.region;
    if (batch.kind == Batch::Kind::region_end) seen += ">";
    for (const Record& record : batch.records) seen += std::to_string(record.page);
  }
  EXPECT_EQ(seen, "01<solve12>0<check><solve2>");
}

TEST(Regions, can_be_read_alone) {
  const auto bytes = trace_with_regions();
  auto reader = Reader::open(memory_source(bytes)).take();
  ASSERT_TRUE(reader->only_region("solve").ok());
  EXPECT_EQ(count_pages(*reader).value(), (std::vector<PageCounts>{{0, 0}, {1, 0}, {2, 0}}));
  std::vector<Record> records;
  for (Batch batch = reader->next().take(); batch.kind != Batch::Kind::end;
       batch = reader->next().take()) {
    records.insert(records.end(), batch.records.begin(), batch.records.end());
  }
  EXPECT_EQ(records, (std::vector<Record>{{1, 1, 0}, {2, 1, 0}, {2, 1, 0}}));
  EXPECT_EQ(reader->only_region("check").code(), Code::wrong_state);
}

TEST(Regions, that_are_not_there_are_an_error) {
  const auto bytes = trace_with_regions();
  auto reader = Reader::open(memory_source(bytes)).take();
  ASSERT_TRUE(reader->only_region("sovle").ok());
  const auto batch = reader->next();
  EXPECT_EQ(batch.status().code(), Code::not_found);
  auto empty = Reader::open(memory_source(bytes)).take();
  ASSERT_TRUE(empty->only_region("check").ok());
  EXPECT_EQ(empty->next().take().kind, Batch::Kind::end);
}

TEST(Regions, must_be_closed_and_not_overlap) {
  std::vector<std::byte> bytes;
  auto open = Writer::create(memory_sink(bytes), small_header(4)).take();
  open->begin_region("a");
  EXPECT_EQ(open->finish({}).code(), Code::wrong_state);
  auto twice = Writer::create(memory_sink(bytes), small_header(4)).take();
  twice->begin_region("a");
  twice->begin_region("b");
  EXPECT_EQ(twice->status().code(), Code::wrong_state);
  auto none = Writer::create(memory_sink(bytes), small_header(4)).take();
  none->end_region();
  EXPECT_EQ(none->finish({}).code(), Code::wrong_state);
  auto nameless = Writer::create(memory_sink(bytes), small_header(4)).take();
  nameless->begin_region("");
  EXPECT_EQ(nameless->status().code(), Code::invalid_argument);
}

TEST(Writer, refuses_headers_that_can_not_be) {
  std::vector<std::byte> bytes;
  Header header = small_header(4);
  header.page_bytes = 3000;
  EXPECT_EQ(Writer::create(memory_sink(bytes), header).status().code(), Code::invalid_argument);
  header = small_header(4);
  header.page_bytes = 32;
  EXPECT_EQ(Writer::create(memory_sink(bytes), header).status().code(), Code::invalid_argument);
  header = small_header(4);
  header.cache.ways = 3;
  EXPECT_EQ(Writer::create(memory_sink(bytes), header).status().code(), Code::invalid_argument);
  header.mode = FilterMode::none;
  EXPECT_TRUE(Writer::create(memory_sink(bytes), header).ok()) << "there is no cache";
  header.rank = 1;
  EXPECT_EQ(Writer::create(memory_sink(bytes), header).status().code(), Code::invalid_argument);
}

TEST(Files, are_written_and_read) {
  const std::string path = ::testing::TempDir() + "perdure_round_trip.ptrace";
  const auto accesses = random_accesses(9, 5000, 50);
  {
    auto writer = Writer::create(path, small_header(0)).take();
    for (const auto& access : accesses) writer->append(access.page, 1, 0);
    ASSERT_TRUE(writer->finish({}).ok());
  }
  auto reader = Reader::open(path).take();
  EXPECT_TRUE(reader->seekable());
  EXPECT_EQ(reader->totals().value()->reads, accesses.size());
  EXPECT_TRUE(verify(*reader).ok());
  std::remove(path.c_str());
  EXPECT_EQ(Reader::open(path).status().code(), Code::not_found);
  EXPECT_EQ(Writer::create("/nonexistent/x.ptrace", small_header(0)).status().code(),
            Code::io_error);
}

TEST(Files, that_the_device_has_no_room_for_are_an_error) {
  auto writer = Writer::create("/dev/full", small_header(0));
  const Status status = writer.ok() ? writer.value()->finish({}) : writer.status();
  EXPECT_EQ(status.code(), Code::no_space) << status.message();
}

TEST(Pipes, carry_a_trace_while_it_is_written) {
  const std::string path = ::testing::TempDir() + "perdure_pipe_" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto accesses = random_accesses(13, 300000, 3000);
  std::thread recorder([&] {
    auto writer = Writer::create(path, small_header(0)).take();
    for (const auto& access : accesses) writer->append(access.page, 1, 0);
    EXPECT_TRUE(writer->finish({}).ok());
  });
  auto reader = Reader::open(path).take();
  EXPECT_FALSE(reader->seekable());
  EXPECT_EQ(reader->totals().status().code(), Code::wrong_state);
  EXPECT_EQ(count_pages(*reader).status().code(), Code::wrong_state);
  const Status verified = verify(*reader);
  EXPECT_TRUE(verified.ok()) << verified.message();
  recorder.join();
  EXPECT_EQ(reader->totals().value()->accesses(), accesses.size());
  EXPECT_EQ(reader->rewind().code(), Code::wrong_state);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace perdure::trace
