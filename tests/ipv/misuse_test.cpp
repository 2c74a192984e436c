// SPDX-License-Identifier: BSD-3-Clause
//
// What a program can do wrong with perdure_ipv.h: each gives its code and a sentence, and harms
// nothing. And what works that looks odd.
// ctest: DEPS shared
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "perdure/perdure_ipv.h"
#include "perdure/perdure_ipv_abi.h"
#include "temporary_directory.hpp"

namespace {

constexpr std::size_t object_bytes = 3 * 4096;

class IpvMisuse : public testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("PERDURE_IPV");
    memory_ = static_cast<char*>(perdure_ipv_alloc(object_bytes));
    ASSERT_EQ(perdure_open((directory_ / "pool").c_str(), nullptr, &pool_), PERDURE_OK);
  }
  void TearDown() override {
    EXPECT_EQ(perdure_ipv_close(), PERDURE_OK);
    EXPECT_EQ(perdure_close(pool_), PERDURE_OK);
    perdure_ipv_free(memory_);
  }
  void start(int tier = PERDURE_IPV_AUTO) {
    ASSERT_EQ(perdure_ipv_open(pool_, nullptr), PERDURE_OK) << perdure_last_error();
    const perdure_ipv_object_options options{tier, 0};
    ASSERT_EQ(perdure_ipv_object("u", memory_, object_bytes, &options), PERDURE_OK);
    ASSERT_EQ(perdure_ipv_restart(&version_), PERDURE_OK) << perdure_last_error();
  }
  void refused(int code, int expected, const std::string& words) const {
    EXPECT_EQ(code, expected);
    EXPECT_NE(std::string(perdure_last_error()).find(words), std::string::npos)
        << perdure_last_error();
  }

  perdure_test::TemporaryDirectory directory_;
  char* memory_ = nullptr;
  perdure_pool* pool_ = nullptr;
  std::uint64_t version_ = 0;
};

TEST_F(IpvMisuse, calls_before_their_time_are_refused) {
  refused(perdure_ipv_object("u", memory_, 8, nullptr), PERDURE_E_STATE, "perdure_ipv_open()");
  refused(perdure_ipv_restart(&version_), PERDURE_E_STATE, "perdure_ipv_open()");
  refused(perdure_ipv_persist(nullptr), PERDURE_E_STATE, "perdure_ipv_open()");
  refused(perdure_ipv_open(nullptr, nullptr), PERDURE_E_INVALID, "a pool is needed");
  refused(perdure_flush_async(memory_, 64), PERDURE_E_STATE, "perdure_flush_init()");
  ASSERT_EQ(perdure_ipv_open(pool_, nullptr), PERDURE_OK);
  refused(perdure_ipv_persist(nullptr), PERDURE_E_STATE, "perdure_ipv_restart()");
  refused(perdure_ipv_open(pool_, nullptr), PERDURE_E_BUSY, "perdure_ipv_close()");
  ASSERT_EQ(perdure_ipv_restart(nullptr), PERDURE_OK);  // no objects
  refused(perdure_ipv_restart(nullptr), PERDURE_E_STATE, "called before");
  refused(perdure_ipv_object("u", memory_, 8, nullptr), PERDURE_E_STATE, "before");
}

TEST_F(IpvMisuse, objects_that_cant_be_are_refused) {
  ASSERT_EQ(perdure_ipv_open(pool_, nullptr), PERDURE_OK);
  refused(perdure_ipv_object(nullptr, memory_, 8, nullptr), PERDURE_E_INVALID, "name");
  refused(perdure_ipv_object("u", nullptr, 8, nullptr), PERDURE_E_INVALID, "address");
  const perdure_ipv_object_options odd{17, 0};
  refused(perdure_ipv_object("u", memory_, 8, &odd), PERDURE_E_INVALID, "tier 17");
  const perdure_ipv_object_options neither{PERDURE_IPV_AUTO, 2};
  refused(perdure_ipv_object("u", memory_, 8, &neither), PERDURE_E_INVALID, "own_pages");
  ASSERT_EQ(perdure_ipv_object("u", memory_, 4096, nullptr), PERDURE_OK);
  refused(perdure_ipv_object("v", memory_ + 4095, 10, nullptr), PERDURE_E_INVALID, "overlaps");
  refused(perdure_ipv_object("u", memory_ + 8192, 8, nullptr), PERDURE_E_INVALID, "open");
  perdure_ipv_object_status status{};
  refused(perdure_ipv_status("w", &status), PERDURE_E_NOT_FOUND, "w");
}

