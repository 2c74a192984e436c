// SPDX-License-Identifier: BSD-3-Clause
//
// Maps of datatypes against what MPI itself says of the types: sizes, extents, and MPI_Pack.
#include "mpi/datatype_map.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "random_type.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

using mpiio_test::Draw;
using mpiio_test::draw_type;
using mpiio_test::DrawnType;

// Where `count` items reach, from the address of the first.
struct Reach {
  MPI_Aint lowest;
  MPI_Aint past;
};

Reach reach_of(const DatatypeMap& map, int count) {
  Reach reach{0, 0};
  for (const ByteRun& run : map.runs) {
    const MPI_Aint last_item = (count - 1) * map.extent_bytes;
    reach.lowest = std::min({reach.lowest, run.offset, run.offset + last_item});
    reach.past = std::max({reach.past, run.offset + run.bytes, run.offset + run.bytes + last_item});
  }
  return reach;
}

std::vector<char> random_bytes(Draw& draw, std::size_t count) {
  std::vector<char> bytes(count);
  for (char& byte : bytes) byte = static_cast<char>(draw.bits());
  return bytes;
}

void expect_same(const std::vector<char>& theirs, const std::vector<char>& ours) {
  ASSERT_EQ(theirs.size(), ours.size());
  const auto [theirs_at, ours_at] = std::mismatch(theirs.begin(), theirs.end(), ours.begin());
  EXPECT_EQ(theirs_at - theirs.begin(), std::ssize(theirs)) << "the first byte that differs";
}

template <typename Visit>
void for_each_run(const DatatypeMap& map, int count, Visit&& visit) {
  for (int i = 0; i < count; ++i) {
    for (const ByteRun& run : map.runs) visit(i * map.extent_bytes + run.offset, run.bytes);
  }
}

void expect_sizes(const DatatypeMap& map, MPI_Datatype type, bool exact) {
  MPI_Count size = 0, lower_bound = 0, extent = 0;
  PMPI_Type_size_x(type, &size);
  EXPECT_EQ(map.size_bytes, size);
  PMPI_Type_get_extent_x(type, &lower_bound, &extent);
  EXPECT_EQ(map.extent_bytes, extent);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < map.runs.size(); ++i) {
    EXPECT_EQ(map.starts[i], sum);
    EXPECT_GT(map.runs[i].bytes, 0);
    sum += map.runs[i].bytes;
  }
  EXPECT_EQ(sum, size);
  if (map.runs.empty()) return;
  PMPI_Type_get_true_extent_x(type, &lower_bound, &extent);
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), past = -first;
  for (const ByteRun& run : map.runs) {
    first = std::min(first, run.offset);
    past = std::max(past, run.offset + run.bytes);
  }
  EXPECT_GE(first, lower_bound);
  EXPECT_LE(past, lower_bound + extent);
  if (!exact) return;
  EXPECT_EQ(first, lower_bound);
  EXPECT_EQ(past - first, extent);
}

// Every byte that items carry, as MPI_Pack gathers it and as the map does.
std::vector<char> expect_packed(const DatatypeMap& map, MPI_Datatype type, int count, Draw& draw) {
  const Reach reach = reach_of(map, count);
  const auto bytes = random_bytes(draw, static_cast<std::size_t>(reach.past - reach.lowest) + 1);
  const char* base = bytes.data() - reach.lowest;
  std::vector<char> packed(static_cast<std::size_t>(count * map.size_bytes) + 1024);
  int used = 0;
  MPI_Pack(base, count, type, packed.data(), static_cast<int>(packed.size()), &used, MPI_COMM_SELF);
  packed.resize(static_cast<std::size_t>(used));
  std::vector<char> gathered;
  for_each_run(map, count, [&](std::int64_t offset, std::int64_t length) {
    gathered.insert(gathered.end(), base + offset, base + offset + length);
  });
  expect_same(packed, gathered);
  return packed;
}

// MPI does not allow that a byte be unpacked into twice.
bool overlaps(const DatatypeMap& map, int count) {
  std::set<std::int64_t> seen;
  bool twice = false;
  for_each_run(map, count, [&](std::int64_t offset, std::int64_t length) {
    for (std::int64_t i = 0; i < length; ++i) twice |= !seen.insert(offset + i).second;
  });
  return twice;
}

void expect_unpacked(const DatatypeMap& map, MPI_Datatype type, int count,
                     const std::vector<char>& packed) {
  if (map.size_bytes > 4096 || overlaps(map, count)) return;
  const Reach reach = reach_of(map, count);
  std::vector<char> theirs(static_cast<std::size_t>(reach.past - reach.lowest) + 1, 'x');
  std::vector<char> ours = theirs;
  int position = 0;
  MPI_Unpack(packed.data(), static_cast<int>(packed.size()), &position,
             theirs.data() - reach.lowest, count, type, MPI_COMM_SELF);
  std::size_t from = 0;
  for_each_run(map, count, [&](std::int64_t offset, std::int64_t length) {
    for (std::int64_t i = 0; i < length; ++i) {
      ours[static_cast<std::size_t>(offset + i - reach.lowest)] = packed[from++];
    }
  });
  expect_same(theirs, ours);
}

