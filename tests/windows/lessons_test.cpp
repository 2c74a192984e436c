// SPDX-License-Identifier: BSD-3-Clause
//
// What went wrong in an earlier extension of MPI by persistent windows, and must not here. One test
// for each known defect that a test of windows can show; docs/windows.md names the others.
// ctest: RANKS 1 2 3 TIMEOUT 120
#include <dirent.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "window_pool_fixture.hpp"

namespace perdure_test {
namespace {

std::size_t lines_of(const char* file) {
  std::ifstream in(file);
  std::string line;
  std::size_t count = 0;
  while (std::getline(in, line)) ++count;
  return count;
}

std::size_t threads() {
  std::size_t count = 0;
  DIR* tasks = ::opendir("/proc/self/task");
  while (tasks != nullptr && ::readdir(tasks) != nullptr) ++count;
  if (tasks != nullptr) ::closedir(tasks);
  return count;
}

class Lessons : public Windows {
 protected:
  // A window of one number in pool(), with the contents and version it was restored to.
  MPI_Win open(Keys keys, std::size_t cells = 4) {
    keys.try_emplace("perdure_name", "u");
    MPI_Win win = MPI_WIN_NULL;
    EXPECT_EQ(allocate(std::move(keys), cells, &win), MPI_SUCCESS) << perdure_last_error();
    return win;
  }
  static void commit(MPI_Win win, std::int64_t value) {
    base_of(win)[0] = value;
    ASSERT_EQ(perdure_win_commit(win, nullptr), PERDURE_OK) << perdure_last_error();
  }
};

// Defect 2: a fast rank's put of the next epoch landed in a version that was still being saved.
TEST_F(Lessons, a_put_of_the_next_epoch_never_reaches_the_version_being_saved) {
  const std::size_t cells = std::size_t{1} << (rank() == 0 ? 21 : 4);  // rank 0 is slow: 16 MiB
  for (const char* mode : {"copy", "log", "twin"}) {
    const Keys keys = {{"perdure_keep", "3"},
                       {"perdure_mode", mode},
                       {"perdure_pool", pool(mode)},
                       {"perdure_commit", "fence"}};
    MPI_Win win = open(keys, cells);
    const auto last = static_cast<MPI_Aint>((std::size_t{1} << 21) - 1);
    for (std::int64_t step = 1; step <= 4; ++step) {
      if (rank() != 0) {
        MPI_Put(&step, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
        MPI_Put(&step, 1, MPI_INT64_T, 0, last, 1, MPI_INT64_T, win);
      } else if (ranks() == 1) {
        base_of(win)[0] = base_of(win)[last] = step;
      }
      ASSERT_EQ(MPI_Win_fence(0, win), MPI_SUCCESS) << perdure_last_error();
    }
    MPI_Win_free(&win);
    win = open(keys, cells);
    EXPECT_EQ(restored(win), 4U);
    MPI_Win seen = win;
    if (std::string(mode) == "twin") perdure_win_halves(win, &seen, nullptr);
    if (rank() == 0) {
      EXPECT_EQ(base_of(seen)[0], 4) << mode;
      EXPECT_EQ(base_of(seen)[last], 4) << mode;
    }
    MPI_Win_free(&win);
  }
}

// Defect 4: a full device lost a version silently. All space is taken when the window is made.
TEST_F(Lessons, a_device_without_room_is_an_error_when_the_window_is_made) {
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1 << 20;
  ::setrlimit(RLIMIT_FSIZE, &small);
  // Memory of our own, as the limit would be in the way of the MPI library's too.
  std::vector<std::int64_t> memory(std::size_t{1} << 20);
  MPI_Info info = make_info({{"perdure_name", "u"}, {"perdure_pool", pool()}});
  MPI_Win win = MPI_WIN_NULL;
  const int error = MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * 8), 8, info,
                                   MPI_COMM_WORLD, &win);
  MPI_Info_free(&info);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_NE(error, MPI_SUCCESS);
  const std::string sentence = perdure_last_error();  // an MPI may keep 256 bytes of it only
  EXPECT_NE(sentence.find("allocate"), std::string::npos) << sentence;
  win = open({});  // and the pool is as good as before
  EXPECT_EQ(restored(win), 0U);
  MPI_Win_free(&win);
}

// Defect 5: after going back to an older version, "newest" found the abandoned one.
TEST_F(Lessons, the_newest_version_is_never_one_that_was_abandoned) {
  const Keys keys = {{"perdure_keep", "5"}};
  MPI_Win win = open(keys);
  for (std::int64_t v = 1; v <= 5; ++v) commit(win, v);
  MPI_Win_free(&win);

  Keys back = keys;
  back["perdure_restore"] = "2";
  win = open(back);
  EXPECT_EQ(restored(win), 2U);
  EXPECT_EQ(base_of(win)[0], 2);
  MPI_Win_free(&win);

  win = open(keys);  // gone back, and nothing committed since
  EXPECT_EQ(restored(win), 2U);
  commit(win, 60);
  MPI_Win_free(&win);

  win = open(keys);
  EXPECT_EQ(restored(win), 6U);
  EXPECT_EQ(base_of(win)[0], 60);
  perdure_pool* own = nullptr;
  perdure_win_pool(win, &own);
  perdure_version_info list[8];
  std::size_t count = 0;
  ASSERT_EQ(perdure_versions(own, list, 8, &count), PERDURE_OK) << perdure_last_error();
  ASSERT_GE(count, 2U);
  EXPECT_EQ(list[0].version, 6U);
  EXPECT_EQ(list[0].parent, 2U);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(list[i].abandoned != 0, list[i].version >= 3 && list[i].version <= 5);
  }
  MPI_Win_free(&win);
}