TEST_F(IpvMisuse, a_size_is_given_to_an_object_that_is_there_after_the_restart) {
  refused(perdure_ipv_resize("u", memory_, 4096), PERDURE_E_STATE, "perdure_ipv_open()");
  ASSERT_EQ(perdure_ipv_open(pool_, nullptr), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_object("u", memory_, 4096, nullptr), PERDURE_OK);
  refused(perdure_ipv_resize("u", memory_, 8192), PERDURE_E_STATE, "perdure_stored_shape()");
  ASSERT_EQ(perdure_ipv_restart(&version_), PERDURE_OK);
  refused(perdure_ipv_resize(nullptr, memory_, 8192), PERDURE_E_INVALID, "name");
  refused(perdure_ipv_resize("v", memory_, 8192), PERDURE_E_NOT_FOUND, "no object 'v'");
  refused(perdure_ipv_resize("u", nullptr, 8192), PERDURE_E_INVALID, "address");
  refused(perdure_ipv_resize_pair("u", memory_, nullptr, 8), PERDURE_E_INVALID, "two arrays");
  refused(perdure_ipv_resize_pair("u", memory_, memory_ + 4096, 8), PERDURE_E_INVALID, "no pair");
  ASSERT_EQ(perdure_ipv_pin(memory_), PERDURE_OK);
  refused(perdure_ipv_resize("u", memory_, 8192), PERDURE_E_STATE, "perdure_ipv_unpin()");
  ASSERT_EQ(perdure_ipv_unpin(memory_), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_resize("u", memory_, 8192), PERDURE_OK);
  memory_[8191] = 'g';
  ASSERT_EQ(perdure_ipv_persist(&version_), PERDURE_OK);
}

TEST_F(IpvMisuse, an_older_version_of_another_size_comes_back) {
  perdure_options options{};
  options.keep = 2;
  const std::string path = directory_ / "keeps_two";
  perdure_pool* pool = nullptr;
  const auto open = [&] { ASSERT_EQ(perdure_open(path.c_str(), &options, &pool), PERDURE_OK); };
  open();
  ASSERT_EQ(perdure_ipv_open(pool, nullptr), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_object("u", memory_, 4096, nullptr), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_restart(&version_), PERDURE_OK);
  for (const std::size_t bytes : {std::size_t{4096}, object_bytes}) {
    ASSERT_EQ(perdure_ipv_resize("u", memory_, bytes), PERDURE_OK);
    std::memset(memory_, bytes == 4096 ? 'a' : 'b', bytes);
    ASSERT_EQ(perdure_ipv_persist(nullptr), PERDURE_OK);
  }
  ASSERT_EQ(perdure_ipv_close(), PERDURE_OK);
  ASSERT_EQ(perdure_close(pool), PERDURE_OK);
  open();
  ASSERT_EQ(perdure_restore(pool, 1), PERDURE_OK) << perdure_last_error();
  ASSERT_EQ(perdure_commit(pool, &version_), PERDURE_OK);
  ASSERT_EQ(perdure_close(pool), PERDURE_OK);
  open();
  std::uint64_t shape[8] = {};
  ASSERT_EQ(perdure_stored_shape(pool, "u", 0, nullptr, shape), PERDURE_OK);
  EXPECT_EQ(shape[0], 4096U);
  ASSERT_EQ(perdure_ipv_open(pool, nullptr), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_object("u", memory_, shape[0], nullptr), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_restart(&version_), PERDURE_OK) << perdure_last_error();
  EXPECT_EQ(version_, 3U);
  EXPECT_EQ(std::string(memory_, 4096), std::string(4096, 'a'));
  ASSERT_EQ(perdure_ipv_close(), PERDURE_OK);
  ASSERT_EQ(perdure_close(pool), PERDURE_OK);
}

