// SPDX-License-Identifier: BSD-3-Clause
//
// Windows of a program that knows nothing of Perdure, made and freed again and again.
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
    Windows::TearDown();
  }

  void say(const std::string& rest) {
    ::setenv("PERDURE_WINDOWS", ("pool=" + pool("again") + ";" + rest).c_str(), 1);
  }
  static MPI_Win make() {
    MPI_Win win = MPI_WIN_NULL;
    std::int64_t* base = nullptr;
    EXPECT_EQ(
        MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &win),
        MPI_SUCCESS)
        << perdure_last_error();
    return win;
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

}  // namespace
}  // namespace perdure_test

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