TEST(DatatypeMap, random_types_pack_as_mpi_packs_them) {
  Draw draw(test_seed(), true);
  const char* rounds = std::getenv("PERDURE_ROUNDS");
  for (int round = 0; round < (rounds != nullptr ? std::atoi(rounds) : 3000); ++round) {
    DrawnType drawn = draw_type(draw, round % 5);
    SCOPED_TRACE("PERDURE_TEST_SEED=" + std::to_string(test_seed()) + " round " +
                 std::to_string(round) + ": " + drawn.text);
    const auto found = map_of(drawn.type);
    ASSERT_TRUE(found.ok()) << found.status().message();
    const DatatypeMap& map = *found.value();
    // MPICH 4.0 counts the holes of a darray, and fields of a struct that carry nothing, as bytes.
    expect_sizes(map, drawn.type, !drawn.made_by("darray") && !drawn.made_by("struct"));
    const int count = draw.between(1, 3);
    expect_unpacked(map, drawn.type, count, expect_packed(map, drawn.type, count, draw));
    EXPECT_EQ(map_of(drawn.type).value(), &map) << "made twice";
    if (drawn.made_by("(")) MPI_Type_free(&drawn.type);
    if (HasFailure()) break;
  }
}

TEST(DatatypeMap, bytes_and_numbers_are_contiguous) {
  for (MPI_Datatype type : {MPI_BYTE, MPI_INT, MPI_DOUBLE, MPI_PACKED, MPI_C_DOUBLE_COMPLEX}) {
    const DatatypeMap& map = *map_of(type).value();
    EXPECT_TRUE(map.contiguous);
    EXPECT_EQ(map.runs, (std::vector<ByteRun>{{0, map.size_bytes}}));
  }
}

TEST(DatatypeMap, a_pair_has_a_hole) {
  const DatatypeMap& short_int = *map_of(MPI_SHORT_INT).value();
  EXPECT_EQ(short_int.runs, (std::vector<ByteRun>{{0, 2}, {4, 4}}));
  const DatatypeMap& double_int = *map_of(MPI_DOUBLE_INT).value();
  EXPECT_EQ(double_int.runs, (std::vector<ByteRun>{{0, 12}}));
  EXPECT_EQ(double_int.extent_bytes, 16);
  EXPECT_FALSE(double_int.contiguous);
  const DatatypeMap& long_double_int = *map_of(MPI_LONG_DOUBLE_INT).value();
  EXPECT_EQ(long_double_int.runs, (std::vector<ByteRun>{{0, 20}}));
  EXPECT_EQ(long_double_int.extent_bytes, 32);
}

TEST(DatatypeMap, neighbours_are_one_run) {
  MPI_Datatype row = MPI_DATATYPE_NULL, block = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(1000, MPI_DOUBLE, &row);
  MPI_Type_vector(1000, 1, 1, row, &block);
  EXPECT_EQ(map_of(block).value()->runs, (std::vector<ByteRun>{{0, 8000000}}));
  EXPECT_TRUE(map_of(block).value()->contiguous);
  MPI_Type_free(&row);
  MPI_Type_free(&block);
}

// MPI gives the handle of a freed type to the next one that is made.
TEST(DatatypeMap, a_handle_that_is_used_again_has_the_new_types_map) {
  for (int i = 1; i < 200; ++i) {
    MPI_Datatype type = MPI_DATATYPE_NULL, copy = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(i, MPI_CHAR, &type);
    EXPECT_EQ(map_of(type).value()->size_bytes, i);
    MPI_Type_dup(type, &copy);
    MPI_Type_free(&type);
    EXPECT_EQ(map_of(copy).value()->size_bytes, i);
    MPI_Type_free(&copy);
  }
}

TEST(DatatypeMap, what_is_null_or_has_too_many_pieces_is_refused_with_a_sentence) {
  EXPECT_EQ(map_of(MPI_DATATYPE_NULL).status().code(), Code::invalid_argument);
  MPI_Datatype comb = MPI_DATATYPE_NULL;
  MPI_Type_vector((1 << 24) + 1, 1, 2, MPI_CHAR, &comb);
  const auto refused = map_of(comb);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::unsupported);
  EXPECT_NE(refused.status().message().find("16777216"), std::string::npos);
  MPI_Type_free(&comb);
}

// Without the maps of its parts this would be 2^40 steps.
TEST(DatatypeMap, a_type_that_repeats_its_parts_is_quick) {
#ifdef OPEN_MPI
  GTEST_SKIP() << "Open MPI hands out copies of nested types: exponential time";
#endif
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_dup(MPI_CHAR, &type);
  for (int i = 0; i < 40; ++i) {
    const int lengths[2] = {1, 1};
    const MPI_Aint places[2] = {0, MPI_Aint{1} << i};
    const MPI_Datatype types[2] = {type, type};
    MPI_Datatype next = MPI_DATATYPE_NULL;
    MPI_Type_create_struct(2, lengths, places, types, &next);
    MPI_Type_free(&type);
    type = next;
  }
  EXPECT_EQ(map_of(type).value()->runs, (std::vector<ByteRun>{{0, std::int64_t{1} << 40}}));
  MPI_Type_free(&type);
}

}  // namespace
}  // namespace perdure