// Defect 7: a restart that found no version read out of bounds.
TEST_F(Lessons, a_restart_without_any_version_starts_at_zero) {
  MPI_Win win = open({});
  MPI_Win_free(&win);
  win = open({});
  EXPECT_EQ(restored(win), 0U);
  EXPECT_EQ(base_of(win)[0], 0);
  MPI_Win_free(&win);
}

// Defect 8: a rank without the wanted version left while the others hung.
TEST_F(Lessons, a_version_that_is_not_there_is_the_same_error_on_every_rank) {
  MPI_Win win = open({{"perdure_keep", "2"}});
  commit(win, 1);
  MPI_Win_free(&win);
  const int error = allocate({{"perdure_name", "u"}, {"perdure_restore", "7"}}, 4, &win);
  ASSERT_NE(error, MPI_SUCCESS);
  EXPECT_NE(text_of(error).find("7"), std::string::npos) << text_of(error);
  win = open({});
  EXPECT_EQ(restored(win), 1U);
  MPI_Win_free(&win);
}

// Defect 9: a rerun with the first run's options deleted all versions before it had made one.
TEST_F(Lessons, a_rerun_with_the_same_keys_deletes_nothing_and_discard_does) {
  MPI_Win win = open({});
  commit(win, 11);
  MPI_Win_free(&win);
  win = open({});
  EXPECT_EQ(base_of(win)[0], 11);
  MPI_Win_free(&win);
  win = open({{"perdure_restore", "discard"}});
  EXPECT_EQ(restored(win), 0U);
  EXPECT_EQ(base_of(win)[0], 0);
  MPI_Win_free(&win);
}

// Defect 10: names were file names, so that "A-0" was version 0 of "A".
TEST_F(Lessons, any_text_is_a_window_name_and_no_two_of_them_collide) {
  const std::vector<std::string> names = {"A",
                                          "A-0",
                                          ".A",
                                          ".A-0",
                                          "windows",
                                          ".windows",
                                          "a/b",
                                          "../../etc/passwd",
                                          "job",
                                          "rank-00000",
                                          "name with spaces",
                                          "\xC3\xBC\xE2\x82\xAC\xF0\x9F\x8C\x80",
                                          "line\nbreak",
                                          std::string(250, 'x')};
  for (int run = 0; run < 2; ++run) {
    std::vector<MPI_Win> wins;
    for (std::size_t i = 0; i < names.size(); ++i) {
      wins.push_back(open({{"perdure_name", names[i]}}));
      if (run == 1) {
        EXPECT_EQ(base_of(wins.back())[0], static_cast<std::int64_t>(i)) << names[i];
      }
      base_of(wins.back())[0] = static_cast<std::int64_t>(i);
    }
    ASSERT_EQ(perdure_win_commit(wins.front(), nullptr), PERDURE_OK) << perdure_last_error();
    for (MPI_Win& win : wins) MPI_Win_free(&win);
  }
  MPI_Win win = MPI_WIN_NULL;
  EXPECT_NE(allocate({{"perdure_name", "bad \xFF utf-8"}}, 4, &win), MPI_SUCCESS);
}

