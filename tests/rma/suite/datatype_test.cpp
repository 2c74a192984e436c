// SPDX-License-Identifier: BSD-3-Clause
//
// Derived datatypes on the side of the origin, of the target, and of both.
#include <algorithm>
#include <cstddef>
#include <numeric>

#include "suite.hpp"

namespace suite {
namespace {

class Datatypes : public WindowTest {};

class Type {
 public:
  explicit Type(MPI_Datatype made) : type_(made) { MPI_Type_commit(&type_); }
  ~Type() { MPI_Type_free(&type_); }
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;
  operator MPI_Datatype() const { return type_; }

 private:
  MPI_Datatype type_;
};

MPI_Datatype every_third_of_four() {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(4, 1, 3, MPI_INT64_T, &type);
  return type;
}

MPI_Datatype one_then_three() {  // cells 6, 0, 1, 2, in this order
  constexpr std::array lengths{1, 3};
  constexpr std::array places{6, 0};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_indexed(2, lengths.data(), places.data(), MPI_INT64_T, &type);
  return type;
}

TEST_F(Datatypes, a_vector_scatters_at_the_target) {
  Cells cells(12);
  const Type strided(every_third_of_four());
  std::array<std::int64_t, 4> mine{};
  std::iota(mine.begin(), mine.end(), 100 * rank());
  MPI_Win_fence(0, cells);
  MPI_Put(mine.data(), 4, MPI_INT64_T, next(), cells.at(next(), 1), 1, strided, cells);
  MPI_Win_fence(0, cells);
  for (std::size_t i = 0; i < 12; ++i) {
    const auto place = static_cast<std::int64_t>(i / 3);
    EXPECT_EQ(cells[i], i % 3 == 1 ? 100 * previous() + place : 0) << "cell " << i;
  }
}

TEST_F(Datatypes, a_vector_gathers_at_the_origin) {
  Cells cells(4);
  const Type strided(every_third_of_four());
  std::array<std::int64_t, 12> mine{};
  std::iota(mine.begin(), mine.end(), 100 * rank());
  MPI_Win_fence(0, cells);
  MPI_Put(mine.data(), 1, strided, next(), cells.at(next(), 0), 4, MPI_INT64_T, cells);
  MPI_Win_fence(0, cells);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(cells[i], 100 * previous() + 3 * static_cast<std::int64_t>(i));
  }
}

TEST_F(Datatypes, both_sides_may_be_scattered_differently) {
  Cells cells(8);
  const Type strided(every_third_of_four());
  const Type indexed(one_then_three());
  std::array<std::int64_t, 10> mine{};
  std::iota(mine.begin(), mine.end(), 100 * rank());
  MPI_Win_fence(0, cells);
  MPI_Put(mine.data(), 1, strided, next(), cells.at(next(), 0), 1, indexed, cells);
  MPI_Win_fence(0, cells);
  const std::int64_t from = 100 * previous();
  const std::array<std::int64_t, 8> expected{from + 3, from + 6, from + 9, 0, 0, 0, from, 0};
  EXPECT_TRUE(std::equal(cells.begin(), cells.end(), expected.begin()));

  std::array<std::int64_t, 10> back{};
  MPI_Win_fence(0, cells);
  MPI_Get(back.data(), 1, strided, next(), cells.at(next(), 0), 1, indexed, cells);
  MPI_Win_fence(0, cells);
  for (std::size_t i = 0; i < back.size(); ++i) EXPECT_EQ(back[i], i % 3 == 0 ? mine[i] : 0);
}

struct Particle {
  double mass;
  char kind;
  int charges[3];
};

MPI_Datatype particle_type() {
  constexpr std::array lengths{1, 1, 3};
  const std::array<MPI_Aint, 3> places{offsetof(Particle, mass), offsetof(Particle, kind),
                                       offsetof(Particle, charges)};
  const std::array types{MPI_DOUBLE, MPI_CHAR, MPI_INT};
  MPI_Datatype fields = MPI_DATATYPE_NULL, whole = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(3, lengths.data(), places.data(), types.data(), &fields);
  MPI_Type_create_resized(fields, 0, sizeof(Particle), &whole);
  MPI_Type_free(&fields);
  return whole;
}

TEST_F(Datatypes, structures_travel_without_their_holes) {
  const Type particle(particle_type());
  Particle* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(8 * sizeof(Particle), sizeof(Particle), MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                   &window);
  std::fill(base, base + 4, Particle{-1, '-', {0, 0, 0}});
  const std::array<Particle, 2> mine{Particle{0.5 + rank(), 'a', {rank(), 2, 3}},
                                     Particle{1.5 + rank(), 'b', {rank(), 5, 6}}};
  MPI_Win_fence(0, window);
  MPI_Put(mine.data(), 2, particle, next(), 1, 2, particle, window);
  MPI_Win_fence(0, window);
  EXPECT_EQ(base[0].mass, -1);
  EXPECT_EQ(base[1].mass, 0.5 + previous());
  EXPECT_EQ(base[1].kind, 'a');
  EXPECT_EQ(base[2].charges[0], previous());
  EXPECT_EQ(base[2].charges[2], 6);
  EXPECT_EQ(base[3].kind, '-');
  std::array<Particle, 2> back{};
  MPI_Win_fence(0, window);
  MPI_Get(back.data(), 2, particle, next(), 1, 2, particle, window);
  MPI_Win_fence(0, window);
  EXPECT_EQ(back[1].mass, mine[1].mass);
  EXPECT_EQ(back[1].charges[1], 5);
  MPI_Win_free(&window);
}

TEST_F(Datatypes, an_accumulate_adds_to_scattered_cells) {
  Cells cells(12);
  std::iota(cells.begin(), cells.end(), 0);
  const Type strided(every_third_of_four());
  const std::array<std::int64_t, 4> mine{1, 10, 100, 1000};
  MPI_Win_fence(0, cells);
  MPI_Accumulate(mine.data(), 4, MPI_INT64_T, next(), cells.at(next(), 0), 1, strided, MPI_SUM,
                 cells);
  MPI_Win_fence(0, cells);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(cells[i], static_cast<std::int64_t>(i) + (i % 3 == 0 ? mine[i / 3] : 0));
  }
}