TEST_F(IpvMisuse, what_an_object_is_to_the_ranks_is_said_of_one_that_is_there_before_the_restart) {
  refused(perdure_ipv_ranks("u", PERDURE_ROWS), PERDURE_E_STATE, "perdure_ipv_open()");
  ASSERT_EQ(perdure_ipv_open(pool_, nullptr), PERDURE_OK);
  refused(perdure_ipv_ranks("u", PERDURE_ROWS), PERDURE_E_NOT_FOUND, "no object 'u'");
  ASSERT_EQ(perdure_ipv_object("u", memory_, 4096, nullptr), PERDURE_OK);
  refused(perdure_ipv_ranks("u", 0), PERDURE_E_INVALID, "enum perdure_ranks");
  refused(perdure_ipv_ranks("u", PERDURE_BY_HAND + 1), PERDURE_E_INVALID, "enum perdure_ranks");
  refused(perdure_ipv_ranks(nullptr, PERDURE_ROWS), PERDURE_E_INVALID, "name");
  EXPECT_EQ(perdure_ipv_ranks("u", PERDURE_ROWS), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_restart(nullptr), PERDURE_OK);
  refused(perdure_ipv_ranks("u", PERDURE_ROWS), PERDURE_E_STATE, "before perdure_ipv_restart()");
}

TEST_F(IpvMisuse, the_sixty_fifth_object_is_refused) {
  ASSERT_EQ(perdure_ipv_open(pool_, nullptr), PERDURE_OK);
  for (int i = 0; i < 64; ++i) {
    const std::string name = "object " + std::to_string(i);
    ASSERT_EQ(perdure_ipv_object(name.c_str(), memory_ + 16 * i, 16, nullptr), PERDURE_OK)
        << perdure_last_error();
  }
  refused(perdure_ipv_object("one more", memory_ + 4096, 16, nullptr), PERDURE_E_NO_SPACE, "64");
  ASSERT_EQ(perdure_ipv_restart(nullptr), PERDURE_OK);
  for (int i = 0; i < 1024; ++i) memory_[i] = static_cast<char>(i);
  EXPECT_EQ(perdure_ipv_persist(nullptr), PERDURE_OK);
  EXPECT_EQ(perdure_flush_barrier(), PERDURE_OK);
  perdure_pool_status status{};
  ASSERT_EQ(perdure_status(pool_, &status), PERDURE_OK);
  EXPECT_EQ(status.version, 1U);
}

TEST_F(IpvMisuse, another_size_than_the_pools_is_refused) {
  start();
  ASSERT_EQ(perdure_ipv_persist(&version_), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_close(), PERDURE_OK);
  ASSERT_EQ(perdure_close(pool_), PERDURE_OK);
  ASSERT_EQ(perdure_open((directory_ / "pool").c_str(), nullptr, &pool_), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_open(pool_, nullptr), PERDURE_OK);
  refused(perdure_ipv_object("u", memory_, 4096, nullptr), PERDURE_E_SHAPE, "12288");
}

TEST_F(IpvMisuse, an_object_that_the_version_lacks_keeps_its_contents) {
  start();
  ASSERT_EQ(perdure_ipv_persist(&version_), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_close(), PERDURE_OK);
  ASSERT_EQ(perdure_close(pool_), PERDURE_OK);
  ASSERT_EQ(perdure_open((directory_ / "pool").c_str(), nullptr, &pool_), PERDURE_OK);
  char* other = static_cast<char*>(perdure_ipv_alloc(8192));
  std::memset(other, 'o', 8192);
  ASSERT_EQ(perdure_ipv_open(pool_, nullptr), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_object("other", other, 8192, nullptr), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_restart(&version_), PERDURE_OK);
  EXPECT_EQ(version_, 1U);
  EXPECT_EQ(other[8191], 'o');
  ASSERT_EQ(perdure_ipv_persist(&version_), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_close(), PERDURE_OK);
  EXPECT_EQ(other[8191], 'o');
  perdure_ipv_free(other);
}

