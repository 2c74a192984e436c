// SPDX-License-Identifier: BSD-3-Clause
//
// Random epochs against a model: every rank draws the operations of all ranks from one seed, plays
// them on a picture of all windows, and after each epoch compares its own memory with it.
#include <random>

#include "suite.hpp"

namespace suite {
namespace {

constexpr std::size_t cell_count = 64;
constexpr int epochs = 25;
constexpr int operations = 12;  // of each rank in an epoch

struct Operation {
  enum Kind { put_it, add_it, get_it, fetch_it } kind;
  int target;
  std::size_t cell;
  std::int64_t value;
  std::int64_t fetched;  // by this operation
  std::int64_t expected;
};

// All windows as they must be. Origins write to cells of their own, cell % ranks == origin, so that
// an epoch has one outcome; within one origin, puts and gets never touch a cell twice.
class Model {
 public:
  explicit Model(std::uint64_t seed)
      : draw_(seed), cells_(static_cast<std::size_t>(ranks()) * cell_count) {}

  // The operations of this rank in the next epoch, after which the picture shows them all.
  std::vector<Operation> next_epoch() {
    std::vector<Operation> mine;
    for (int origin = 0; origin < ranks(); ++origin) {
      for (int target = 0; target < ranks(); ++target) {
        for (Operation& operation : draw_cells(origin, target)) {
          if (origin == rank()) mine.push_back(operation);
        }
      }
    }
    return mine;
  }

  // The owner changes its memory itself, between epochs.
  template <class Store>
  void owners_store(Store&& store) {
    for (int owner = 0; owner < ranks(); ++owner) {
      const std::size_t cell = draw_() % cell_count;
      const auto value = static_cast<std::int64_t>(draw_() % 1000);
      at(owner, cell) = value;
      if (owner == rank()) store(cell, value);
    }
  }

  std::int64_t& at(int owner, std::size_t cell) {
    return cells_[static_cast<std::size_t>(owner) * cell_count + cell];
  }

 private:
  std::vector<Operation> draw_cells(int origin, int target) {
    std::vector<Operation> drawn;
    auto cell = static_cast<std::size_t>(origin);
    const auto step = static_cast<std::size_t>(ranks());
    for (; cell < cell_count && drawn.size() < operations; cell += step * (1 + draw_() % 3)) {
      Operation next{static_cast<Operation::Kind>(draw_() % 4), target, cell,
                     static_cast<std::int64_t>(draw_() % 1000), -1,     -1};
      std::int64_t& known = at(target, cell);
      if (next.kind == Operation::get_it || next.kind == Operation::fetch_it) next.expected = known;
      if (next.kind == Operation::put_it) known = next.value;
      if (next.kind == Operation::add_it || next.kind == Operation::fetch_it) known += next.value;
      drawn.push_back(next);
    }
    return drawn;
  }

  std::mt19937_64 draw_;
  std::vector<std::int64_t> cells_;
};

void start(Operation& operation, Cells& cells) {
  const MPI_Aint at = cells.at(operation.target, operation.cell);
  if (operation.kind == Operation::put_it) {
    put(operation.value, operation.target, operation.cell, cells);
  } else if (operation.kind == Operation::get_it) {
    get(operation.fetched, operation.target, operation.cell, cells);
  } else if (operation.kind == Operation::add_it) {
    MPI_Accumulate(&operation.value, 1, MPI_INT64_T, operation.target, at, 1, MPI_INT64_T, MPI_SUM,
                   cells);
  } else {
    MPI_Fetch_and_op(&operation.value, &operation.fetched, MPI_INT64_T, operation.target, at,
                     MPI_SUM, cells);
  }
}

class Random : public WindowTest, public testing::WithParamInterface<Made> {};
INSTANTIATE_TEST_SUITE_P(Windows, Random,
                         testing::Values(Made::by_create, Made::by_allocate,
                                         Made::by_allocate_shared, Made::by_dynamic),
                         [](const testing::TestParamInfo<Made>& drawn) {
                           return name_of(drawn.param);
                         });

TEST_P(Random, epochs_of_all_kinds_leave_what_the_model_says) {
  const std::uint64_t seed = seed_of_run();
  SCOPED_TRACE("PERDURE_TEST_SEED=" + std::to_string(seed));
  Model model(seed);
  std::mt19937_64 kinds(seed + 1);
  Cells cells(cell_count, GetParam());
  for (int round = 0; round < epochs; ++round) {
    Epoch epoch(cells, MPI_COMM_WORLD, static_cast<Sync>(kinds() % 4));
    model.owners_store([&](std::size_t cell, std::int64_t value) { cells[cell] = value; });
    std::vector<Operation> mine = model.next_epoch();
    epoch.begin();
    for (Operation& operation : mine) start(operation, cells);
    epoch.end();
    for (const Operation& operation : mine) EXPECT_EQ(operation.fetched, operation.expected);
    for (std::size_t cell = 0; cell < cell_count; ++cell) {
      EXPECT_EQ(cells[cell], model.at(rank(), cell)) << "cell " << cell << ", epoch " << round;
    }
    if (HasFailure())
      std::printf("rank %d: PERDURE_TEST_SEED=%llu\n", rank(),
                  static_cast<unsigned long long>(seed));
    barrier();
  }
}

}  // namespace
}  // namespace suite
