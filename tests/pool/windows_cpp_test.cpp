// SPDX-License-Identifier: BSD-3-Clause
//
// windows.hpp: persistent windows in C++. Run at 1 and 2 ranks; every rank runs every test.
// ctest: RANKS 1 2
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "mpi_test.hpp"
#include "perdure/windows.hpp"

namespace {

using perdure::Mode;
using perdure::Window;
using perdure::WindowOptions;

static_assert(!std::is_copy_constructible_v<Window<int>>);
static_assert(std::is_nothrow_move_constructible_v<Window<int>>);
static_assert(std::is_nothrow_move_assignable_v<Window<int>>);

class CppWindows : public perdure_test::DirectoryOfRanks, public testing::WithParamInterface<Mode> {
 protected:
  WindowOptions options(const std::string& name, Mode mode) const {
    return {.name = name, .pool = directory_ + "/pool", .mode = mode};
  }

  int right_ = perdure_test::right();
  int left_ = perdure_test::left();
};
INSTANTIATE_TEST_SUITE_P(Modes, CppWindows, testing::Values(Mode::copy, Mode::log, Mode::twin),
                         [](const testing::TestParamInfo<Mode>& tested) -> std::string {
                           return tested.param == Mode::copy  ? "copy"
                                  : tested.param == Mode::log ? "log"
                                                              : "twin";
                         });

TEST_P(CppWindows, what_neighbours_put_is_part_of_the_version) {
  for (std::int64_t run = 0; run < 3; ++run) {
    Window<std::int64_t> window(MPI_COMM_WORLD, 100, options("w", GetParam()));
    EXPECT_EQ(window.size(), 100U);
    EXPECT_EQ(window.restart(), static_cast<std::uint64_t>(run));
    EXPECT_EQ(window.consistent()[99], run == 0 ? 0 : 1000 * run + left_);
    std::int64_t step = 0;
    perdure::Pool pool = window.pool();
    pool.scalar("step", step);
    EXPECT_EQ(step, run);
    const MPI_Win into = GetParam() == Mode::twin ? window.working_half() : window.handle();
    const std::int64_t value = 1000 * ++step + rank_;
    std::ranges::fill(window.memory(), 1);
    MPI_Win_fence(0, into);
    MPI_Put(&value, 1, MPI_INT64_T, right_, 99, 1, MPI_INT64_T, into);
    MPI_Win_fence(0, into);
    EXPECT_EQ(window.commit(), static_cast<std::uint64_t>(step));
    EXPECT_EQ(window.consistent()[99], 1000 * step + left_);
    EXPECT_EQ(window.consistent()[98], 1);
    if (run == 1) window.free();  // before the pool that it lent
  }
}

using CppWindowsOnce = CppWindows;
INSTANTIATE_TEST_SUITE_P(Once, CppWindowsOnce, testing::Values(Mode::copy));

TEST_P(CppWindowsOnce, windows_on_own_memory_and_every_option) {
  std::vector<double> memory(50, 7.0);
  for (std::uint64_t run = 0; run < 2; ++run) {
    WindowOptions with = options("own", Mode::log);
    with.commit = "fence/2";
    with.keep = 3;
    with.checksums = true;
    with.copy_threads = 2;
    with.delay = perdure::Delay::virtual_clock;
    with.emulate = "paper-nvm";
    with.job = "windows";
    with.allow_older = true;
    with.levels = "redundancy=off";
    with.info = {{"no_locks", "true"}};
    if (run == 1) with.restore = 1;
    Window<double> window(MPI_COMM_WORLD, memory, with);
    EXPECT_EQ(window.memory().data(), memory.data());
    EXPECT_EQ(window.restart(), run);
    EXPECT_EQ(memory[3], run == 0 ? 7.0 : 8.0);
    memory[3] = 8.0 + static_cast<double>(run);
    for (int i = 0; i < 4; ++i) MPI_Win_fence(0, window.handle());
    EXPECT_EQ(window.pool().status().version, run == 0 ? 2U : 4U);
    EXPECT_EQ(window.pool().versions().size(), run == 0 ? 2U : 3U);
  }
  WindowOptions anew = options("own", Mode::log);
  anew.discard = true;
  anew.job = "windows";
  anew.async = true;
  anew.delete_at_free = true;
  Window<double> window(MPI_COMM_WORLD, memory, anew);
  EXPECT_EQ(window.restart(), 0U);
}

TEST_P(CppWindowsOnce, what_mpi_refuses_throws_and_leaves_the_handlers_alone) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  WindowOptions wrong = options("w", Mode::twin);
  std::vector<int> memory(10);
  try {
    Window<int> window(comm, memory, wrong);
    FAIL() << "mode twin on the program's memory";
  } catch (const perdure::MpiError& error) {
    EXPECT_NE(std::string(error.what()).find("MPI_Win_allocate"), std::string::npos)
        << error.what();
    EXPECT_NE(error.code(), MPI_SUCCESS);
  }
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(comm, &handler);
  EXPECT_EQ(handler, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
  wrong.mode = Mode::copy;
  wrong.commit = "somtimes";
  EXPECT_THROW(Window<int>(MPI_COMM_WORLD, memory, wrong), perdure::MpiError);
  Window<int> plain(MPI_COMM_WORLD, memory, options("w", Mode::copy));
  EXPECT_THROW((void)plain.working_half(), perdure::Error);
}

TEST_P(CppWindowsOnce, a_moved_window_is_freed_once_and_by_its_last_owner) {
  Window<int> first(MPI_COMM_WORLD, 10, options("w", Mode::copy));
  Window<int> second(std::move(first));
  EXPECT_EQ(first.handle(), MPI_WIN_NULL);  // NOLINT(bugprone-use-after-move)
  second.memory()[0] = 5;
  EXPECT_EQ(second.commit(), 1U);
  second.free();
  second.free();  // again: nothing to do
  EXPECT_EQ(Window<int>(MPI_COMM_WORLD, 10, options("w", Mode::copy)).memory()[0], 5);
}

}  // namespace

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