// Copies that change places take whole pages with them, and with those whatever else is there.
TEST_F(IpvMisuse, an_object_of_the_heap_is_streamed_only_if_its_pages_are_its_own) {
  char* heap = static_cast<char*>(std::aligned_alloc(4096, 4 * 4096));
  ASSERT_EQ(perdure_ipv_open(pool_, nullptr), PERDURE_OK);
  for (const int own : {0, 1}) {
    const perdure_ipv_object_options options{PERDURE_IPV_STREAM, own};
    const std::string name = own == 1 ? "own" : "shared";
    ASSERT_EQ(perdure_ipv_object(name.c_str(), heap + 2 * own * 4096, 5000, &options), PERDURE_OK);
  }
  ASSERT_EQ(perdure_ipv_restart(&version_), PERDURE_OK);
  perdure_ipv_object_status shared{};
  perdure_ipv_object_status own{};
  EXPECT_EQ(perdure_ipv_status("shared", &shared), PERDURE_OK);
  EXPECT_EQ(perdure_ipv_status("own", &own), PERDURE_OK);
  EXPECT_EQ(shared.tier, PERDURE_IPV_COPY);
  EXPECT_EQ(own.tier, PERDURE_IPV_STREAM);
  EXPECT_EQ(perdure_ipv_close(), PERDURE_OK);
  std::free(heap);
}

// Static arrays that the compiler has not padded have neighbours there.
TEST_F(IpvMisuse, what_follows_a_streamed_object_in_its_last_page_stays_the_programs) {
  constexpr std::size_t bytes = object_bytes - 100;
  volatile char* const rest = memory_ + bytes;
  rest[0] = 'a';
  for (const int run : {1, 2}) {
    ASSERT_EQ(perdure_ipv_open(pool_, nullptr), PERDURE_OK) << perdure_last_error();
    const perdure_ipv_object_options options{PERDURE_IPV_STREAM, 0};
    ASSERT_EQ(perdure_ipv_object("u", memory_, bytes, &options), PERDURE_OK);
    ASSERT_EQ(perdure_ipv_restart(&version_), PERDURE_OK) << perdure_last_error();
    EXPECT_EQ(rest[0], run == 1 ? 'a' : 'z') << "no version has it";
    for (int step = 1; step < 12; ++step) {  // it is the first store, a later one, or the only one
      if (step % 3 != 0) rest[0] = static_cast<char>('a' + step);
      if (step % 2 != 0) memory_[step] = static_cast<char>(step);
      if (step % 3 == 0) rest[0] = static_cast<char>('a' + step);
      EXPECT_EQ(rest[99], 0);
      ASSERT_EQ(perdure_ipv_persist(nullptr), PERDURE_OK) << perdure_last_error();
      EXPECT_EQ(rest[0], 'a' + step);
    }
    ASSERT_EQ(perdure_ipv_close(), PERDURE_OK);
    EXPECT_EQ(rest[0], 'a' + 11);
    rest[0] = 'z';
    ASSERT_EQ(perdure_close(pool_), PERDURE_OK);
    ASSERT_EQ(perdure_open((directory_ / "pool").c_str(), nullptr, &pool_), PERDURE_OK);
  }
}

TEST_F(IpvMisuse, the_pool_can_only_be_committed_and_closed_through_its_objects) {
  start();
  refused(perdure_close(pool_), PERDURE_E_STATE, "perdure_ipv_close()");
  refused(perdure_commit(pool_, nullptr), PERDURE_E_STATE, "perdure_ipv_persist()");
  refused(perdure_commit_begin(pool_), PERDURE_E_STATE, "perdure_ipv_persist()");
  refused(perdure_restore(pool_, 0), PERDURE_E_STATE, "perdure_ipv_persist()");
  perdure_pool_status status{};
  EXPECT_EQ(perdure_status(pool_, &status), PERDURE_OK);
}

