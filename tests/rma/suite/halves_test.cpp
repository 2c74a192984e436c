// SPDX-License-Identifier: BSD-3-Clause
//
// A program that is written for two halves: in every epoch each rank fills all of the working half,
// and what it reads is the half that the end of the epoch made consistent. Where windows have one
// memory, both are it, so the same program runs in every variant.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "suite.hpp"

namespace suite {
namespace {

bool has_halves() {
  const char* windows = std::getenv("PERDURE_WINDOWS");
  return windows != nullptr && std::strstr(windows, "mode=twin") != nullptr &&
         std::strstr(windows, "commit=none") == nullptr;
}

class Halves : public WindowTest, public testing::WithParamInterface<Sync> {
 protected:
  // The suite is not linked with the layer: without it there are no halves to ask for.
  void find_halves(MPI_Win window) {
    consistent_ = working_ = window;
    if (!has_halves()) return;
    using Query = int (*)(MPI_Win, MPI_Win*, MPI_Win*);
    const auto query = reinterpret_cast<Query>(dlsym(RTLD_DEFAULT, "perdure_win_halves"));
    ASSERT_NE(query, nullptr);
    ASSERT_EQ(query(window, &consistent_, &working_), 0);
    EXPECT_NE(base_of(consistent_), base_of(working_));
  }
  static std::int64_t* base_of(MPI_Win window) {
    void* value = nullptr;
    int found = 0;
    MPI_Win_get_attr(window, MPI_WIN_BASE, &value, &found);
    return static_cast<std::int64_t*>(value);
  }
  MPI_Win consistent_ = MPI_WIN_NULL;
  MPI_Win working_ = MPI_WIN_NULL;
};
INSTANTIATE_TEST_SUITE_P(Epochs, Halves, testing::Values(Sync::by_fence, Sync::by_lock_all),
                         [](const testing::TestParamInfo<Sync>& drawn) {
                           return name_of(drawn.param);
                         });

constexpr std::size_t cell_count = 512;

void fill_and_put(MPI_Win window, std::int64_t* working, std::int64_t& mine) {
  std::fill(working, working + cell_count, mine);
  barrier();  // nobody puts before its target is filled
  MPI_Put(&mine, 1, MPI_INT64_T, next(), 100, 1, MPI_INT64_T, window);
}

TEST_P(Halves, every_epoch_makes_what_was_written_consistent) {
  std::int64_t* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(cell_count * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  std::fill(base, base + cell_count, 0);
  if (GetParam() == Sync::by_fence) MPI_Win_fence(0, window);
  for (std::int64_t round = 1; round <= 7; ++round) {
    find_halves(window);
    std::int64_t mine = 100 * round + rank();
    if (GetParam() == Sync::by_fence) {
      fill_and_put(window, base_of(working_), mine);
      MPI_Win_fence(0, window);
    } else {
      Epoch epoch(window, MPI_COMM_WORLD, Sync::by_lock_all);
      epoch.begin();
      fill_and_put(window, base_of(working_), mine);
      epoch.end();
    }
    find_halves(window);
    const std::int64_t* written = base_of(consistent_);
    for (std::size_t cell = 0; cell < cell_count; ++cell) {
      EXPECT_EQ(written[cell], cell == 100 ? 100 * round + previous() : mine) << "cell " << cell;
    }
    barrier();
  }
  MPI_Win_free(&window);
}

}  // namespace
}  // namespace suite