// Defect 11: another number of ranks, another size or layout went unnoticed.
TEST_F(Lessons, another_size_layout_mode_or_rank_count_is_an_error_that_says_so) {
  MPI_Win win = open({});
  commit(win, 5);
  MPI_Win_free(&win);
  EXPECT_NE(allocate({{"perdure_name", "u"}}, 5, &win), MPI_SUCCESS);
  EXPECT_NE(allocate({{"perdure_name", "u"}, {"perdure_mode", "log"}}, 4, &win), MPI_SUCCESS);
  MPI_Info info = make_info({{"perdure_name", "u"}, {"perdure_pool", pool()}});
  void* base = nullptr;
  const int layout = MPI_Win_allocate(32, 4, info, MPI_COMM_WORLD, static_cast<void*>(&base), &win);
  ASSERT_NE(layout, MPI_SUCCESS);
  EXPECT_NE(text_of(layout).find("[8, 4]"), std::string::npos) << text_of(layout);
  if (ranks() > 1) {
    MPI_Comm fewer = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank() == 0 ? 0 : 1, rank(), &fewer);
    MPI_Comm_set_errhandler(fewer, MPI_ERRORS_RETURN);
    if (rank() != 0 || ranks() > 1) {
      const int error = MPI_Win_allocate(32, 8, info, fewer, static_cast<void*>(&base), &win);
      EXPECT_NE(error, MPI_SUCCESS);
    }
    MPI_Comm_free(&fewer);
  }
  MPI_Info_free(&info);
  win = open({});  // nothing was lost by all this
  EXPECT_EQ(base_of(win)[0], 5);
  MPI_Win_free(&win);
}

// Defect 14: a thread of the library kept a core busy for the whole run.
TEST_F(Lessons, a_synchronous_window_starts_no_thread) {
  const std::size_t before = threads();
  MPI_Win win = open({{"perdure_commit", "fence"}});
  MPI_Win_fence(0, win);
  EXPECT_EQ(threads(), before);
  MPI_Win_free(&win);
}

// Defect 16: mappings and memory leaked.
TEST_F(Lessons, windows_that_come_and_go_leave_no_mapping_behind) {
  std::size_t first = 0;
  for (int i = 0; i < 12; ++i) {
    MPI_Win copy = open({{"perdure_name", "c"}});
    MPI_Win twin = open({{"perdure_name", "t"}, {"perdure_mode", "twin"}});
    MPI_Win_fence(0, copy);
    MPI_Win_free(&twin);
    MPI_Win_free(&copy);
    if (i == 3) first = lines_of("/proc/self/maps");
  }
  EXPECT_LE(lines_of("/proc/self/maps"), first + 2);
}

TEST_F(Lessons, what_a_key_says_wrongly_is_raised_through_the_communicators_handler) {
  const std::vector<Keys> wrong = {{{"perdure_name", "u"}, {"perdure_mode", "quick"}},
                                   {{"perdure_name", "u"}, {"perdure_version", "3"}},
                                   {{"perdure_mode", "copy"}},
                                   {{"perdure_name", "u"}, {"perdure_async", "yes"}},
                                   {{"perdure_name", "u"}, {"perdure_commit", "fence/0"}}};
  for (const Keys& keys : wrong) {
    MPI_Win win = MPI_WIN_NULL;
    const int error = allocate(keys, 4, &win);
    ASSERT_NE(error, MPI_SUCCESS);
    EXPECT_NE(text_of(error).find("perdure_"), std::string::npos) << text_of(error);
  }
  std::vector<std::int64_t> memory(4);
  MPI_Info info =
      make_info({{"perdure_name", "u"}, {"perdure_mode", "twin"}, {"perdure_pool", pool()}});
  MPI_Win win = MPI_WIN_NULL;
  const int error = MPI_Win_create(memory.data(), 32, 8, info, MPI_COMM_WORLD, &win);
  EXPECT_NE(text_of(error).find("MPI_Win_allocate"), std::string::npos) << text_of(error);
  MPI_Info_free(&info);
}