TEST_F(IpvMisuse, other_arrays_are_opened_before_the_restart_or_not_at_all) {
  start();
  const std::uint64_t count = 8;
  perdure_array* late = nullptr;
  refused(perdure_array_open(pool_, "late", PERDURE_BYTE, 1, &count, PERDURE_COPY, nullptr, &late),
          PERDURE_E_STATE, "lag");
}

TEST_F(IpvMisuse, beside_other_arrays_a_version_is_durable_at_once) {
  const std::uint64_t count = 8;
  perdure_array* early = nullptr;
  ASSERT_EQ(
      perdure_array_open(pool_, "early", PERDURE_BYTE, 1, &count, PERDURE_COPY, nullptr, &early),
      PERDURE_OK);
  start();
  ASSERT_EQ(perdure_ipv_persist(&version_), PERDURE_OK);
  EXPECT_EQ(version_, 1U);
}

TEST_F(IpvMisuse, a_version_is_durable_one_persistence_point_later) {
  start();
  ASSERT_EQ(perdure_ipv_persist(&version_), PERDURE_OK);
  EXPECT_EQ(version_, 0U);
  ASSERT_EQ(perdure_ipv_persist(&version_), PERDURE_OK);
  EXPECT_EQ(version_, 1U);
  ASSERT_EQ(perdure_ipv_wait(&version_), PERDURE_OK);
  EXPECT_EQ(version_, 2U);
  ASSERT_EQ(perdure_ipv_wait(&version_), PERDURE_OK);  // nothing to do
  EXPECT_EQ(version_, 2U);
  ASSERT_EQ(perdure_ipv_persist(&version_), PERDURE_OK);
  EXPECT_EQ(version_, 2U);
}

TEST_F(IpvMisuse, an_object_without_a_spare_copy_is_copied) {
  ::setenv("PERDURE_IPV", "lag=0", 1);
  start(PERDURE_IPV_STREAM);
  ASSERT_EQ(perdure_ipv_persist(&version_), PERDURE_OK);
  EXPECT_EQ(version_, 1U);
  ASSERT_EQ(perdure_ipv_close(), PERDURE_OK);
  ASSERT_EQ(perdure_close(pool_), PERDURE_OK);
  ASSERT_EQ(perdure_open((directory_ / "pool").c_str(), nullptr, &pool_), PERDURE_OK);
  ::unsetenv("PERDURE_IPV");
  start(PERDURE_IPV_STREAM);
  perdure_ipv_object_status status{};
  ASSERT_EQ(perdure_ipv_status("u", &status), PERDURE_OK);
  EXPECT_EQ(status.tier, PERDURE_IPV_COPY);
}

TEST_F(IpvMisuse, a_restarted_pool_is_refused) {
  ASSERT_EQ(perdure_restart(pool_, nullptr), PERDURE_OK);
  refused(perdure_ipv_open(pool_, nullptr), PERDURE_E_STATE, "perdure_ipv_restart()");
}

TEST_F(IpvMisuse, the_environment_is_checked) {
  const std::vector<std::pair<const char*, int>> wrong{
      {"tier=fast", PERDURE_E_INVALID},  {"helper=maybe", PERDURE_E_INVALID},
      {"every", PERDURE_E_INVALID},      {"threads=1000", PERDURE_E_INVALID},
      {"colour=red", PERDURE_E_INVALID}, {"flush=cache", PERDURE_E_UNSUPPORTED},
      {"guard=", PERDURE_E_INVALID},     {"every=-1", PERDURE_E_INVALID},
      {"loads=fast", PERDURE_E_INVALID}, {"stores=-1", PERDURE_E_INVALID},
      {"lag=2", PERDURE_E_INVALID}};
  for (const auto& [text, code] : wrong) {
    ::setenv("PERDURE_IPV", text, 1);
    EXPECT_EQ(perdure_ipv_open(pool_, nullptr), code) << text;
    EXPECT_STRNE(perdure_last_error(), "");
  }
  ::setenv("PERDURE_IPV", "tier=stream,every=3,helper=off,threads=2,guard=on,flush=lines", 1);
  start(PERDURE_IPV_COPY);
  perdure_ipv_object_status status{};
  ASSERT_EQ(perdure_ipv_status("u", &status), PERDURE_OK);
  EXPECT_EQ(status.tier, PERDURE_IPV_STREAM);
  for (int i = 0; i < 7; ++i) {
    memory_[0] = static_cast<char>(i);
    ASSERT_EQ(perdure_ipv_persist(&version_), PERDURE_OK);
  }
  EXPECT_EQ(version_, 2U);
}

