// SPDX-License-Identifier: BSD-3-Clause
//
// State words and bodies: exhaustive where it is small.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "pool/catalogue.hpp"
#include "pool/slots.hpp"
#include "pool/state_word.hpp"

namespace perdure {
namespace {

constexpr SlotState states[] = {SlotState::complete, SlotState::open, SlotState::deleted,
                                SlotState::unused};

TEST(StateWord, comes_back_as_it_was) {
  for (const std::uint64_t version : {0UL, 1UL, 2UL, 77UL, 1UL << 32, version_max}) {
    for (const SlotState state : states) {
      for (const std::uint32_t back : {0U, 1U, 62U, 63U}) {
        const auto decoded = decode_state(encode_state({state, version, back}));
        ASSERT_TRUE(decoded.has_value());
        EXPECT_EQ(*decoded, (StateWord{state, version, back}));
      }
    }
  }
}

TEST(StateWord, no_flipped_bit_gives_another_state) {
  for (std::uint64_t version = 0; version < 3000; ++version) {
    for (const SlotState state : states) {
      const std::uint64_t bits =
          encode_state({state, version, static_cast<std::uint32_t>(version % 64)});
      for (int bit = 0; bit < 64; ++bit) {
        EXPECT_FALSE(decode_state(bits ^ (std::uint64_t{1} << bit)).has_value())
            << version << " bit " << bit;
      }
    }
  }
}

TEST(StateWord, names_its_parent) {
  EXPECT_EQ(state_of(SlotState::open, 9, 8), (StateWord{SlotState::open, 9, 0}));
  EXPECT_EQ(state_of(SlotState::open, 9, 3), (StateWord{SlotState::open, 9, 5}));
  EXPECT_EQ(parent_of(state_of(SlotState::complete, 9, 3)), 3U);
  EXPECT_EQ(parent_of(state_of(SlotState::open, 70, 6)), 6U);
  EXPECT_EQ(parent_of(state_of(SlotState::complete, 0, 0)), 0U);
}

TEST(StateWord, zeros_and_ones_are_damage) {
  EXPECT_FALSE(decode_state(0).has_value());
  EXPECT_FALSE(decode_state(~std::uint64_t{0}).has_value());
}

Catalogue sample() {
  Catalogue catalogue;
  catalogue.version = 6;
  catalogue.parent = 4;
  catalogue.incarnation = 2;
  catalogue.committed_ns = 5;
  catalogue.allocated_end = 8192;
  ArrayEntry entry;
  entry.name = "u";
  entry.shape = {ArrayType::float64, ArrayMode::twin, true, {10, 3}};
  entry.size_bytes = 240;
  entry.part = 3;
  entry.copies = 2;
  entry.copy = 1;
  entry.first_offset = 1024;
  entry.stride_bytes = 1024;
  entry.table_first_offset = 3072;
  entry.table_stride_bytes = 1024;
  entry.table_checksum = 99;
  catalogue.arrays.insert(entry);
  catalogue.scalars.push_back({"iteration", std::vector<std::byte>(8, std::byte{3})});
  catalogue.scalars.push_back({"seed", std::vector<std::byte>(5, std::byte{4})});
  return catalogue;
}

constexpr BodyBounds bounds{1024, 8192, 64};

// For what a table itself never changes.
ArrayEntry& edited(Catalogue& catalogue, std::size_t index) {
  return catalogue.arrays.root()->entries[index].shared->entry;
}

std::vector<std::byte> built(const Catalogue& catalogue) {
  std::vector<std::byte> body(body_bytes(catalogue));
  build_body(catalogue, body);
  return body;
}

TEST(Catalogue, comes_back_as_it_was) {
  const auto parsed = parse_body(built(sample()), bounds);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const Catalogue& got = parsed.value();
  EXPECT_EQ(got.version, 6U);
  EXPECT_EQ(got.parent, 4U);
  EXPECT_EQ(got.incarnation, 2U);
  ASSERT_EQ(got.arrays.size(), 1U);
  EXPECT_EQ(got.arrays[0].shape, sample().arrays[0].shape);
  EXPECT_EQ(got.arrays[0].part, 3U);
  EXPECT_EQ(got.arrays[0].copy_offset(1), 2048U);
  EXPECT_EQ(got.arrays[0].table_offset(1), 4096U);
  EXPECT_EQ(got.arrays[0].table_checksum, 99U);
  EXPECT_EQ(got.arrays[0].copy, 1U);
  ASSERT_NE(got.find_scalar("seed"), nullptr);
  EXPECT_EQ(got.find_scalar("seed")->bytes, sample().scalars[1].bytes);
}

TEST(Catalogue, every_flipped_bit_and_every_truncation_is_damage) {
  const auto body = built(sample());
  for (std::size_t bit = 0; bit < body.size() * 8; ++bit) {
    auto flipped = body;
    flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto parsed = parse_body(flipped, bounds);
    ASSERT_FALSE(parsed.ok()) << bit;
    EXPECT_EQ(parsed.status().code(), Code::damaged);
  }
  for (std::size_t size = 0; size < body.size(); ++size) {
    EXPECT_FALSE(parse_body({body.data(), size}, bounds).ok()) << size;
  }
}

// A body with a right checksum and wrong contents: what a hostile or buggy writer could leave.
TEST(Catalogue, offsets_outside_of_the_pool_are_damage_even_with_a_right_checksum) {
  const auto broken = [](auto change) {
    Catalogue catalogue = sample();
    change(catalogue);
    return parse_body(built(catalogue), bounds).status().code();
  };
  EXPECT_EQ(broken([](Catalogue& c) { edited(c, 0).first_offset = 0; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { edited(c, 0).stride_bytes = 6929; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { edited(c, 0).stride_bytes = 239; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { edited(c, 0).stride_bytes = ~std::uint64_t{0}; }),
            Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { edited(c, 0).first_offset = ~std::uint64_t{0}; }),
            Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { edited(c, 0).table_first_offset = 7160; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { c.allocated_end = 8193; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { edited(c, 0).shape.extents = {1UL << 40, 1UL << 40}; }),
            Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { c.arrays.name_copy(0, 2, 99); }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { edited(c, 0).spare_copies = 2; }), Code::damaged);
  // The third copy would reach into the tables.
  EXPECT_EQ(broken([](Catalogue& c) { edited(c, 0).spare_copies = 1; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { edited(c, 0).name = "a\xff"; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { edited(c, 0).shape.mode = ArrayMode::flush; }),
            Code::damaged);
}

TEST(Catalogue, an_array_with_a_spare_copy_has_one_more_than_there_are_slots) {
  Catalogue catalogue = sample();
  ArrayEntry& entry = edited(catalogue, 0);
  entry.spare_copies = 1;
  catalogue.arrays.name_copy(0, 2, 99);
  entry.table_first_offset = 4096;
  const auto parsed = parse_body(built(catalogue), bounds);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed.value().arrays[0].copies, 3U);
  EXPECT_EQ(parsed.value().arrays[0].copy, 2U);
  EXPECT_FALSE(parsed.value().arrays[0].same_places(sample().arrays[0]));
}

TEST(Catalogue, what_no_pool_of_ours_holds_is_damage_even_with_a_right_checksum) {
  BodyBounds aligned = bounds;
  aligned.align_bytes = 64;
  const auto broken = [&aligned](auto change) {
    Catalogue catalogue = sample();
    change(catalogue);
    return parse_body(built(catalogue), aligned).status().code();
  };
  EXPECT_EQ(broken([](Catalogue&) {}), Code::ok);
  EXPECT_EQ(broken([](Catalogue& c) { c.parent = 6; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { c.version = 69; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { c.version = version_max + 1; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { c.version = 0; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { edited(c, 0).first_offset += 8; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { edited(c, 0).table_first_offset += 4; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { edited(c, 0).table_first_offset = 1280; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { c.scalars[1].name = "iteration"; }), Code::damaged);
  EXPECT_EQ(broken([](Catalogue& c) { c.arrays.insert(c.arrays[0]); }), Code::damaged);
  const auto second = [](Catalogue& c, std::uint64_t offset) {
    c.arrays.insert(c.arrays[0]);
    edited(c, 1).name = "v";
    edited(c, 1).shape.checksums = false;
    edited(c, 1).first_offset = offset;
  };
  EXPECT_EQ(broken([&](Catalogue& c) { second(c, 4352); }), Code::ok);
  EXPECT_EQ(broken([&](Catalogue& c) { second(c, 4096); }), Code::damaged);
  EXPECT_EQ(broken([&](Catalogue& c) { second(c, 1024); }), Code::damaged);
}

TEST(Catalogue, names_are_checked) {
  EXPECT_TRUE(check_name("u").ok());
  for (const std::string& name :
       {std::string(255, 'x'), std::string("../a b"), std::string("\x01\n"), std::string("\u00fc"),
        std::string("\u20ac"), std::string("\U0001f600"), std::string("\xf4\x8f\xbf\xbf")}) {
    EXPECT_TRUE(check_name(name).ok()) << name;
  }
  for (const std::string& name :
       {std::string(), std::string(256, 'x'), std::string("a\0b", 3), std::string("\x80"),
        std::string("\xc3"), std::string("\xc0\x80"), std::string("\xc1\xbf"),
        std::string("\xe0\x9f\xbf"), std::string("\xed\xa0\x80"), std::string("\xe2\x82"),
        std::string("\xf0\x8f\xbf\xbf"), std::string("\xf4\x90\x80\x80"),
        std::string("\xf8\x88\x80\x80\x80"), std::string("\xff")}) {
    EXPECT_EQ(check_name(name).code(), Code::invalid_argument) << quoted(name);
  }
}

TEST(Catalogue, control_characters_of_names_are_escaped_for_people) {
  EXPECT_EQ(quoted("u/\u00fc\u20ac"), "'u/\u00fc\u20ac'");
  EXPECT_EQ(quoted("a\n\x1b[31m\x7f"), "'a\\x0a\\x1b[31m\\x7f'");
  EXPECT_EQ(quoted("\u0085\u00a0"), "'\\x85\u00a0'");
  EXPECT_EQ(quoted(std::string("a\0\xff", 3)), "'a\\x00\\xff'");
}

TEST(Catalogue, shapes_are_checked) {
  EXPECT_EQ(checked_bytes({ArrayType::complex128, ArrayMode::copy, true, {3, 5}}).value(), 240U);
  EXPECT_FALSE(checked_bytes({ArrayType::byte, ArrayMode::copy, true, {}}).ok());
  EXPECT_EQ(checked_bytes({ArrayType::byte, ArrayMode::copy, true, {0}}).value(), 0U);
  EXPECT_EQ(checked_bytes({ArrayType::byte, ArrayMode::copy, true, {5, 0, 1UL << 60}}).value(), 0U);
  EXPECT_FALSE(checked_bytes({ArrayType::byte, ArrayMode::flush, true, {1}}).ok());
  EXPECT_FALSE(checked_bytes({ArrayType::byte, ArrayMode::copy, true, {1UL << 49}}).ok());
  EXPECT_FALSE(
      checked_bytes({ArrayType::byte, ArrayMode::copy, true, std::vector<std::uint64_t>(9, 1)})
          .ok());
}

}  // namespace
}  // namespace perdure
