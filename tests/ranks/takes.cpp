// SPDX-License-Identifier: BSD-3-Clause
//
// Goes on alone with what several ranks of divide.c made: takes POOL; prints the version.
#include <perdure/perdure.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::uint64_t lines = 61;
constexpr std::uint64_t columns = 40;

void require(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::exit(1);
}

double value(int kind, std::uint64_t index, std::uint64_t step) {
  return static_cast<double>(kind * 1000000 + static_cast<long>(index)) +
         static_cast<double>(step) / 1024;
}

template <typename Elements>
bool is(const Elements& elements, int kind, std::uint64_t step) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i] != value(kind, i, step)) return false;
  }
  return true;
}

template <typename Elements>
void fill(Elements&& elements, int kind, std::uint64_t step) {
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = value(kind, i, step);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  using perdure::Mode;
  using perdure::Ranks;
  perdure::Pool pool(argv[1], {.any_ranks = true, .job = "divide"});
  const unsigned ranks = pool.status().old_ranks;
  require(ranks > 1, "old ranks");
  auto grid = pool.array<double>("grid", {lines, columns}, Mode::twin);
  grid.box({lines, columns}, {0, 0});
  auto list = pool.array<double>("list", Mode::copy, {.ranks = Ranks::rows});
  std::vector<double> table;  // takes the size that the pool has
  pool.array("table", table, Mode::copy, {.ranks = Ranks::same});
  auto count = pool.array<std::int64_t>("count", {1}, Mode::copy, {.ranks = Ranks::by_hand});
  std::uint64_t step = 0;
  pool.scalar("step", step);
  require(pool.old_arrays(0).size() == 4, "arrays of an old rank");
  const std::uint64_t version = pool.restart();
  require(step == version, "step");
  require(is(grid.consistent(), 1, step) && is(list.working(), 2, step), "grid or list");
  require(table.size() == 17 && is(table, 3, step), "table");
  std::int64_t sum = 0;
  for (unsigned old = 0; old < ranks; ++old) {
    std::int64_t its = 0;
    pool.read("count", old, 0, std::span<std::int64_t>(&its, 1));
    sum += its;
  }
  require(sum == lines, "count");
  try {
    std::array<float, 1> other{};
    pool.read("count", 0, 0, std::span<float>(other));
    require(false, "another type was read");
  } catch (const perdure::Error& error) {
    require(error.code() == PERDURE_E_SHAPE, "error of another type");
  }
  ++step;
  fill(grid.working(), 1, step);
  fill(list.working(), 2, step);
  fill(table, 3, step);
  count.working()[0] = static_cast<std::int64_t>(lines);
  pool.commit();
  require(pool.status().old_ranks == 1, "old ranks after the commit");
  std::printf("%d\n", static_cast<int>(version));
}