TEST_F(IpvMisuse, loads_and_stores_are_charged_to_an_emulated_memory_only) {
  ::setenv("PERDURE_IPV", "loads=1MiB", 1);
  ASSERT_EQ(perdure_ipv_open(pool_, nullptr), PERDURE_OK) << perdure_last_error();
  refused(perdure_ipv_restart(&version_), PERDURE_E_UNSUPPORTED, "PERDURE_EMULATE");
}

// What three versions take of a memory of 1 GB/s to read and 0.5 to write.
std::uint64_t emulated_ns(const std::string& pool, char* memory, const char* settings) {
  ::setenv("PERDURE_IPV", settings, 1);
  perdure_options options{};
  options.emulate = "dram,read_gb_per_s=1,write_gb_per_s=0.5";
  perdure_pool* opened = nullptr;
  perdure_pool_status status{};
  EXPECT_EQ(perdure_open(pool.c_str(), &options, &opened), PERDURE_OK) << perdure_last_error();
  EXPECT_EQ(perdure_ipv_open(opened, nullptr), PERDURE_OK) << perdure_last_error();
  EXPECT_EQ(perdure_ipv_object("u", memory, object_bytes, nullptr), PERDURE_OK);
  EXPECT_EQ(perdure_ipv_restart(nullptr), PERDURE_OK) << perdure_last_error();
  for (int i = 0; i < 3; ++i) {
    std::memset(memory, i, object_bytes);
    EXPECT_EQ(perdure_ipv_persist(nullptr), PERDURE_OK) << perdure_last_error();
  }
  EXPECT_EQ(perdure_ipv_wait(nullptr), PERDURE_OK);
  EXPECT_EQ(perdure_status(opened, &status), PERDURE_OK);
  EXPECT_EQ(perdure_ipv_close(), PERDURE_OK);
  EXPECT_EQ(perdure_close(opened), PERDURE_OK);
  ::unsetenv("PERDURE_IPV");
  return status.model_ns;
}

TEST_F(IpvMisuse, loads_and_stores_take_their_bytes_of_the_memory_at_each_iteration) {
  const std::string pools[] = {directory_ / "none", directory_ / "loads", directory_ / "both"};
  const std::uint64_t none = emulated_ns(pools[0], memory_, "tier=stream,helper=off");
  const std::uint64_t loads =
      emulated_ns(pools[1], memory_, "tier=stream,helper=off,loads=1000000");
  const std::uint64_t both =
      emulated_ns(pools[2], memory_, "tier=stream,helper=off,loads=1000000,stores=1000000");
  EXPECT_GT(none, 0U);
  EXPECT_EQ(loads, none + 4'000'000U) << "from the restart and from three persistence points on";
  EXPECT_EQ(both, loads + 4 * 2'000'000U);
}

TEST_F(IpvMisuse, a_report_that_cant_be_written_is_told) {
  ::setenv("PERDURE_IPV", "report=/nowhere/at/all", 1);
  start();
  refused(perdure_ipv_close(), PERDURE_E_IO, "/nowhere/at/all");
}

TEST_F(IpvMisuse, the_report_tells_what_was_done) {
  const std::string path = directory_ / "report.json";
  ::setenv("PERDURE_IPV", ("tier=stream,report=" + path).c_str(), 1);
  start();
  memory_[5] = 1;
  ASSERT_EQ(perdure_ipv_persist(&version_), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_close(), PERDURE_OK);
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  for (const char* word : {"\"name\": \"u\"", "\"tier\": \"stream\"", "\"guard_faults\": 1"}) {
    EXPECT_NE(text.str().find(word), std::string::npos) << word << " in " << text.str();
  }
}

