// SPDX-License-Identifier: BSD-3-Clause
//
// flush: every primitive of this processor copies and flushes exactly the bytes it was given.
#include "pmem/flush.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "pmem/flush_native.hpp"
#include "pmem/sum_and_copy.hpp"

namespace perdure {
namespace {

std::byte pattern(std::size_t i) {
  return static_cast<std::byte>((i * 131 + i / 251) & 0xffU);
}

std::vector<std::byte> patterned(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = pattern(i);
  return bytes;
}

// Copies and says whether exactly [at, at + count) of the zeroed `area` changed.
::testing::AssertionResult copies_exactly(const FlushPrimitives& primitives,
                                          std::span<std::byte> area, std::size_t at,
                                          const std::byte* source, std::size_t count) {
  std::fill(area.begin(), area.end(), std::byte{0xEE});
  primitives.copy(area.data() + at, source, count);
  primitives.fence();
  for (std::size_t i = 0; i < area.size(); ++i) {
    const bool inside = i >= at && i < at + count;
    if (area[i] != (inside ? source[i - at] : std::byte{0xEE})) {
      return ::testing::AssertionFailure() << primitives.flush_name << " at " << at << ", " << count
                                           << " bytes: byte " << i << " is wrong";
    }
  }
  return ::testing::AssertionSuccess();
}

TEST(Flush, copies_any_size_from_and_to_any_alignment) {
  const std::vector<std::byte> source = patterned(512);
  alignas(64) static std::byte area[512];
  for (const FlushPrimitives& primitives : native_flush_primitives()) {
    for (std::size_t at = 0; at < 66; ++at) {
      for (std::size_t count = 0; count <= 300; ++count) {
        ASSERT_TRUE(copies_exactly(primitives, area, at, source.data() + at * 7 % 64, count));
      }
    }
  }
}

TEST(Flush, copies_many_lines) {
  const std::vector<std::byte> source = patterned(40000);
  std::vector<std::byte> area(40000 + 200);
  for (const FlushPrimitives& primitives : native_flush_primitives()) {
    for (const std::size_t count : {4096U, 4097U, 16384U, 39999U}) {
      for (const std::size_t at : {0U, 1U, 63U, 64U, 100U}) {
        ASSERT_TRUE(copies_exactly(primitives, area, at, source.data(), count));
      }
    }
  }
}

// Two pages between pages that can't be touched: one byte too many would be a crash.
class GuardedPages {
 public:
  GuardedPages() : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    void* all = ::mmap(nullptr, 4 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) std::abort();
    first_ = static_cast<std::byte*>(all) + page_;
    EXPECT_EQ(::mprotect(first_, 2 * page_, PROT_READ | PROT_WRITE), 0);
  }
  ~GuardedPages() { ::munmap(first_ - page_, 4 * page_); }
  std::span<std::byte> bytes() const { return {first_, 2 * page_}; }
  std::size_t page() const { return page_; }

 private:
  std::size_t page_;
  std::byte* first_ = nullptr;
};

TEST(Flush, stays_within_the_pages_of_source_and_destination) {
  const GuardedPages to;
  const GuardedPages from;
  for (std::size_t i = 0; i < from.bytes().size(); ++i) from.bytes()[i] = pattern(i);
  for (const FlushPrimitives& primitives : native_flush_primitives()) {
    for (std::size_t count = 0; count <= 300; ++count) {
      const std::size_t last = to.bytes().size() - count;
      ASSERT_TRUE(copies_exactly(primitives, to.bytes(), last, from.bytes().data() + last, count));
      ASSERT_TRUE(copies_exactly(primitives, to.bytes(), 0, from.bytes().data(), count));
      const std::size_t across = to.page() - count / 2;
      ASSERT_TRUE(
          copies_exactly(primitives, to.bytes(), across, from.bytes().data() + last, count));
    }
    primitives.flush(to.bytes().data(), to.bytes().size());
    primitives.flush(to.bytes().data() + to.bytes().size() - 1, 1);
    primitives.fence();
  }
}

TEST(Flush, leaves_the_flushed_bytes_as_they_were) {
  std::vector<std::byte> bytes = patterned(5000);
  for (const FlushPrimitives& primitives : native_flush_primitives()) {
    primitives.flush(bytes.data() + 3, 4990);
    primitives.flush(bytes.data(), 0);
    primitives.fence();
    EXPECT_EQ(bytes, patterned(5000)) << primitives.flush_name;
  }
}

TEST(Flush, finds_primitives_by_name_and_knows_no_others) {
  for (const FlushPrimitives& primitives : native_flush_primitives()) {
    EXPECT_STREQ(flush_primitives_named(primitives.flush_name)->flush_name, primitives.flush_name);
  }
  EXPECT_EQ(flush_primitives_named("wbinvd"), nullptr);
}

TEST(Flush, chooses_the_best_unless_the_environment_names_another) {
  const char* forced = std::getenv("PERDURE_FLUSH");
  const std::string best = native_flush_primitives().front().flush_name;
  EXPECT_EQ(flush_primitives().flush_name, forced == nullptr ? best : std::string(forced));
}

TEST(Flush, starts_at_the_line_that_holds_the_first_byte) {
  alignas(256) static const std::byte area[512] = {};
  const auto base = reinterpret_cast<std::uintptr_t>(area);
  EXPECT_EQ(line_of(area, 64), base);
  EXPECT_EQ(line_of(area + 63, 64), base);
  EXPECT_EQ(line_of(area + 64, 64), base + 64);
  EXPECT_EQ(line_of(area + 200, 128), base + 128);
}

TEST(Flush, reads_the_line_size_of_aarch64_from_its_register) {
  EXPECT_EQ(aarch64_line_bytes(0x84448004), 64U);   // Cortex-A72, Graviton, Altra
  EXPECT_EQ(aarch64_line_bytes(0x00050000), 128U);  // lines of 128 bytes
  EXPECT_EQ(aarch64_line_bytes(0x00060000), 256U);  // A64FX
}

TEST(SumAndCopy, gives_the_copy_and_the_sum_of_any_bytes) {
  std::vector<std::byte> source(100'003);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * i >> 3U);
  for (FlushPrimitives primitives : native_flush_primitives()) {
    primitives.turn_bytes = 1024;
    for (const DataChecksum kind : {DataChecksum::crc64, DataChecksum::xxh3}) {
      for (const std::size_t count : {1U, 1023U, 1024U, 1025U, 100'000U}) {
        for (const std::size_t begin : {0U, 3U}) {
          std::vector<std::byte> copied(source.size() + 1, std::byte{42});
          const std::byte* const from = source.data() + begin;
          const std::uint64_t sum =
              sum_and_copy(copied.data() + begin, from, count, kind, primitives);
          primitives.fence();
          EXPECT_EQ(sum, data_checksum(kind, from, count));
          EXPECT_TRUE(std::equal(from, from + count, copied.data() + begin));
          EXPECT_EQ(copied[begin + count], std::byte{42});
        }
      }
    }
  }
}

}  // namespace
}  // namespace perdure
