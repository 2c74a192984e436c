// SPDX-License-Identifier: BSD-3-Clause
//
// What a copy lacks of the contents, when stores are followed anew in the middle.
#include "pool/changed_pages.hpp"

#include <gtest/gtest.h>

#include <cstring>
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

}  // namespace
}  // namespace perdure