TEST_F(IpvMisuse, hooks_for_other_memory_do_nothing) {
  std::vector<char> other(4096, 'x');
  const perdure_ipv_box none{other.data(), 1, {other.size()}, {1}, nullptr, 0};
  EXPECT_EQ(perdure_ipv_box_begin(&none).how, PERDURE_IPV_NO_BOX);
  start(PERDURE_IPV_STREAM);
  EXPECT_EQ(perdure_ipv_box_begin(&none).how, PERDURE_IPV_NO_BOX);
  perdure_ipv_box_end(&none, 0);
  perdure_ipv_plain(other.data());
  perdure_ipv_touch(other.data(), other.size());
  EXPECT_EQ(perdure_ipv_pin(other.data()), PERDURE_E_NOT_FOUND);
  // A box that reaches beyond its object is not taken: it is stored to in place.
  const perdure_ipv_box beyond{memory_ + 4096, 1, {object_bytes}, {1}, nullptr, 0};
  EXPECT_EQ(perdure_ipv_box_begin(&beyond).how, PERDURE_IPV_NO_BOX);
}

TEST_F(IpvMisuse, no_box_is_taken_of_which_the_nest_touches_the_object) {
  ::setenv("PERDURE_IPV", "helper=off", 1);  // no thread that is still about to say whose it is
  start(PERDURE_IPV_STREAM);
  const auto first = reinterpret_cast<std::uintptr_t>(memory_);
  const auto how_with = [&](std::uintptr_t low, std::uintptr_t high) {
    const perdure_ipv_range other{low, high};
    const perdure_ipv_box box{memory_, 1, {4096}, {1}, &other, 1};
    const auto how = perdure_ipv_box_begin(&box).how;
    if (how != PERDURE_IPV_NO_BOX) {
      std::memset(memory_, 1, 4096);
      perdure_ipv_box_end(&box, 0);
    }
    return how;
  };
  EXPECT_NE(how_with(first - 100, first), PERDURE_IPV_NO_BOX);
  EXPECT_NE(how_with(first + object_bytes, first + object_bytes + 1), PERDURE_IPV_NO_BOX);
  EXPECT_EQ(how_with(first - 100, first + 1), PERDURE_IPV_NO_BOX);
  EXPECT_EQ(how_with(first + object_bytes - 1, first + object_bytes), PERDURE_IPV_NO_BOX);
  EXPECT_EQ(how_with(first, first - 1), PERDURE_IPV_NO_BOX) << "it wraps";
}

TEST_F(IpvMisuse, one_box_of_an_object_is_open_at_a_time) {
  ::setenv("PERDURE_IPV", "helper=off", 1);  // no thread that is still about to say whose it is
  start(PERDURE_IPV_STREAM);
  const perdure_ipv_box box{memory_, 1, {4096}, {1}, nullptr, 0};
  const perdure_ipv_box second{memory_ + 4096, 1, {1024}, {1}, nullptr, 0};
  ASSERT_NE(perdure_ipv_box_begin(&box).how, PERDURE_IPV_NO_BOX);
  EXPECT_EQ(perdure_ipv_box_begin(&second).how, PERDURE_IPV_NO_BOX);
  std::memset(memory_, 1, 4096);
  perdure_ipv_box_end(&box, 0);
}

// Two ends of each would be flushed for the few lines in between.
TEST_F(IpvMisuse, short_rows_stay_in_the_cache) {
  ::setenv("PERDURE_IPV", "helper=off", 1);  // no thread that is still about to say whose it is
  start(PERDURE_IPV_STREAM);
  for (int iteration = 0; iteration < 3; ++iteration) {
    for (const std::size_t bytes : {std::size_t{256}, std::size_t{1024}}) {
      const perdure_ipv_box box{memory_, 2, {bytes, 4}, {1, bytes}, nullptr, 0};
      const perdure_ipv_answer by = perdure_ipv_box_begin(&box);
      const perdure_ipv_how wanted = bytes > 512 ? PERDURE_IPV_BOX_PAST_CACHE : PERDURE_IPV_BOX;
      EXPECT_EQ(by.how, wanted) << bytes << ", iteration " << iteration;
      std::memset(memory_, iteration, 4 * bytes);
      perdure_ipv_box_end(&box, 0);
    }
    ASSERT_EQ(perdure_ipv_persist(nullptr), PERDURE_OK);
  }
}

