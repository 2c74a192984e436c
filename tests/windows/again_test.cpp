// SPDX-License-Identifier: BSD-3-Clause
//
// Windows of a program that knows nothing of Perdure, made and freed again and again.
// ctest: RANKS 1 2
#include <cstdlib>
#include <filesystem>

#include "window_pool_fixture.hpp"

namespace perdure_test {
namespace {

class Again : public Windows {
 protected:
  void SetUp() override {
    Windows::SetUp();
    say("mode=copy;commit=none");
  }
  void TearDown() override {
    ::unsetenv("PERDURE_WINDOWS");
    ::unsetenv("PERDURE_LOCK_WAIT_MS");
    Windows::TearDown();
  }

  void say(const std::string& rest) {
    ::setenv("PERDURE_WINDOWS", ("pool=" + pool("again") + ";" + rest).c_str(), 1);
  }
  static MPI_Win make(MPI_Comm comm = MPI_COMM_WORLD) {
    MPI_Win win = MPI_WIN_NULL;
    std::int64_t* base = nullptr;
    EXPECT_EQ(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, static_cast<void*>(&base), &win),
              MPI_SUCCESS)
        << perdure_last_error();
    return win;
  }
  static MPI_Win make_dynamic() {
    MPI_Win win = MPI_WIN_NULL;
    EXPECT_EQ(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_SUCCESS)
        << perdure_last_error();
    return win;
  }
  // This rank's, in the newest version.
  static std::size_t arrays_held() {
    MPI_Win win = make();
    perdure_pool* held = nullptr;
    perdure_pool_status status{};
    std::size_t arrays = 0;
    EXPECT_EQ(perdure_win_pool(win, &held), PERDURE_OK);
    EXPECT_EQ(perdure_status(held, &status), PERDURE_OK);
    EXPECT_EQ(perdure_arrays(held, status.version, nullptr, 0, &arrays), PERDURE_OK);
    MPI_Win_free(&win);
    return arrays;
  }
  // Descriptors of files in the pool of all ranks.
  std::size_t open_files() const {
    const std::string place = std::filesystem::weakly_canonical(pool("again")).string() + "/world/";
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const std::string file = std::filesystem::read_symlink(entry.path(), gone).string();
      if (file.starts_with(place)) ++count;
    }
    return count;
  }
};

TEST_F(Again, one_pool_serves_all_windows_that_are_made) {
  MPI_Win win = make();
  const std::size_t open = open_files();
  EXPECT_GT(open, 0U);
  MPI_Win_free(&win);
  EXPECT_EQ(open_files(), open);
  for (int i = 0; i < 20; ++i) {
    win = make();
    MPI_Win_free(&win);
  }
  EXPECT_EQ(open_files(), open);
}

TEST_F(Again, a_window_that_was_freed_leaves_nothing) {
  MPI_Win win = make();
  for (std::int64_t step = 1; step <= 3; ++step) {
    EXPECT_EQ(base_of(win)[0], 0);
    base_of(win)[0] = step;
    ASSERT_EQ(perdure_win_commit(win, nullptr), PERDURE_OK) << perdure_last_error();
    MPI_Win_free(&win);
    win = make();
  }
  EXPECT_EQ(base_of(win)[0], 0);
  perdure_pool* held = nullptr;
  std::size_t arrays = 0;
  ASSERT_EQ(perdure_win_pool(win, &held), PERDURE_OK);
  EXPECT_EQ(perdure_arrays(held, 0, nullptr, 0, &arrays), PERDURE_OK);
  EXPECT_EQ(arrays, 1U);
  // A restart would find nothing either: the newest version has forgotten them.
  perdure_version_info newest{};
  std::size_t versions = 0;
  ASSERT_EQ(perdure_versions(held, &newest, 1, &versions), PERDURE_OK);
  ASSERT_GT(versions, 0U);
  EXPECT_EQ(perdure_arrays(held, newest.version, nullptr, 0, &arrays), PERDURE_OK);
  EXPECT_EQ(arrays, 0U);
  MPI_Win_free(&win);
}

TEST_F(Again, a_window_that_names_the_pool_opens_it_anew) {
  MPI_Win win = make();
  MPI_Win_free(&win);
  const Keys keys = {{"perdure_name", "own"},
                     {"perdure_pool", pool("again") + "/world"},
                     {"perdure_restore", "discard"}};
  MPI_Win own = MPI_WIN_NULL;
  ASSERT_EQ(allocate(keys, 4, &own), MPI_SUCCESS) << perdure_last_error();
  MPI_Win beside = make();
  MPI_Win_free(&own);
  MPI_Win_free(&beside);
  EXPECT_EQ(open_files(), 0U);
}

