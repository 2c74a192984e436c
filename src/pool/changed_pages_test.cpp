// SPDX-License-Identifier: BSD-3-Clause
//
// What a copy lacks of the contents, when stores are followed anew in the middle.
#include "pool/changed_pages.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "pool/array_buffer.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t pages = 8;

// A store that the kernel makes through pinned pages is one that no tracker sees: here it comes
// before the pages are watched.
TEST(ChangedPages, a_store_that_may_have_gone_unseen_is_found_though_pages_are_followed_anew) {
  auto made = ArrayBuffer::make(pages * page_bytes, true);
  ASSERT_TRUE(made.ok());
  const ArrayBuffer memory = made.take();
  std::memset(memory.at(), 0, pages * page_bytes);
  const std::vector<std::byte> committed(pages * page_bytes);
  ChangedPages changes({}, pages * page_bytes);
  ASSERT_TRUE(changes.by_tracker());
  changes.begin(pages * page_bytes, page_bytes, 1);
  changes.commit(0, true);
  memory.at()[3 * page_bytes] = std::byte{1};
  ASSERT_TRUE(changes.follow(memory.at(), pages * page_bytes).ok());
  ASSERT_TRUE(changes.watch().ok());
  changes.note_unseen(true);
  ASSERT_TRUE(changes.end_following().ok());
  ASSERT_TRUE(changes.follow(memory.at(), pages * page_bytes).ok());
  ASSERT_TRUE(changes.watch().ok());
  changes.note_unseen(false);
  ASSERT_TRUE(changes.collect().ok());
  const PageSet& lacking = changes.lacking(0, {memory.at(), pages * page_bytes}, committed.data());
  EXPECT_TRUE(lacking.has(3));
  EXPECT_FALSE(lacking.has(4));
}

// The fault handler of one thread looks at all arrays while another thread opens and closes some.
// Between its two looks at one, that may have become another one, whose size is larger.
TEST(FaultTracker, takes_no_store_for_that_of_an_array_that_is_opened_or_closed) {
  constexpr std::size_t block = std::size_t{64} << 10U;
  constexpr std::size_t blocks = 32;
  constexpr std::size_t rounds = 500;
  auto* const memory = static_cast<std::byte*>(::mmap(
      nullptr, 4 * blocks * block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  std::byte* const before = memory;  // of one block
  std::byte* const stored = memory + block;
  std::byte* const large = memory + 2 * blocks * block;
  const auto create = [](std::byte* base, std::size_t count) {
    auto made = PageTracker::create(base, count * block, TrackerKind::faults);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.take();
  };
  auto first = create(before, 1);  // its place, which is looked at first, is that of the others
  const auto tracker = create(stored, blocks);
  first.reset();
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) {
      create(before, 1).reset();
      create(large, 2 * blocks).reset();
    }
  });
  ASSERT_TRUE(tracker->watch().ok());
  std::size_t found = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 1; i < blocks; i += 4) stored[i * block] = std::byte{1};
    PageSet changed(blocks * block, block);
    EXPECT_TRUE(tracker->collect(changed).ok());
    for (std::size_t i = 1; i < blocks; i += 4) found += changed.has(i) ? 1U : 0U;
  }
  ends = true;
  other.join();
  EXPECT_EQ(found, rounds * blocks / 4);
  ::munmap(memory, 4 * blocks * block);
}

// A hole in the memory, which the program then fills: nobody can protect what lies after it.
TEST(FaultTracker, counts_what_it_could_not_protect_again) {
  constexpr std::size_t block = std::size_t{64} << 10U;
  auto* const memory = static_cast<std::byte*>(
      ::mmap(nullptr, 3 * block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  auto made = PageTracker::create(memory, 3 * block, TrackerKind::faults);
  ASSERT_TRUE(made.ok()) << made.status().message();
  PageTracker& tracker = *made.value();
  ASSERT_TRUE(tracker.watch().ok());
  memory[block + page_bytes] = std::byte{1};
  ASSERT_EQ(::munmap(memory + block, page_bytes), 0);
  PageSet changed(3 * block, block);
  EXPECT_FALSE(tracker.collect(changed).ok());
  ASSERT_NE(::mmap(memory + block, page_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  changed.clear();
  memory[block + 2 * page_bytes] = std::byte{2};
  ASSERT_TRUE(tracker.collect(changed).ok());
  EXPECT_TRUE(changed.has(1));
  EXPECT_FALSE(changed.has(2));
  made.value().reset();
  ASSERT_EQ(::munmap(memory, 3 * block), 0);
}

TEST(PageTracker, finds_nothing_in_memory_that_it_watches_no_more) {
  auto made = ArrayBuffer::make(pages * page_bytes, true);
  ASSERT_TRUE(made.ok());
  const ArrayBuffer memory = made.take();
  auto tracker = PageTracker::create(memory.at(), pages * page_bytes, TrackerKind::faults);
  ASSERT_TRUE(tracker.ok()) << tracker.status().message();
  ASSERT_TRUE(tracker.value()->watch().ok());
  tracker.value()->stop(true);
  PageSet changed(pages * page_bytes, page_bytes);
  EXPECT_EQ(tracker.value()->collect(changed).code(), Code::wrong_state);
  memory.at()[0] = std::byte{1};  // it is as any other
}

}  // namespace
}  // namespace perdure
