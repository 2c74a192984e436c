// SPDX-License-Identifier: BSD-3-Clause
//
// The options of PERDURE_TRACE, and the recorder without a program.
#include "trace/recorder/recorder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <list>
#include <thread>
#include <vector>

#include "trace/reader.hpp"
#include "trace/recorder/options.hpp"
#include "trace/recorder/window.hpp"
#include "trace/testing/random_trace.hpp"

namespace perdure::trace {
namespace {

TEST(RecorderOptions, are_those_of_the_paging_paper_unless_said_otherwise) {
  const auto options = parse_recorder_options("cg.ptrace");
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options.value().path, "cg.ptrace");
  EXPECT_EQ(options.value().header.cache, CacheShape());
  EXPECT_EQ(options.value().header.mode, FilterMode::paper);
  EXPECT_FALSE(options.value().marked_only);
}

TEST(RecorderOptions, are_read_with_their_units) {
  const auto options = parse_recorder_options(
      "a b,size=2MiB,line=128,ways=16,mode=modern,page=64K,floor=0,region=marked,compute=1.5,"
      "times=off,aslr=keep,helper=on,buffer=64K");
  ASSERT_TRUE(options.ok()) << options.status().message();
  const RecorderOptions& read = options.value();
  EXPECT_EQ(read.header.cache, (CacheShape{2U << 20U, 128, 16}));
  EXPECT_EQ(read.header.mode, FilterMode::modern);
  EXPECT_EQ(read.header.page_bytes, 65536U);
  EXPECT_EQ(read.header.floor_pages, 0U);
  EXPECT_TRUE(read.marked_only && !read.times && read.keep_random_addresses);
  EXPECT_EQ(read.compute_ns, 1'500'000'000U);
  EXPECT_EQ(read.helper, HelperUse::on);
  EXPECT_EQ(read.buffer_bytes, 65536U);
}

TEST(RecorderOptions, that_cannot_be_are_refused_by_name) {
  for (const char* text : {"", ",size=1M", "f,size", "f,size=", "f,size=x", "f,size=1X", "f,ways=0",
                           "f,line=48", "f,mode=best", "f,region=some", "f,compute=-1",
                           "f,compute=nan", "f,times=maybe", "f,speed=11", "f,size=3M",
                           "f,helper=yes", "f,buffer=much", "f,", "f,size=18446744073709551615G"}) {
    const auto options = parse_recorder_options(text);
    ASSERT_FALSE(options.ok()) << text;
    EXPECT_EQ(options.status().code(), Code::invalid_argument);
  }
}

// A trace of its own for each test.
class RecorderTest : public testing::Test {
 protected:
  RecorderTest() {
    path_ = std::filesystem::temp_directory_path() /
            ("perdure_recorder_test." + std::to_string(::getpid()));
    options_.header.created_ns = 1;
    options_.times = false;
  }
  ~RecorderTest() override { std::filesystem::remove(path_); }

  std::unique_ptr<Recorder> make() {
    auto recorder = Recorder::create(options_, path_);
    EXPECT_TRUE(recorder.ok()) << recorder.status().message();
    return recorder.take();
  }

  std::vector<char> bytes() {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Totals totals() {
    auto reader = Reader::open(path_);
    EXPECT_TRUE(reader.ok()) << reader.status().message();
    const Status whole = verify(*reader.value());
    EXPECT_TRUE(whole.ok()) << whole.message();
    return *reader.value()->totals().take();
  }

  std::filesystem::path path_;
  RecorderOptions options_;
};

constexpr std::uint64_t page = 4096;

// With and without helper, and with a buffer that is always full.
class RecorderHelperTest : public RecorderTest, public testing::WithParamInterface<int> {
 protected:
  std::unique_ptr<Recorder> make_helped() {
    options_.buffer_bytes = GetParam() == 1 ? 1 : std::uint64_t{1} << 20U;
    auto recorder = make();
    if (GetParam() != 0) recorder->start_helper(true, nullptr);
    return recorder;
  }
};
INSTANTIATE_TEST_SUITE_P(Helpers, RecorderHelperTest, testing::Values(0, 1, 2));

TEST_P(RecorderHelperTest, loses_no_access_of_many_threads) {
  constexpr unsigned threads = 4;
  constexpr std::uint64_t pages = 30'000;  // many windows
  auto recorder = make_helped();
  std::vector<std::thread> running;
  for (unsigned number = 0; number < threads; ++number) {
    running.emplace_back([&, number] {
      Stream& stream = recorder->begin_thread();
      for (std::uint64_t i = 0; i < pages; ++i) {
        stream.access((number * pages + i) * page, 8, number % 2 == 1);
      }
      if (number != 0) recorder->end_thread(stream);  // the first still has something in its window
    });
  }
  for (std::thread& thread : running) thread.join();
  ASSERT_TRUE(recorder->finish().ok());
  const Totals sums = totals();
  EXPECT_EQ(sums.pages.size(), threads * pages);
  EXPECT_EQ(sums.reads, 2 * pages);
  EXPECT_EQ(sums.writes, 2 * pages);
  EXPECT_LE(sums.streams.size(), threads);
  EXPECT_LE(recorder->batches(), threads + options_.buffer_bytes / sizeof(WordBatch));
}

// Regions, ends of threads, hits and misses of each kind of cache.
void record_at_random(Recorder& recorder, std::uint64_t seed) {
  Stream* stream = &recorder.begin_thread();
  std::uint64_t count = 0;
  for (const RandomAccess& access : random_accesses(seed, 40'000, 2000)) {
    stream->access(access.page * page + count % 64 * 60, 8, access.is_write);
    if (++count % 9000 == 0) {
      EXPECT_TRUE(recorder.begin_region("r").ok());
    }
    if (count % 9000 == 4000 && count > 9000) {
      EXPECT_TRUE(recorder.end_region().ok());
    }
    if (count % 13'000 == 0) {
      recorder.end_thread(*stream);
      stream = &recorder.begin_thread();
    }
  }
  ASSERT_TRUE(recorder.finish().ok());
}

TEST_P(RecorderHelperTest, writes_the_same_bytes_as_without) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    options_.header.mode = static_cast<FilterMode>(seed % 3);
    options_.header.cache = {std::uint64_t{1} << 16U, 64, seed % 2 == 0 ? 1U : 4U};
    options_.header.floor_pages = static_cast<std::uint32_t>(seed % 5 * 70);
    options_.marked_only = seed % 7 == 0;
    auto inline_one = make();
    record_at_random(*inline_one, seed);
    const std::vector<char> expected = bytes();
    auto helped = make_helped();
    record_at_random(*helped, seed);
    EXPECT_EQ(bytes(), expected);
    EXPECT_GT(totals().accesses(), 0U);
  }
}

// Its reader takes nothing until the recorder is held up in the middle of a frame.
TEST_P(RecorderHelperTest, waits_for_a_slow_pipe_in_bounded_memory) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  constexpr std::uint64_t count = 300'000;
  options_.header.floor_pages = 0;
  std::vector<std::byte> received;
  std::atomic<std::uint64_t> recorded = 0;
  std::thread reading([&] {
    const int pipe = ::open(path_.c_str(), O_RDONLY);
    for (std::uint64_t seen = 1; seen != recorded;) {  // it stands still
      seen = recorded;
      ::usleep(30'000);
    }
    std::byte chunk[4096];
    for (ssize_t got = 1; got > 0;) {
      got = ::read(pipe, chunk, sizeof chunk);
      if (got > 0) received.insert(received.end(), chunk, chunk + got);
    }
    ::close(pipe);
  });
  auto recorder = make_helped();
  Stream& stream = recorder->begin_thread();
  for (std::uint64_t i = 0; i < count; ++i) {
    stream.access(i * 7919 % count * page, 8, false);
    ++recorded;
  }
  ASSERT_TRUE(recorder->finish().ok());
  EXPECT_LE(recorder->batches(), 1 + options_.buffer_bytes / sizeof(WordBatch));
  reading.join();
  auto reader = Reader::open(memory_source(received, false));
  ASSERT_TRUE(reader.ok());
  ASSERT_TRUE(verify(*reader.value()).ok());
  EXPECT_EQ(reader.value()->totals().value()->reads, count);
}

TEST_F(RecorderTest, tells_of_a_pipe_whose_reader_went_away_and_goes_on) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  options_.header.floor_pages = 0;
  std::atomic<bool> is_made = false;
  std::thread reading([&] {
    const int pipe = ::open(path_.c_str(), O_RDONLY);
    is_made.wait(false);  // the header is written before the pipe is closed
    ::close(pipe);
  });
  auto recorder = make();
  is_made = true;
  is_made.notify_one();
  reading.join();
  Stream& stream = recorder->begin_thread();
  for (std::uint64_t i = 0; i < 100'000; ++i) stream.access(i * page, 8, true);
  const Status status = recorder->finish();  // and no SIGPIPE
  EXPECT_EQ(status.code(), Code::io_error) << status.message();
}

TEST_F(RecorderTest, gives_the_core_of_a_thread_that_ended_to_the_next_one) {
  auto recorder = make();
  Stream& first = recorder->begin_thread();
  first.access(7 * page, 8, false);
  recorder->end_thread(first);
  Stream& second = recorder->begin_thread();
  second.access(7 * page, 8, false);
  EXPECT_EQ(&first, &second);
  ASSERT_TRUE(recorder->finish().ok());
  EXPECT_EQ(totals().reads, 1U) << "the second one hits";
}

TEST_F(RecorderTest, stores_only_regions_if_asked_to_and_keeps_the_cache_warm) {
  options_.marked_only = true;
  auto recorder = make();
  Stream& stream = recorder->begin_thread();
  stream.access(1 * page, 8, false);
  ASSERT_TRUE(recorder->begin_region("solve").ok());
  stream.access(1 * page, 8, false);
  stream.access(2 * page, 8, true);
  ASSERT_TRUE(recorder->end_region().ok());
  stream.access(3 * page, 8, true);
  ASSERT_TRUE(recorder->finish().ok());
  const Totals sums = totals();
  EXPECT_EQ(sums.reads, 0U);
  EXPECT_EQ(sums.writes, 1U);
}

TEST_F(RecorderTest, refuses_regions_that_overlap_and_ends_the_open_one) {
  auto recorder = make();
  EXPECT_EQ(recorder->end_region().code(), Code::wrong_state);
  EXPECT_EQ(recorder->begin_region("").code(), Code::invalid_argument);
  ASSERT_TRUE(recorder->begin_region("a").ok());
  EXPECT_EQ(recorder->begin_region("b").code(), Code::wrong_state);
  recorder->begin_thread().access(page, 8, true);
  EXPECT_TRUE(recorder->finish().ok());
  EXPECT_EQ(totals().writes, 1U);
}

TEST_F(RecorderTest, writes_nothing_once_it_is_finished_or_abandoned) {
  auto recorder = make();
  Stream& stream = recorder->begin_thread();
  stream.access(page, 8, true);
  ASSERT_TRUE(recorder->finish().ok());
  for (std::uint64_t i = 0; i < 100'000; ++i) stream.access(i * page, 8, true);
  EXPECT_TRUE(recorder->finish().ok());
  EXPECT_EQ(totals().writes, 1U);

  auto abandoned = make();
  abandoned->abandon();
  abandoned->begin_thread().access(page, 8, true);
  EXPECT_TRUE(abandoned->finish().ok());
  auto reader = Reader::open(path_);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(verify(*reader.value()).code(), Code::damaged) << "it has no end";
}

// Faults and write-backs of LRU with `frames` frames, by a list.
struct Faults {
  std::uint64_t faults = 0;
  std::uint64_t write_backs = 0;
  bool operator==(const Faults&) const = default;
};

struct PageRecord {
  std::uint64_t page;
  std::uint32_t reads;
  std::uint32_t writes;
};

Faults lru(const std::vector<PageRecord>& records, std::size_t frames) {
  Faults sum;
  std::list<std::pair<std::uint64_t, bool>> stack;  // most recent first; dirty
  for (const PageRecord& record : records) {
    auto found = std::find_if(stack.begin(), stack.end(),
                              [&](const auto& entry) { return entry.first == record.page; });
    bool dirty = record.writes != 0;
    if (found == stack.end()) {
      ++sum.faults;
    } else {
      dirty = dirty || found->second;
      stack.erase(found);
    }
    stack.emplace_front(record.page, dirty);
    if (stack.size() > frames) {
      sum.write_backs += stack.back().second ? 1U : 0U;
      stack.pop_back();
    }
  }
  for (const auto& entry : stack) sum.write_backs += entry.second ? 1U : 0U;
  return sum;
}

TEST(Window, changes_no_fault_and_no_write_back_from_its_floor_on) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto floor = static_cast<std::uint32_t>(1 + seed % 9);
    const auto accesses = random_accesses(seed, 600, 24);
    std::vector<PageRecord> before, after;
    const auto take = [&](std::uint64_t number, std::uint32_t, std::uint32_t reads,
                          std::uint32_t writes) { after.push_back({number, reads, writes}); };
    Window window(floor);
    std::uint64_t counts[2] = {0, 0};
    for (const RandomAccess& access : accesses) {
      before.push_back({access.page, access.is_write ? 0U : 1U, access.is_write ? 1U : 0U});
      if (window.add(access.page, access.is_write)) continue;
      window.flush(take);
      ASSERT_TRUE(window.add(access.page, access.is_write));
    }
    window.flush(take);
    for (const PageRecord& record : before) counts[0] += record.reads, counts[1] += record.writes;
    for (const PageRecord& record : after) counts[0] -= record.reads, counts[1] -= record.writes;
    EXPECT_EQ(counts[0], 0U);
    EXPECT_EQ(counts[1], 0U);
    for (std::size_t frames = floor; frames < 26; ++frames) {
      EXPECT_EQ(lru(before, frames), lru(after, frames)) << frames << " frames, floor " << floor;
    }
  }
}

TEST(Window, without_a_floor_keeps_every_access) {
  Window window(0);
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(window.add(i / 50, i % 2 == 1));
  std::uint64_t records = 0;
  window.flush([&](std::uint64_t number, std::uint32_t, std::uint32_t reads, std::uint32_t writes) {
    EXPECT_EQ(number, records / 50);
    EXPECT_EQ(reads, 1 - records % 2);
    EXPECT_EQ(writes, records % 2);
    ++records;
  });
  EXPECT_EQ(records, 100U);
}

}  // namespace
}  // namespace perdure::trace