TEST_F(Again, a_program_opens_the_pool_when_no_window_has_it) {
  MPI_Win win = make();
  base_of(win)[0] = 7;
  ASSERT_EQ(perdure_win_commit(win, nullptr), PERDURE_OK) << perdure_last_error();
  const std::string place = pool("again") + "/world";
  perdure_pool* own = nullptr;
  EXPECT_EQ(perdure_open_mpi(MPI_COMM_WORLD, place.c_str(), nullptr, &own), PERDURE_E_BUSY);
  EXPECT_NE(std::string(perdure_last_error()).find("close it there first"), std::string::npos)
      << perdure_last_error();
  MPI_Win_free(&win);
  for (int i = 0; i < 2; ++i) {
    const int opened = i == 0 || ranks() > 1
                           ? perdure_open_mpi(MPI_COMM_WORLD, place.c_str(), nullptr, &own)
                           : perdure_open(place.c_str(), nullptr, &own);
    ASSERT_EQ(opened, PERDURE_OK) << perdure_last_error();
    std::uint64_t version = 0;
    EXPECT_EQ(perdure_restart(own, &version), PERDURE_OK) << perdure_last_error();
    EXPECT_GT(version, 0U);
    EXPECT_EQ(perdure_close(own), PERDURE_OK);
    win = make();  // it is parked anew
    MPI_Win_free(&win);
  }
}

// Where the ranks of the pool are others, it stays, and nobody waits.
TEST_F(Again, a_part_of_the_ranks_does_not_close_the_pool_of_all) {
  if (ranks() == 1) return;
  MPI_Win win = make();
  MPI_Win_free(&win);
  const std::string place = pool("again") + "/world";
  perdure_pool* own = nullptr;
  ::setenv("PERDURE_LOCK_WAIT_MS", "0", 1);
  if (rank() == 0) {
    EXPECT_NE(perdure_open_mpi(MPI_COMM_SELF, place.c_str(), nullptr, &own), PERDURE_OK);
  }
  win = make();
  EXPECT_NE(win, MPI_WIN_NULL);
  MPI_Win_free(&win);
}

TEST_F(Again, twin_windows_have_halves_where_they_were_asked_for) {
  for (const bool asked : {false, true}) {
    say(asked ? "mode=twin;commit=none;halves=asked" : "mode=twin;commit=none");
    MPI_Win win = make();
    MPI_Win half = MPI_WIN_NULL;
    const int code = perdure_win_halves(win, &half, nullptr);
    EXPECT_EQ(code, asked ? PERDURE_OK : PERDURE_E_INVALID);
    if (!asked) {
      EXPECT_NE(std::string(perdure_last_error()).find("halves=asked"), std::string::npos);
    }
    MPI_Win_free(&win);
  }
}

// Of a dynamic window each rank has regions of its own.
TEST_F(Again, regions_of_one_rank_are_no_matter_of_the_others) {
  for (int i = 0; i < 2; ++i) {
    std::int64_t region[8] = {7};
    MPI_Win win = make_dynamic();
    if (rank() == 0) {
      EXPECT_EQ(MPI_Win_attach(win, region, sizeof region), MPI_SUCCESS);
    }
    EXPECT_EQ(perdure_win_commit(win, nullptr), PERDURE_OK) << perdure_last_error();
    if (rank() == 0 && i == 1) MPI_Win_detach(win, region);
    MPI_Win_free(&win);
    win = make();
    MPI_Win_free(&win);
    EXPECT_EQ(arrays_held(), 0U);
  }
}

TEST_F(Again, a_pool_without_windows_is_opened_anew_with_other_options) {
  MPI_Win win = make();
  MPI_Win_free(&win);
  say("mode=copy;commit=none;threads=2");
  win = make();
  EXPECT_NE(win, MPI_WIN_NULL);
  MPI_Win_free(&win);
}

TEST_F(Again, a_pool_without_windows_is_not_closed_by_other_ranks) {
  MPI_Win win = make();
  MPI_Win_free(&win);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (ranks() > 1 && rank() == 0) {
    const std::string place = pool("again") + "/world";
    MPI_Info info = make_info({{"perdure_name", "own"}, {"perdure_pool", place}});
    std::int64_t* base = nullptr;
    EXPECT_NE(MPI_Win_allocate(64, 8, info, MPI_COMM_SELF, static_cast<void*>(&base), &win),
              MPI_SUCCESS);
    EXPECT_NE(std::string(perdure_last_error()).find("communicator with other ranks"),
              std::string::npos)
        << perdure_last_error();
    MPI_Info_free(&info);
  }
  win = make();
  EXPECT_NE(win, MPI_WIN_NULL);
  MPI_Win_free(&win);
}

TEST_F(Again, a_program_may_go_to_another_directory) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_);
  ::setenv("PERDURE_WINDOWS", "pool=near;mode=copy;commit=none", 1);
  MPI_Win win = make();
  MPI_Win_free(&win);
  std::filesystem::current_path(before);
  MPI_Comm others = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank(), 0, &others);
  MPI_Comm_set_errhandler(others, MPI_ERRORS_RETURN);
  win = make(others);
  EXPECT_NE(win, MPI_WIN_NULL);
  MPI_Win_free(&win);
  MPI_Comm_free(&others);
}

}  // namespace
}  // namespace perdure_test

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
