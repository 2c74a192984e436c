// SPDX-License-Identifier: BSD-3-Clause
//
// Random transfers of random datatypes, from some bytes to some hundred thousand, in epochs of
// every kind, against a model: every rank draws the operations of all ranks from one seed, and
// plays them on a picture of all windows, cell by cell.
#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

#include "suite.hpp"

namespace suite {
namespace {

constexpr std::size_t part_cells = 64 << 10;  // of a window, for one origin
constexpr int epochs = 12;

using Words = std::vector<std::int64_t>;

// `count` items of a datatype that carries words, and where these lie, in order.
struct Layout {
  int count = 0;
  MPI_Datatype type = MPI_INT64_T;
  std::size_t first = 0;  // the cell of displacement 0
  const char* kind = "words";
  std::vector<std::size_t> cells;  // after `first`
  void add(int at, int words) {
    for (int i = 0; i < words; ++i) cells.push_back(static_cast<std::size_t>(at + i));
  }
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : generator_(seed) {}
  int between(int low, int high) {
    return low + static_cast<int>(generator_() % static_cast<std::uint64_t>(high - low + 1));
  }
  std::int64_t word() { return static_cast<std::int64_t>(generator_() >> 8); }  // sums fit
  template <typename Numbers>
  void shuffle(Numbers& numbers) {
    std::shuffle(numbers.begin(), numbers.end(), generator_);
  }
  // A divisor of `words`, which is a small number times a power of two.
  int divisor(int words) {
    int found = words;
    while (found % 2 == 0 && between(0, 3) != 0) found /= 2;
    return between(0, 4) == 0 ? 1 : found;
  }

 private:
  std::mt19937_64 generator_;
};

// The constructors; each carries `words` words within three times as many cells.
Layout draw_vector(Draw& draw, int words) {
  Layout layout{1, MPI_DATATYPE_NULL, 0, "vector", {}};
  const int block = draw.divisor(words);
  const int stride = block + draw.between(0, 2 * block);
  MPI_Type_vector(words / block, block, stride, MPI_INT64_T, &layout.type);
  for (int i = 0; i < words / block; ++i) layout.add(i * stride, block);
  return layout;
}

Layout draw_indexed(Draw& draw, int words) {
  Layout layout{1, MPI_DATATYPE_NULL, 0, "indexed", {}};
  const int blocks = std::min(words, draw.between(1, 40));
  std::vector<std::pair<int, int>> drawn;  // length, place
  int at = 0;
  for (int i = 0; i < blocks; ++i) {
    const int length = words / blocks + (i == 0 ? words % blocks : 0);
    drawn.emplace_back(length, at);
    at += length + draw.between(0, 2 * (words / blocks));
  }
  draw.shuffle(drawn);
  std::vector<int> lengths;
  std::vector<int> places;
  for (const auto& [length, place] : drawn) {
    lengths.push_back(length);
    places.push_back(place);
    layout.add(place, length);
  }
  MPI_Type_indexed(blocks, lengths.data(), places.data(), MPI_INT64_T, &layout.type);
  return layout;
}

Layout draw_subarray(Draw& draw, int words) {
  Layout layout{1, MPI_DATATYPE_NULL, 0, "subarray", {}};
  const int columns = draw.divisor(words);
  const int rows = words / columns;
  const std::array sizes{rows, columns + draw.between(0, 2 * columns)};
  const std::array part{rows, columns};
  const std::array first{0, draw.between(0, sizes[1] - columns)};
  MPI_Type_create_subarray(2, sizes.data(), part.data(), first.data(), MPI_ORDER_C, MPI_INT64_T,
                           &layout.type);
  for (int row = 0; row < rows; ++row) layout.add(row * sizes[1] + first[1], columns);
  return layout;
}

// The last block comes first in memory.
Layout draw_backwards(Draw& draw, int words) {
  Layout layout{1, MPI_DATATYPE_NULL, 0, "backwards", {}};
  const int block = draw.divisor(words);
  const int blocks = words / block;
  const int stride = block + draw.between(0, block);
  MPI_Datatype vector = MPI_DATATYPE_NULL;
  MPI_Type_vector(blocks, block, -stride, MPI_INT64_T, &vector);
  const int length = 1;
  const MPI_Aint place = MPI_Aint{8} * stride * (blocks - 1);
  MPI_Type_create_hindexed(1, &length, &place, vector, &layout.type);
  MPI_Type_free(&vector);
  for (int i = blocks - 1; i >= 0; --i) layout.add(i * stride, block);
  return layout;
}

// With a gap after each.
Layout draw_items(Draw& draw, int words) {
  const int each = draw.divisor(words);
  const int extent = each + draw.between(0, each);
  Layout layout{words / each, MPI_DATATYPE_NULL, 0, "items", {}};
  MPI_Datatype block = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(each, MPI_INT64_T, &block);
  MPI_Type_create_resized(block, 0, MPI_Aint{8} * extent, &layout.type);
  MPI_Type_free(&block);
  for (int i = 0; i < layout.count; ++i) layout.add(i * extent, each);
  return layout;
}

Layout draw_words(Draw&, int words) {
  Layout layout{words, MPI_INT64_T, 0, "words", {}};
  layout.add(0, words);
  return layout;
}

using DrawLayout = Layout (*)(Draw&, int);
using Kinds = std::vector<DrawLayout>;

Layout draw_layout(Draw& draw, int words, const Kinds& kinds) {
  const int kind = draw.between(0, static_cast<int>(kinds.size()) - 1);
  Layout layout = kinds[static_cast<std::size_t>(kind)](draw, words);
  layout.first = static_cast<std::size_t>(draw.between(0, 50));
  if (layout.type != MPI_INT64_T) MPI_Type_commit(&layout.type);
  return layout;
}

struct Operation {
  std::string text() const {
    constexpr std::array names{"put ", "get ", "add ", "fetch and add "};
    return names[static_cast<std::size_t>(kind)] + std::to_string(words) + " words, " + here.kind +
           " here, " + there.kind + " at rank " + std::to_string(target);
  }

