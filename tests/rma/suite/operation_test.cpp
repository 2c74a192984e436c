// SPDX-License-Identifier: BSD-3-Clause
//
// Every predefined operation of the accumulating calls, and pairs of type and operation.
#include <limits>

#include "suite.hpp"

namespace suite {
namespace {

struct Operation {
  const char* name;
  MPI_Op op;
  std::int64_t expected;  // of 12 in the window and 10 from the origin
};

class Operations : public WindowTest {};

TEST_F(Operations, each_gives_its_own_result) {
  const std::vector<Operation> operations{
      {"sum", MPI_SUM, 22},  {"prod", MPI_PROD, 120},  {"max", MPI_MAX, 12},
      {"min", MPI_MIN, 10},  {"band", MPI_BAND, 8},    {"bor", MPI_BOR, 14},
      {"bxor", MPI_BXOR, 6}, {"land", MPI_LAND, 1},    {"lor", MPI_LOR, 1},
      {"lxor", MPI_LXOR, 0}, {"no_op", MPI_NO_OP, 12}, {"replace", MPI_REPLACE, 10},
  };
  Cells cells(operations.size() * 3);
  std::fill(cells.begin(), cells.end(), 12);
  const std::int64_t mine = 10;
  std::vector<std::int64_t> before(operations.size() * 2, -1);
  MPI_Win_fence(0, cells);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const MPI_Op op = operations[i].op;
    const MPI_Aint at = cells.at(next(), 3 * i);
    if (op != MPI_NO_OP) {  // of the fetching calls only
      MPI_Accumulate(&mine, 1, MPI_INT64_T, next(), at, 1, MPI_INT64_T, op, cells);
    }
    MPI_Get_accumulate(&mine, 1, MPI_INT64_T, &before[2 * i], 1, MPI_INT64_T, next(), at + 1, 1,
                       MPI_INT64_T, op, cells);
    MPI_Fetch_and_op(&mine, &before[2 * i + 1], MPI_INT64_T, next(), at + 2, op, cells);
  }
  MPI_Win_fence(0, cells);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    for (std::size_t call = 0; call < 3; ++call) {
      EXPECT_EQ(cells[3 * i + call], operations[i].expected) << operations[i].name << " " << call;
    }
    EXPECT_EQ(before[2 * i], 12) << operations[i].name;
    EXPECT_EQ(before[2 * i + 1], 12) << operations[i].name;
  }
}

template <class T>
void add_one_and_a_half(MPI_Datatype type) {
  T* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(64 * sizeof(T), sizeof(T), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  for (int i = 0; i < 4; ++i) base[i] = static_cast<T>(rank() + i);
  const std::array<T, 2> mine{static_cast<T>(1.5), static_cast<T>(3)};
  MPI_Win_fence(0, window);
  MPI_Accumulate(mine.data(), 2, type, next(), 1, 2, type, MPI_SUM, window);
  MPI_Win_fence(0, window);
  EXPECT_EQ(base[0], static_cast<T>(rank()));
  EXPECT_EQ(base[1], static_cast<T>(static_cast<T>(rank() + 1) + mine[0]));
  EXPECT_EQ(base[2], static_cast<T>(static_cast<T>(rank() + 2) + mine[1]));
  EXPECT_EQ(base[3], static_cast<T>(rank() + 3));
  MPI_Win_free(&window);
}

TEST_F(Operations, every_numeric_type_is_summed) {
  add_one_and_a_half<signed char>(MPI_SIGNED_CHAR);
  add_one_and_a_half<unsigned char>(MPI_UNSIGNED_CHAR);
  add_one_and_a_half<short>(MPI_SHORT);
  add_one_and_a_half<unsigned>(MPI_UNSIGNED);
  add_one_and_a_half<std::int32_t>(MPI_INT32_T);
  add_one_and_a_half<std::uint64_t>(MPI_UINT64_T);
  add_one_and_a_half<float>(MPI_FLOAT);
  add_one_and_a_half<double>(MPI_DOUBLE);
  add_one_and_a_half<MPI_Aint>(MPI_AINT);
  add_one_and_a_half<MPI_Offset>(MPI_OFFSET);
}

struct ValueAndPlace {
  int value;
  int place;
};

TEST_F(Operations, the_largest_value_brings_its_place) {
  ValueAndPlace* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(8 * sizeof(ValueAndPlace), sizeof(ValueAndPlace), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &base, &window);
  base[0] = {-1, -1};
  base[1] = {1000, -1};
  const ValueAndPlace mine{rank() == ranks() / 2 ? 50 : 10 + rank(), rank()};
  MPI_Win_fence(0, window);
  MPI_Accumulate(&mine, 1, MPI_2INT, 0, 0, 1, MPI_2INT, MPI_MAXLOC, window);
  MPI_Accumulate(&mine, 1, MPI_2INT, 0, 1, 1, MPI_2INT, MPI_MINLOC, window);
  MPI_Win_fence(0, window);
  if (rank() == 0) {
    EXPECT_EQ(base[0].value, 50);
    EXPECT_EQ(base[0].place, ranks() / 2);
    EXPECT_EQ(base[1].value, ranks() == 1 ? 50 : 10);
    EXPECT_EQ(base[1].place, 0);
  }
  MPI_Win_free(&window);
}

// Accumulates of one origin to one cell happen in the order of the calls.
TEST_F(Operations, accumulates_of_one_rank_keep_their_order) {
  Cells cells(8);
  MPI_Win_fence(0, cells);
  std::array<std::int64_t, 20> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int64_t>(i) + 1;
    MPI_Accumulate(&values[i], 1, MPI_INT64_T, next(), cells.at(next(), i % 8), 1, MPI_INT64_T,
                   MPI_REPLACE, cells);
  }
  MPI_Win_fence(0, cells);
  for (std::size_t cell = 0; cell < 8; ++cell) {
    const std::size_t last = cell < 4 ? 16 + cell : 8 + cell;
    EXPECT_EQ(cells[cell], static_cast<std::int64_t>(last) + 1);
  }
}

TEST_F(Operations, swaps_work_on_every_width_they_are_allowed_on) {
  constexpr MPI_Aint unit = 8;
  std::int64_t* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(8 * unit, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  std::fill(base, base + 4, 0);
  const int int_mine = 77, int_empty = 0;
  const signed char char_mine = 7, char_empty = 0;
  int int_found = -1;
  signed char char_found = -1;
  bool bool_found = true;
  const bool bool_mine = true, bool_empty = false;
  MPI_Win_fence(0, window);
  MPI_Compare_and_swap(&int_mine, &int_empty, &int_found, MPI_INT, next(), 0, window);
  MPI_Compare_and_swap(&char_mine, &char_empty, &char_found, MPI_SIGNED_CHAR, next(), 1, window);
  MPI_Compare_and_swap(&bool_mine, &bool_empty, &bool_found, MPI_C_BOOL, next(), 2, window);
  MPI_Win_fence(0, window);
  EXPECT_EQ(base[0], 77);
  EXPECT_EQ(base[1], 7);
  EXPECT_EQ(base[2], 1);
  EXPECT_EQ(base[3], 0);
  EXPECT_EQ(int_found, 0);
  EXPECT_EQ(char_found, 0);
  EXPECT_FALSE(bool_found);
  MPI_Win_free(&window);
}

}  // namespace
}  // namespace suite