TEST_F(Datatypes, get_accumulate_scatters_on_all_three_sides) {
  Cells cells(12);
  std::iota(cells.begin(), cells.end(), 0);
  const Type strided(every_third_of_four());
  const Type indexed(one_then_three());
  std::array<std::int64_t, 7> mine{20, 30, 40, 0, 0, 0, 10};
  std::array<std::int64_t, 12> before{};
  MPI_Win_fence(0, cells);
  MPI_Get_accumulate(mine.data(), 1, indexed, before.data(), 1, strided, next(),
                     cells.at(next(), 2), 1, strided, MPI_SUM, cells);
  MPI_Win_fence(0, cells);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto was = static_cast<std::int64_t>(2 + 3 * i);
    EXPECT_EQ(before[3 * i], was);
    EXPECT_EQ(cells[2 + 3 * i], was + 10 * static_cast<std::int64_t>(i + 1));
  }
}

TEST_F(Datatypes, part_of_a_grid_is_a_halo) {
  constexpr int edge = 6;
  Cells cells(edge * edge);
  std::fill(cells.begin(), cells.end(), rank());
  constexpr std::array sizes{edge, edge};
  constexpr std::array part{edge, 1};
  constexpr std::array last{0, edge - 1};
  constexpr std::array first{0, 0};
  MPI_Datatype from = MPI_DATATYPE_NULL, to = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray(2, sizes.data(), part.data(), last.data(), MPI_ORDER_C, MPI_INT64_T,
                           &from);
  MPI_Type_create_subarray(2, sizes.data(), part.data(), first.data(), MPI_ORDER_C, MPI_INT64_T,
                           &to);
  const Type last_column(from), first_column(to);
  std::vector<std::int64_t> mine(edge * edge, 50 + rank());
  MPI_Win_fence(0, cells);
  MPI_Put(mine.data(), 1, last_column, next(), cells.at(next(), 0), 1, first_column, cells);
  MPI_Win_fence(0, cells);
  for (std::size_t i = 0; i < edge * edge; ++i) {
    EXPECT_EQ(cells[i], i % edge == 0 ? 50 + previous() : rank()) << "cell " << i;
  }
}

// The type may be freed once the call has returned.
TEST_F(Datatypes, a_type_need_not_outlive_the_call) {
  Cells cells(12);
  std::array<std::int64_t, 4> mine{1, 2, 3, 4};
  MPI_Win_fence(0, cells);
  {
    const Type strided(every_third_of_four());
    MPI_Put(mine.data(), 4, MPI_INT64_T, next(), cells.at(next(), 0), 1, strided, cells);
  }
  MPI_Win_fence(0, cells);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(cells[3 * i], static_cast<std::int64_t>(i) + 1);
}

}  // namespace
}  // namespace suite