  enum Kind { puts, gets, adds, fetches };
  int words;
  Kind kind;
  bool with_request;
  int origin;
  int target;
  std::size_t part;  // of the target's window
  Layout here;
  Layout there;
  Words memory;    // of the origin
  Words expected;  // what it holds when the epoch has ended
  Words result;    // laid out as the origin
  Words expected_result;
};

void move(const Words& from, std::size_t from_cell, const Layout& from_layout, Words& to,
          std::size_t to_cell, const Layout& to_layout) {
  for (std::size_t i = 0; i < from_layout.cells.size(); ++i) {
    to[to_cell + to_layout.cells[i]] = from[from_cell + from_layout.cells[i]];
  }
}

void add(const Operation& operation, Words& window, std::size_t there) {
  const Layout& here = operation.here;
  for (std::size_t i = 0; i < here.cells.size(); ++i) {
    window[there + operation.there.cells[i]] += operation.memory[here.first + here.cells[i]];
  }
}

class Model {
 public:
  Model(std::uint64_t seed, Kinds kinds, bool accumulates)
      : draw_(seed),
        kinds_(std::move(kinds)),
        accumulates_(accumulates),
        windows_(static_cast<std::size_t>(ranks()),
                 Words(part_cells * static_cast<std::size_t>(ranks()))) {}

  // What this rank does in the next epoch, after which the picture shows what all did: each rank
  // has a part of its own in each window.
  std::vector<Operation> next_epoch() {
    std::vector<Operation> mine;
    for (int origin = 0; origin < ranks(); ++origin) {
      for (int target = 0; target < ranks(); ++target) {
        Operation operation = draw_operation(origin, target);
        play(operation);
        if (origin == rank()) {
          mine.push_back(std::move(operation));
        } else {
          forget_types(operation);
        }
      }
    }
    return mine;
  }

  template <class Store>
  void owners_store(const Store& store) {
    for (int owner = 0; owner < ranks(); ++owner) {
      Words& window = windows_[static_cast<std::size_t>(owner)];
      for (std::size_t cell = 0; cell < window.size();
           cell += static_cast<std::size_t>(1 + draw_.word() % 2000)) {
        window[cell] = draw_.word();
        if (owner == rank()) store(cell, window[cell]);
      }
    }
  }

  const Words& own() const { return windows_[static_cast<std::size_t>(rank())]; }

  static void forget_types(Operation& operation) {
    if (operation.here.type != MPI_INT64_T) MPI_Type_free(&operation.here.type);
    if (operation.there.type != MPI_INT64_T) MPI_Type_free(&operation.there.type);
  }

 private:
  Operation draw_operation(int origin, int target) {
    constexpr std::array odd{1, 3, 5};
    const int words = odd[static_cast<std::size_t>(draw_.between(0, 2))] << draw_.between(0, 12);
    Operation drawn{words,
                    static_cast<Operation::Kind>(draw_.between(0, accumulates_ ? 3 : 1)),
                    draw_.between(0, 2) == 0,
                    origin,
                    target,
                    part_cells * static_cast<std::size_t>(origin),
                    {},
                    {},
                    {},
                    {},
                    {},
                    {}};
    drawn.here = draw_layout(draw_, words, kinds_);
    drawn.there = draw_layout(draw_, words, kinds_);
    drawn.memory.resize(part_cells);
    for (std::int64_t& word : drawn.memory) word = draw_.word();
    drawn.expected = drawn.memory;
    drawn.result.resize(part_cells);
    drawn.expected_result = drawn.result;
    return drawn;
  }