// Whether MPI makes them or the library does.
TEST_F(Lessons, a_commit_with_operations_under_way_on_another_window_is_refused) {
  MPI_Win a = open({{"perdure_name", "a"}});
  for (const char* mode : {"copy", "log", "twin", "flush"}) {
    SCOPED_TRACE(mode);
    MPI_Win b = open({{"perdure_name", mode}, {"perdure_mode", mode}});
    MPI_Win_fence(0, a);
    MPI_Win_fence(0, b);
    const std::int64_t value = 1;
    MPI_Put(&value, 1, MPI_INT64_T, right(), 0, 1, MPI_INT64_T, b);
    EXPECT_NE(MPI_Win_fence(PERDURE_MODE_COMMIT, a), MPI_SUCCESS);
    MPI_Win_fence(0, b);
    EXPECT_EQ(MPI_Win_fence(PERDURE_MODE_COMMIT, a), MPI_SUCCESS) << perdure_last_error();
    MPI_Win_free(&b);
  }
  MPI_Win_free(&a);
}

TEST_F(Lessons, a_pool_that_is_open_takes_no_window_of_other_ranks) {
  if (ranks() == 1) GTEST_SKIP() << "needs two ranks";
  MPI_Win win = open({});
  MPI_Comm others = MPI_COMM_NULL;  // the same ranks in another order
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank(), &others);
  MPI_Comm_set_errhandler(others, MPI_ERRORS_RETURN);
  MPI_Info info = make_info({{"perdure_name", "v"}, {"perdure_pool", pool()}});
  void* base = nullptr;
  MPI_Win second = MPI_WIN_NULL;
  const int error = MPI_Win_allocate(32, 8, info, others, static_cast<void*>(&base), &second);
  ASSERT_NE(error, MPI_SUCCESS);
  EXPECT_NE(text_of(error).find("other ranks"), std::string::npos) << text_of(error);
  MPI_Info_free(&info);
  MPI_Comm_free(&others);
  commit(win, 5);
  MPI_Win_free(&win);
}

TEST_F(Lessons, a_window_that_is_freed_to_be_deleted_is_not_there_any_more) {
  for (const char* at_free : {"keep", "delete"}) {
    MPI_Win other = open({{"perdure_name", "other"}});
    MPI_Win win = open({{"perdure_free", at_free}});
    commit(win, 5);
    MPI_Win_free(&win);
    MPI_Win_free(&other);
    win = open({});
    EXPECT_EQ(base_of(win)[0], at_free == std::string("keep") ? 5 : 0);
    MPI_Win_free(&win);
  }
}

TEST_F(Lessons, an_assertion_that_commits_on_an_ordinary_window_is_an_error) {
  MPI_Win win = MPI_WIN_NULL;
  void* base = nullptr;
  MPI_Win_allocate(32, 8, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  EXPECT_NE(MPI_Win_fence(PERDURE_MODE_COMMIT, win), MPI_SUCCESS);
  MPI_Win_free(&win);
}

TEST_F(Lessons, a_window_whose_memory_is_empty_on_some_ranks_is_persistent_too) {
  for (const char* mode : {"copy", "log", "twin", "flush"}) {
    const Keys keys = {{"perdure_mode", mode}, {"perdure_pool", pool(mode)}};
    for (int run = 0; run < 2; ++run) {
      MPI_Win win = open(keys, rank() == 0 ? 0 : 8);
      EXPECT_EQ(restored(win), run == 0 ? 0U : 1U);
      MPI_Win_fence(0, win);
      const std::int64_t value = 9;
      if (rank() == 0 && ranks() > 1) {
        MPI_Put(&value, 1, MPI_INT64_T, ranks() - 1, 7, 1, MPI_INT64_T, win);
      }
      ASSERT_EQ(MPI_Win_fence(run == 0 ? PERDURE_MODE_COMMIT : 0, win), MPI_SUCCESS)
          << perdure_last_error();
      MPI_Win_free(&win);
    }
  }
}

}  // namespace
}  // namespace perdure_test

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
