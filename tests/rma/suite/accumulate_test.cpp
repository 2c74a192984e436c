// SPDX-License-Identifier: BSD-3-Clause
//
// Accumulates of every operation on every predefined datatype, as MPI_Reduce_local says, and of
// all ranks at once on the same cells, whose sum is known.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "suite.hpp"

namespace suite {
namespace {

struct Type {
  MPI_Datatype type;
  enum Kind { integer, cardinal, real, complex, logical, byte } kind;
};

std::vector<Type> types() {
  return {{MPI_SIGNED_CHAR, Type::integer},
          {MPI_UNSIGNED_CHAR, Type::cardinal},
          {MPI_SHORT, Type::integer},
          {MPI_UNSIGNED_SHORT, Type::cardinal},
          {MPI_INT, Type::integer},
          {MPI_UNSIGNED, Type::cardinal},
          {MPI_LONG, Type::integer},
          {MPI_UNSIGNED_LONG, Type::cardinal},
          {MPI_LONG_LONG, Type::integer},
          {MPI_UNSIGNED_LONG_LONG, Type::cardinal},
          {MPI_INT8_T, Type::integer},
          {MPI_INT16_T, Type::integer},
          {MPI_INT32_T, Type::integer},
          {MPI_INT64_T, Type::integer},
          {MPI_UINT8_T, Type::cardinal},
          {MPI_UINT16_T, Type::cardinal},
          {MPI_UINT32_T, Type::cardinal},
          {MPI_UINT64_T, Type::cardinal},
          {MPI_AINT, Type::integer},
          {MPI_OFFSET, Type::integer},
          {MPI_COUNT, Type::integer},
          {MPI_FLOAT, Type::real},
          {MPI_DOUBLE, Type::real},
          {MPI_LONG_DOUBLE, Type::real},
          {MPI_C_FLOAT_COMPLEX, Type::complex},
          {MPI_C_DOUBLE_COMPLEX, Type::complex},
          {MPI_C_BOOL, Type::logical},
          {MPI_BYTE, Type::byte}};
}

std::vector<MPI_Op> operations(Type::Kind kind) {
  switch (kind) {
    case Type::integer:
    case Type::cardinal:
      return {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX, MPI_BAND,
              MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
    case Type::real:
      return {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
    case Type::complex:
      return {MPI_SUM, MPI_PROD};
    case Type::logical:
      return {MPI_LAND, MPI_LOR, MPI_LXOR};
    default:
      return {MPI_BAND, MPI_BOR, MPI_BXOR};
  }
}

constexpr int elements = 24;
constexpr std::size_t room = 16 * 3 * elements;
using Bytes = std::vector<unsigned char>;

template <typename T>
void store_small(Bytes& bytes, std::mt19937_64& draw) {
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const T value = static_cast<T>(static_cast<int>(draw() % 9) - 4);
    std::memcpy(&bytes[at], &value, sizeof value);
  }
}

// Any bytes, but no reals that are not equal to themselves, nor any bool but 0 and 1; and MPICH
// 4.0.2 compares integers without a sign as if they had one.
Bytes draw_elements(const Type& type, std::mt19937_64& draw) {
  Bytes bytes(room);
  for (unsigned char& each : bytes) each = static_cast<unsigned char>(draw());
  if (type.type == MPI_FLOAT || type.type == MPI_C_FLOAT_COMPLEX) store_small<float>(bytes, draw);
  if (type.type == MPI_DOUBLE || type.type == MPI_C_DOUBLE_COMPLEX)
    store_small<double>(bytes, draw);
  if (type.type == MPI_LONG_DOUBLE) {
    std::fill(bytes.begin(), bytes.end(), 0);  // its padding is compared too
    store_small<long double>(bytes, draw);
  }
  if (type.kind == Type::cardinal) {
    for (unsigned char& each : bytes) each &= 0x7f;
  }
  if (type.kind == Type::logical) {
    for (unsigned char& each : bytes) each = static_cast<unsigned char>(draw() % 2);
  }
  return bytes;
}

// Equal except for what a long double leaves of its 16 bytes.
bool equal(const Bytes& a, const unsigned char* b, MPI_Datatype type) {
  if (type != MPI_LONG_DOUBLE) return std::equal(a.begin(), a.end(), b);
  for (std::size_t at = 0; at < a.size(); at += sizeof(long double)) {
    if (!std::equal(a.begin() + static_cast<std::ptrdiff_t>(at),
                    a.begin() + static_cast<std::ptrdiff_t>(at + 10), b + at)) {
      return false;
    }
  }
  return true;
}

// One element in two, both at the target and of what it held.
class Spread {
 public:
  explicit Spread(MPI_Datatype of) {
    MPI_Type_vector(elements, 1, 2, of, &type_);
    MPI_Type_commit(&type_);
  }
  ~Spread() { MPI_Type_free(&type_); }
  Spread(const Spread&) = delete;
  Spread& operator=(const Spread&) = delete;
  operator MPI_Datatype() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

void reduce_one_in_two(const Bytes& origin, Bytes& target, Bytes* result, MPI_Datatype type,
                       MPI_Op op) {
  int size = 0;
  MPI_Type_size(type, &size);
  const auto bytes = static_cast<std::size_t>(size);
  for (std::size_t i = 0; i < elements; ++i) {
    unsigned char* there = &target[2 * i * bytes];
    if (result != nullptr) std::copy(there, there + bytes, &(*result)[2 * i * bytes]);
    if (op == MPI_NO_OP) continue;
    if (op == MPI_REPLACE) {
      std::copy(&origin[i * bytes], &origin[(i + 1) * bytes], there);
    } else {
      MPI_Reduce_local(&origin[i * bytes], there, 1, type, op);
    }
  }
}

class Accumulates : public WindowTest {};

TEST_F(Accumulates, every_operation_on_every_type_is_that_of_a_reduction) {
  const std::uint64_t seed = seed_of_run();
  SCOPED_TRACE("PERDURE_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 draw(seed);
  unsigned char* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  for (const Type& type : types()) {
    std::vector<MPI_Op> ops = operations(type.kind);
    ops.insert(ops.end(), {MPI_REPLACE, MPI_NO_OP});
    const Spread spread(type.type);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const MPI_Op op = ops[i];
      const Bytes before = draw_elements(type, draw);
      const Bytes origin = draw_elements(type, draw);  // the same on every rank
      Bytes expected = before;
      Bytes expected_result(room);
      if (op != MPI_NO_OP) reduce_one_in_two(origin, expected, nullptr, type.type, op);
      reduce_one_in_two(origin, expected, &expected_result, type.type, op);
      std::copy(before.begin(), before.end(), base);
      Bytes result(room);
      MPI_Win_fence(0, window);
      if (op != MPI_NO_OP) {
        MPI_Accumulate(origin.data(), elements, type.type, next(), 0, 1, spread, op, window);
      }
      MPI_Get_accumulate(origin.data(), elements, type.type, result.data(), 1, spread, next(), 0, 1,
                         spread, op, window);
      MPI_Win_fence(0, window);
      int length = 0;
      std::array<char, MPI_MAX_OBJECT_NAME> name{};
      MPI_Type_get_name(type.type, name.data(), &length);
      EXPECT_TRUE(equal(expected, base, type.type)) << name.data() << ", op " << i;
      EXPECT_TRUE(equal(expected_result, result.data(), type.type)) << name.data();
    }
  }
  MPI_Win_free(&window);
}

// --- all ranks at once ---------------------------------------------------------------------------

constexpr std::size_t cell_count = 4096;
constexpr int rounds = 60;

// Adds 1 to `words` cells from `first` on, by one of the calls that can.
void add_ones(int way, std::size_t first, int words, int target, Cells& cells) {
  static const std::vector<std::int64_t> ones(cell_count, 1);
  static std::vector<std::int64_t> found(cell_count);
  const MPI_Aint at = cells.at(target, first);
  MPI_Request request = MPI_REQUEST_NULL;
  if (way == 0) {
    MPI_Accumulate(ones.data(), words, MPI_INT64_T, target, at, words, MPI_INT64_T, MPI_SUM, cells);
  } else if (way == 1) {
    MPI_Get_accumulate(ones.data(), words, MPI_INT64_T, found.data(), words, MPI_INT64_T, target,
                       at, words, MPI_INT64_T, MPI_SUM, cells);
  } else if (way == 2) {
    MPI_Raccumulate(ones.data(), words, MPI_INT64_T, target, at, words, MPI_INT64_T, MPI_SUM, cells,
                    &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (way == 3) {
    MPI_Rget_accumulate(ones.data(), words, MPI_INT64_T, found.data(), words, MPI_INT64_T, target,
                        at, words, MPI_INT64_T, MPI_SUM, cells, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    for (int i = 0; i < words; ++i) {
      MPI_Fetch_and_op(ones.data(), found.data(), MPI_INT64_T, target, at + i, MPI_SUM, cells);
    }
  }
  MPI_Win_flush(target, cells);
}

TEST_F(Accumulates, what_all_ranks_add_at_once_is_all_there) {
  const std::uint64_t seed = seed_of_run();
  SCOPED_TRACE("PERDURE_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 draw(seed);
  Cells cells(cell_count);
  std::vector<std::int64_t> expected(cell_count);
  MPI_Win_lock_all(0, cells);
  for (int round = 0; round < rounds; ++round) {
    for (int origin = 0; origin < ranks(); ++origin) {
      const int way = static_cast<int>(draw() % 5);
      const auto words = static_cast<int>(way == 4 ? 1 + draw() % 40 : 1 + draw() % cell_count);
      const std::size_t first = draw() % (cell_count - static_cast<std::size_t>(words) + 1);
      for (std::size_t i = 0; i < static_cast<std::size_t>(words); ++i) ++expected[first + i];
      if (origin == rank()) add_ones(way, first, words, 0, cells);
    }
  }
  MPI_Win_unlock_all(cells);
  barrier();
  MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, cells);
  if (rank() == 0) {
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), cells.begin()));
  } else {
    EXPECT_EQ(std::count(cells.begin(), cells.end(), 0), static_cast<long>(cell_count));
  }
  MPI_Win_unlock(rank(), cells);
  barrier();
}

// Every number is drawn once, by fetching and adding, under locks of all kinds.
TEST_F(Accumulates, a_number_is_fetched_by_one_rank_only) {
  constexpr int draws = 200;
  Cells cells(2);
  std::vector<std::int64_t> mine;
  const std::int64_t one = 1;
  for (int i = 0; i < draws; ++i) {
    std::int64_t found = -1;
    MPI_Win_lock(i % 5 == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, cells);
    MPI_Fetch_and_op(&one, &found, MPI_INT64_T, 0, cells.at(0, 1), MPI_SUM, cells);
    MPI_Win_unlock(0, cells);
    mine.push_back(found);
  }
  std::vector<std::int64_t> all(static_cast<std::size_t>(draws * ranks()));
  MPI_Allgather(mine.data(), draws, MPI_INT64_T, all.data(), draws, MPI_INT64_T, MPI_COMM_WORLD);
  EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<std::int64_t>(i));
}

// The target posts when it has got a message that is on its way when the accumulate is called.
TEST_F(Accumulates, one_that_comes_before_the_post_waits_for_it) {
  if (ranks() == 1) GTEST_SKIP() << "needs an origin and a target";
  Cells cells(2);
  std::vector<char> message(1 << 20);
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group peer = MPI_GROUP_NULL;
  const int other = 1 - rank();
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  if (rank() < 2) MPI_Group_incl(world, 1, &other, &peer);
  const std::int64_t seven = 7;
  if (rank() == 0) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_CHAR, 1, 0, MPI_COMM_WORLD,
              &request);
    MPI_Win_start(peer, 0, cells);
    MPI_Accumulate(&seven, 1, MPI_INT64_T, 1, cells.at(1, 1), 1, MPI_INT64_T, MPI_SUM, cells);
    MPI_Win_complete(cells);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (rank() == 1) {
    MPI_Recv(message.data(), static_cast<int>(message.size()), MPI_CHAR, 0, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cells[1] = 100;
    MPI_Win_post(peer, 0, cells);
    MPI_Win_wait(cells);
    EXPECT_EQ(cells[1], 107);
  }
  if (rank() != 1) {  // as many exposure epochs as rank 1
    MPI_Win_post(MPI_GROUP_EMPTY, 0, cells);
    MPI_Win_wait(cells);
  }
  if (peer != MPI_GROUP_NULL) MPI_Group_free(&peer);
  MPI_Group_free(&world);
  barrier();
}

}  // namespace
}  // namespace suite