  void play(Operation& operation) {
    Words& window = windows_[static_cast<std::size_t>(operation.target)];
    const std::size_t there = operation.part + operation.there.first;
    if (operation.kind == Operation::puts) {
      move(operation.memory, operation.here.first, operation.here, window, there, operation.there);
    } else if (operation.kind == Operation::gets) {
      move(window, there, operation.there, operation.expected, operation.here.first,
           operation.here);
    } else {
      if (operation.kind == Operation::fetches) {
        move(window, there, operation.there, operation.expected_result, operation.here.first,
             operation.here);
      }
      add(operation, window, there);
    }
  }

  Draw draw_;
  Kinds kinds_;
  bool accumulates_;
  std::vector<Words> windows_;
};

// With a request where that is allowed. MPICH 4.0.2 completes it before all bytes of a scattered
// get are there: the epoch's end counts.
void make(Operation& of, Cells& cells, bool passive) {
  const Layout& here = of.here;
  const Layout& there = of.there;
  std::int64_t* memory = of.memory.data() + here.first;
  std::int64_t* result = of.result.data() + here.first;
  const MPI_Aint at = cells.at(of.target, of.part + there.first);
  const auto call = [&](auto function, auto... more) {
    function(memory, here.count, here.type, of.target, at, there.count, there.type, more...);
  };
  const auto fetch = [&](auto function, auto... more) {
    function(memory, here.count, here.type, result, here.count, here.type, of.target, at,
             there.count, there.type, MPI_SUM, more...);
  };
  MPI_Win win = cells;
  if (!passive || !of.with_request) {
    if (of.kind == Operation::puts) call(MPI_Put, win);
    if (of.kind == Operation::gets) call(MPI_Get, win);
    if (of.kind == Operation::adds) call(MPI_Accumulate, MPI_SUM, win);
    if (of.kind == Operation::fetches) fetch(MPI_Get_accumulate, win);
    return;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  if (of.kind == Operation::puts) call(MPI_Rput, win, &request);
  if (of.kind == Operation::gets) call(MPI_Rget, win, &request);
  if (of.kind == Operation::adds) call(MPI_Raccumulate, MPI_SUM, win, &request);
  if (of.kind == Operation::fetches) fetch(MPI_Rget_accumulate, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

class Strided : public WindowTest, public testing::WithParamInterface<Made> {};
INSTANTIATE_TEST_SUITE_P(
    Windows, Strided, testing::Values(Made::by_create, Made::by_allocate, Made::by_allocate_shared),
    [](const testing::TestParamInfo<Made>& drawn) { return name_of(drawn.param); });

void run_epochs(Made made, const Kinds& layouts, bool accumulates = false) {
  const std::uint64_t seed = seed_of_run();
  SCOPED_TRACE("PERDURE_TEST_SEED=" + std::to_string(seed));
  Model model(seed, layouts, accumulates);
  std::mt19937_64 kinds(seed + 1);
  Cells cells(model.own().size(), made);
  for (int round = 0; round < epochs; ++round) {
    const auto sync = static_cast<Sync>(kinds() % 4);
    Epoch epoch(cells, MPI_COMM_WORLD, sync);
    model.owners_store([&](std::size_t cell, std::int64_t value) { cells[cell] = value; });
    std::vector<Operation> mine = model.next_epoch();
    epoch.begin();
    const bool passive = sync == Sync::by_lock || sync == Sync::by_lock_all;
    for (Operation& operation : mine) make(operation, cells, passive);
    epoch.end();
    for (Operation& operation : mine) {
      EXPECT_TRUE(operation.memory == operation.expected &&
                  operation.result == operation.expected_result)
          << operation.text() << ", epoch " << round << ", " << name_of(sync);
      Model::forget_types(operation);
    }
    const auto differs = std::mismatch(model.own().begin(), model.own().end(), cells.begin());
    EXPECT_EQ(differs.first, model.own().end()) << "cell " << differs.first - model.own().begin()
                                                << ", epoch " << round << ", " << name_of(sync);
    barrier();
  }
  if (testing::Test::HasFailure()) {
    std::printf("rank %d: PERDURE_TEST_SEED=%llu\n", rank(), static_cast<unsigned long long>(seed));
  }
}

TEST_P(Strided, transfers_of_one_item_leave_what_the_model_says) {
  run_epochs(GetParam(), {draw_words, draw_vector, draw_indexed, draw_subarray, draw_backwards});
}

TEST_P(Strided, transfers_of_many_items_with_gaps_leave_what_the_model_says) {
  run_epochs(GetParam(), {draw_words, draw_items, draw_vector});
}

TEST_P(Strided, accumulates_among_transfers_leave_what_the_model_says) {
  run_epochs(GetParam(),
             {draw_words, draw_vector, draw_indexed, draw_subarray, draw_backwards, draw_items},
             true);
}

}  // namespace
}  // namespace suite