TEST_F(IpvMisuse, an_object_is_not_freed_before_the_restart) {
  ASSERT_EQ(perdure_ipv_open(pool_, nullptr), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_object("u", memory_, object_bytes, nullptr), PERDURE_OK);
  perdure_ipv_free(memory_);
  EXPECT_NE(std::string(perdure_last_error()).find("perdure_ipv_close()"), std::string::npos);
  memory_[0] = 1;  // still there
}

// ipv.P8: it ends, and versions hold what it held.
TEST_F(IpvMisuse, an_object_that_is_freed_ends) {
  for (const int tier : {PERDURE_IPV_STREAM, PERDURE_IPV_COPY}) {
    start(tier);
    memory_[5] = static_cast<char>('a' + tier);
    perdure_ipv_free(memory_);
    EXPECT_NE(::msync(memory_, object_bytes, MS_ASYNC), 0) << "it is still mapped";
    ASSERT_EQ(perdure_ipv_persist(nullptr), PERDURE_OK) << perdure_last_error();
    ASSERT_EQ(perdure_ipv_close(), PERDURE_OK) << perdure_last_error();
    ASSERT_EQ(perdure_close(pool_), PERDURE_OK);
    memory_ = static_cast<char*>(perdure_ipv_alloc(object_bytes));
    ASSERT_EQ(perdure_open((directory_ / "pool").c_str(), nullptr, &pool_), PERDURE_OK);
    start(tier);
    EXPECT_EQ(memory_[5], static_cast<char>('a' + tier));
    ASSERT_EQ(perdure_ipv_close(), PERDURE_OK);
    ASSERT_EQ(perdure_close(pool_), PERDURE_OK);
    ASSERT_EQ(perdure_open((directory_ / "pool").c_str(), nullptr, &pool_), PERDURE_OK);
  }
}

TEST_F(IpvMisuse, flushes_without_objects_flush_any_memory) {
  std::vector<char> other(1 << 20, 'x');
  EXPECT_EQ(perdure_flush_init(1000), PERDURE_E_INVALID);
  ASSERT_EQ(perdure_flush_init(3), PERDURE_OK);
  EXPECT_EQ(perdure_flush_async(other.data() + 3, other.size() - 3), PERDURE_OK);
  EXPECT_EQ(perdure_flush_async(nullptr, 8), PERDURE_E_INVALID);
  EXPECT_EQ(perdure_flush_barrier(), PERDURE_OK);
}

TEST_F(IpvMisuse, early_flushes_of_objects_are_part_of_the_next_version) {
  start(PERDURE_IPV_STREAM);
  refused(perdure_flush_init(7), PERDURE_E_INVALID, "7 threads");
  ASSERT_EQ(perdure_flush_init(0), PERDURE_OK);
  ASSERT_EQ(perdure_ipv_persist(nullptr), PERDURE_OK);
  std::memset(memory_, 'e', object_bytes);
  EXPECT_EQ(perdure_flush_async(memory_, object_bytes), PERDURE_OK);
  EXPECT_EQ(perdure_flush_barrier(), PERDURE_OK);
  perdure_ipv_object_status status{};
  ASSERT_EQ(perdure_ipv_status("u", &status), PERDURE_OK);
  EXPECT_GE(status.flushed_bytes, object_bytes);
  EXPECT_EQ(perdure_ipv_persist(nullptr), PERDURE_OK);
}

TEST_F(IpvMisuse, memory_that_no_machine_has_is_not_given) {
  EXPECT_EQ(perdure_ipv_alloc(~std::size_t{0}), nullptr);
  EXPECT_EQ(perdure_ipv_alloc(~std::size_t{0} - 5000), nullptr);
}

}  // namespace
