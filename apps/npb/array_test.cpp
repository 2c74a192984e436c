// SPDX-License-Identifier: BSD-3-Clause
//
// Where arrays begin: a cache shows it, and so does the memory simulator.
#include "npb/array.hpp"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <set>

#include "npb/state.hpp"

namespace npb {
namespace {

constexpr Index large = Index{8} << 17;  // numbers in 8 MiB
constexpr std::uintptr_t page_bytes = 4096;
constexpr std::uintptr_t huge_page_bytes = std::uintptr_t{2} << 20;

template <typename T>
std::uintptr_t address_of(const Array<T>& array) {
  return reinterpret_cast<std::uintptr_t>(array.get());
}

class ArrayLayout : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { objects_on_huge_pages = GetParam(); }
  void TearDown() override { objects_on_huge_pages = false; }
};

TEST_P(ArrayLayout, equal_offsets_of_large_arrays_meet_in_no_set_of_a_cache) {
  const Array<double> arrays[] = {Array<double>(large), Array<double>(large), Array<double>(large),
                                  Array<double>(large)};
  std::set<std::uintptr_t> offsets;
  for (const Array<double>& array : arrays) {
    EXPECT_EQ(address_of(array) % page_bytes, 0U);
    offsets.insert(address_of(array) % huge_page_bytes);
  }
  EXPECT_EQ(offsets.size(), 4U);
}

TEST_P(ArrayLayout, large_objects_begin_on_huge_pages_if_they_are_protected) {
  const Array<double> first(large, Use::object), second(large, Use::object);
  const bool both =
      address_of(first) % huge_page_bytes == 0 && address_of(second) % huge_page_bytes == 0;
  EXPECT_EQ(both, GetParam());
}

TEST_P(ArrayLayout, small_objects_begin_on_pages) {
  const Array<double> object(large / 4, Use::object);
  EXPECT_EQ(address_of(object) % page_bytes, 0U);
}

TEST(ArrayOptions, only_in_place_versioning_asks_for_huge_pages) {
  for (const char* protection : {"none", "disk", "flush", "ipv"}) {
    CLI::App app;
    StateOptions options;
    add_state_options(app, options);
    app.parse(std::string("--pool somewhere --protect ") + protection);
    EXPECT_EQ(objects_on_huge_pages, options.protection == Protection::ipv) << protection;
  }
  objects_on_huge_pages = false;
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutProtection, ArrayLayout, testing::Bool(),
                         [](const auto& protection) {
                           return protection.param ? "protected" : "unprotected";
                         });

}  // namespace
}  // namespace npb
