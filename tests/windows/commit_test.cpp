// SPDX-License-Identifier: BSD-3-Clause
//
// Persistent windows: which calls commit, and what a later run gets back, in every mode.
// ctest: RANKS 1 2 4 TIMEOUT 120
#include <cstdio>
#include <fstream>
#include <sstream>

#include "window_pool_fixture.hpp"

namespace perdure_test {
namespace {

constexpr std::size_t cells = 2000;  // of several pages

class WindowMode : public Windows, public testing::WithParamInterface<const char*> {
 protected:
  // Fills the memory that `win` means now, and puts a mark into the right neighbour's.
  void work(MPI_Win win, std::int64_t step) {
    std::int64_t* base = base_of(win);
    for (std::size_t i = 0; i < cells; ++i) base[i] = step * 100 + rank();
    MPI_Win_fence(0, win);
    const std::int64_t mark = step * 1000 + rank();
    MPI_Put(&mark, 1, MPI_INT64_T, right(), 7, 1, MPI_INT64_T, win);
  }
  const std::int64_t* newest(MPI_Win win) {
    if (std::string(GetParam()) != "twin") return base_of(win);
    MPI_Win consistent = MPI_WIN_NULL;
    EXPECT_EQ(perdure_win_halves(win, &consistent, nullptr), PERDURE_OK);
    return base_of(consistent);
  }
};

TEST_P(WindowMode, a_committing_fence_makes_a_version_that_the_next_run_gets_back) {
  MPI_Win win = MPI_WIN_NULL;
  const Keys keys = {{"perdure_name", "u"}, {"perdure_mode", GetParam()}};
  ASSERT_EQ(allocate(keys, cells, &win), MPI_SUCCESS) << perdure_last_error();
  EXPECT_EQ(restored(win), 0U);
  for (std::int64_t step = 1; step <= 3; ++step) {
    work(win, step);
    ASSERT_EQ(MPI_Win_fence(PERDURE_MODE_COMMIT, win), MPI_SUCCESS) << perdure_last_error();
  }
  work(win, 4);  // never committed
  ASSERT_EQ(MPI_Win_fence(0, win), MPI_SUCCESS);
  ASSERT_EQ(MPI_Win_free(&win), MPI_SUCCESS);

  ASSERT_EQ(allocate(keys, cells, &win), MPI_SUCCESS) << perdure_last_error();
  EXPECT_EQ(restored(win), 3U);
  const std::int64_t* contents = newest(win);
  if (std::string(GetParam()) == "flush") {
    EXPECT_EQ(contents[0], 400 + rank());  // no versions: what was written last
  } else {
    EXPECT_EQ(contents[0], 300 + rank());
    EXPECT_EQ(contents[7], 3000 + left());
    EXPECT_EQ(contents[cells - 1], 300 + rank());
  }
  MPI_Win_free(&win);
}

TEST_P(WindowMode, the_rule_commits_every_kth_call) {
  MPI_Win win = MPI_WIN_NULL;
  const Keys keys = {
      {"perdure_name", "u"}, {"perdure_mode", GetParam()}, {"perdure_commit", "fence/3"}};
  ASSERT_EQ(allocate(keys, cells, &win), MPI_SUCCESS) << perdure_last_error();
  for (int i = 0; i < 7; ++i) ASSERT_EQ(MPI_Win_fence(0, win), MPI_SUCCESS);
  perdure_pool* own = nullptr;
  ASSERT_EQ(perdure_win_pool(win, &own), PERDURE_OK);
  perdure_pool_status status{};
  ASSERT_EQ(perdure_status(own, &status), PERDURE_OK);
  EXPECT_EQ(status.version, 2U);
  MPI_Win_free(&win);
}

TEST_P(WindowMode, a_neighbours_accumulate_and_get_see_the_working_contents) {
  MPI_Win win = MPI_WIN_NULL;
  ASSERT_EQ(allocate({{"perdure_name", "u"}, {"perdure_mode", GetParam()}}, cells, &win), 0)
      << perdure_last_error();
  base_of(win)[3] = 40;
  MPI_Win_fence(0, win);
  const std::int64_t two = 2;
  MPI_Accumulate(&two, 1, MPI_INT64_T, right(), 3, 1, MPI_INT64_T, MPI_SUM, win);
  MPI_Win_fence(0, win);
  EXPECT_EQ(base_of(win)[3], 42);
  std::int64_t got = 0;
  MPI_Get(&got, 1, MPI_INT64_T, right(), 3, 1, MPI_INT64_T, win);
  MPI_Win_fence(0, win);
  EXPECT_EQ(got, 42);
  MPI_Win_free(&win);
}

TEST_P(WindowMode, commits_of_passive_epochs_hold_what_every_rank_had_put) {
  MPI_Win win = MPI_WIN_NULL;
  const Keys keys = {{"perdure_name", "u"}, {"perdure_mode", GetParam()}};
  ASSERT_EQ(allocate(keys, cells, &win), MPI_SUCCESS) << perdure_last_error();
  ASSERT_EQ(MPI_Win_lock_all(0, win), MPI_SUCCESS);
  for (std::int64_t step = 1; step <= 5; ++step) {
    put(step * 10 + rank(), right(), 1, win);
    std::uint64_t version = 0;
    ASSERT_EQ(perdure_win_commit(win, &version), PERDURE_OK) << perdure_last_error();
    EXPECT_EQ(version, static_cast<std::uint64_t>(step));
  }
  ASSERT_EQ(MPI_Win_unlock_all(win), MPI_SUCCESS);
  ASSERT_EQ(MPI_Win_free(&win), MPI_SUCCESS);
  ASSERT_EQ(allocate(keys, cells, &win), MPI_SUCCESS) << perdure_last_error();
  EXPECT_EQ(restored(win), 5U);
  EXPECT_EQ(newest(win)[1], 50 + left());
  MPI_Win_free(&win);
}

TEST_P(WindowMode, an_exposure_epoch_commits_when_it_is_waited_for) {
  MPI_Win win = MPI_WIN_NULL;
  const Keys keys = {
      {"perdure_name", "u"}, {"perdure_mode", GetParam()}, {"perdure_commit", "wait"}};
  ASSERT_EQ(allocate(keys, cells, &win), MPI_SUCCESS) << perdure_last_error();
  MPI_Group all{};
  MPI_Group to{};
  MPI_Group from{};
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  const int target = right();
  const int origin = left();
  MPI_Group_incl(all, 1, &target, &to);
  MPI_Group_incl(all, 1, &origin, &from);
  for (std::int64_t step = 1; step <= 4; ++step) {
    MPI_Win_post(from, 0, win);
    MPI_Win_start(to, 0, win);
    const std::int64_t value = step * 10 + rank();
    MPI_Put(&value, 1, MPI_INT64_T, target, 2, 1, MPI_INT64_T, win);
    MPI_Win_complete(win);
    ASSERT_EQ(MPI_Win_wait(win), MPI_SUCCESS) << perdure_last_error();
  }
  for (MPI_Group* group : {&all, &to, &from}) MPI_Group_free(group);
  MPI_Win_free(&win);
  ASSERT_EQ(allocate(keys, cells, &win), MPI_SUCCESS) << perdure_last_error();
  EXPECT_EQ(restored(win), 4U);
  EXPECT_EQ(newest(win)[2], 40 + left());
  MPI_Win_free(&win);
}

TEST_P(WindowMode, the_window_says_what_it_was_made_with) {
  MPI_Win win = MPI_WIN_NULL;
  std::int64_t* base = nullptr;
  ASSERT_EQ(allocate({{"perdure_name", "u"}, {"perdure_mode", GetParam()}}, cells, &win, &base), 0)
      << perdure_last_error();
  EXPECT_EQ(base_of(win), base);
  int flag = 0;
  MPI_Aint* size = nullptr;
  int* unit = nullptr;
  int* flavor = nullptr;
  MPI_Win_get_attr(win, MPI_WIN_SIZE, static_cast<void*>(&size), &flag);
  MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, static_cast<void*>(&unit), &flag);
  MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, static_cast<void*>(&flavor), &flag);
  EXPECT_EQ(*size, static_cast<MPI_Aint>(cells * 8));
  EXPECT_EQ(*unit, 8);
  EXPECT_EQ(*flavor, MPI_WIN_FLAVOR_ALLOCATE);
  MPI_Info info = MPI_INFO_NULL;
  MPI_Win_get_info(win, &info);
  char value[MPI_MAX_INFO_VAL + 1] = "";
  MPI_Info_get(info, "perdure_mode", MPI_MAX_INFO_VAL, value, &flag);
  EXPECT_EQ(std::string(value), GetParam());
  MPI_Info_free(&info);
  MPI_Win_free(&win);
}

INSTANTIATE_TEST_SUITE_P(Modes, WindowMode, testing::Values("copy", "log", "twin", "flush"),
                         [](const auto& mode) { return std::string(mode.param); });

TEST_F(Windows, windows_arrays_and_scalars_of_a_pool_are_one_version) {
  std::uint64_t shape = 10;
  for (int run = 0; run < 2; ++run) {
    MPI_Win a = MPI_WIN_NULL;
    MPI_Win b = MPI_WIN_NULL;
    ASSERT_EQ(allocate({{"perdure_name", "a"}, {"perdure_commit", "fence"}}, 8, &a), 0)
        << perdure_last_error();
    ASSERT_EQ(allocate({{"perdure_name", "b"}, {"perdure_mode", "twin"}}, 4, &b), 0)
        << perdure_last_error();
    perdure_pool* own = nullptr;
    ASSERT_EQ(perdure_win_pool(a, &own), PERDURE_OK);
    std::uint64_t iteration = 0;
    perdure_array* array = nullptr;
    ASSERT_EQ(perdure_scalar(own, "iteration", &iteration, sizeof iteration), 0);
    ASSERT_EQ(perdure_array_open(own, "c", PERDURE_INT64, 1, &shape, PERDURE_COPY, nullptr, &array),
              0)
        << perdure_last_error();
    auto* c = static_cast<std::int64_t*>(perdure_working(array));
    if (run == 1) {
      EXPECT_EQ(restored(a), 2U);
      EXPECT_EQ(iteration, 2U);
      EXPECT_EQ(base_of(a)[0], 20 + rank());
      EXPECT_EQ(c[9], 22 + rank());
      MPI_Win consistent = MPI_WIN_NULL;
      perdure_win_halves(b, &consistent, nullptr);
      EXPECT_EQ(base_of(consistent)[3], 21 + rank());
    }
    for (std::int64_t step = 1; run == 0 && step <= 2; ++step) {
      base_of(a)[0] = step * 10 + rank();
      base_of(b)[3] = step * 10 + 1 + rank();
      c[9] = step * 10 + 2 + rank();
      iteration = static_cast<std::uint64_t>(step);
      ASSERT_EQ(MPI_Win_fence(0, a), MPI_SUCCESS) << perdure_last_error();
    }
    MPI_Win_free(&b);
    MPI_Win_free(&a);
  }
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_F(Windows, a_text_file_goes_back_with_the_windows_of_its_pool) {
  const std::string log = directory_ + "/log" + std::to_string(rank()) + ".txt";
  std::string committed;
  for (int run = 0; run < 3; ++run) {
    const bool in_background = run == 1;
    MPI_Win win = MPI_WIN_NULL;
    const Keys keys = {{"perdure_name", "u"}, {"perdure_async", in_background ? "true" : "false"}};
    ASSERT_EQ(allocate(keys, 8, &win), 0) << perdure_last_error();
    perdure_pool* own = nullptr;
    ASSERT_EQ(perdure_win_pool(win, &own), PERDURE_OK);
    std::FILE* const stream = std::fopen(log.c_str(), "a");
    ASSERT_NE(stream, nullptr);
    ASSERT_EQ(perdure_file(own, log.c_str(), stream), PERDURE_OK) << perdure_last_error();
    EXPECT_EQ(contents_of(log), committed) << "in run " << run;
    for (std::int64_t step = 1; step <= 3; ++step) {
      base_of(win)[0] = 10 * run + step;
      std::fprintf(stream, "step %d of run %d\n", static_cast<int>(step), run);
      ASSERT_EQ(MPI_Win_fence(PERDURE_MODE_COMMIT, win), MPI_SUCCESS) << perdure_last_error();
    }
    ASSERT_EQ(std::fflush(stream), 0);
    committed = contents_of(log);
    std::fputs("which no version has\n", stream);
    ASSERT_EQ(std::fclose(stream), 0);
    ASSERT_EQ(MPI_Win_free(&win), MPI_SUCCESS);
    EXPECT_NE(contents_of(log), committed);
  }
}

TEST_F(Windows, two_ranks_that_name_one_text_file_are_told_and_go_on) {
  const std::string log = directory_ + "/log.txt";
  MPI_Win win = MPI_WIN_NULL;
  ASSERT_EQ(allocate({{"perdure_name", "u"}}, 8, &win), 0) << perdure_last_error();
  perdure_pool* own = nullptr;
  ASSERT_EQ(perdure_win_pool(win, &own), PERDURE_OK);
  std::FILE* const stream = std::fopen(log.c_str(), "a");
  ASSERT_NE(stream, nullptr);
  if (rank() == 0) {
    EXPECT_EQ(perdure_file(own, log.c_str(), stream), PERDURE_OK) << perdure_last_error();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() != 0) {
    EXPECT_EQ(perdure_file(own, log.c_str(), stream), PERDURE_E_BUSY);
    const std::string sentence = perdure_last_error();
    EXPECT_NE(sentence.find(log), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("Each rank has files of its own"), std::string::npos) << sentence;
  }
  base_of(win)[0] = 7;
  ASSERT_EQ(MPI_Win_fence(PERDURE_MODE_COMMIT, win), MPI_SUCCESS) << perdure_last_error();
  std::fclose(stream);
  ASSERT_EQ(MPI_Win_free(&win), MPI_SUCCESS);
  ASSERT_EQ(allocate({{"perdure_name", "u"}}, 8, &win), 0) << perdure_last_error();
  EXPECT_EQ(restored(win), 1U);
  EXPECT_EQ(base_of(win)[0], 7);
  ASSERT_EQ(MPI_Win_free(&win), MPI_SUCCESS);
}

TEST_F(Windows, puts_go_to_the_working_half_and_gets_of_the_consistent_one_see_the_last_version) {
  MPI_Win win = MPI_WIN_NULL;
  ASSERT_EQ(allocate({{"perdure_name", "u"}, {"perdure_mode", "twin"}}, 16, &win), 0)
      << perdure_last_error();
  for (std::int64_t step = 1; step <= 6; ++step) {
    MPI_Win consistent = MPI_WIN_NULL;
    MPI_Win working = MPI_WIN_NULL;
    ASSERT_EQ(perdure_win_halves(win, &consistent, &working), PERDURE_OK);
    std::int64_t before = -1;
    MPI_Win_fence(0, consistent);
    MPI_Get(&before, 1, MPI_INT64_T, right(), 5, 1, MPI_INT64_T, consistent);
    MPI_Win_fence(0, consistent);
    EXPECT_EQ(before, step == 1 ? 0 : (step - 1) * 10 + rank());
    MPI_Win_fence(0, working);
    const std::int64_t value = step * 10 + rank();
    MPI_Put(&value, 1, MPI_INT64_T, right(), 5, 1, MPI_INT64_T, working);
    ASSERT_EQ(MPI_Win_fence(PERDURE_MODE_COMMIT, working), MPI_SUCCESS) << perdure_last_error();
  }
  MPI_Win_free(&win);
}

TEST_F(Windows, an_asynchronous_commit_is_durable_at_the_next_one) {
  const Keys keys = {{"perdure_name", "u"}, {"perdure_async", "true"}, {"perdure_commit", "fence"}};
  MPI_Win win = MPI_WIN_NULL;
  std::int64_t* base = nullptr;
  ASSERT_EQ(allocate(keys, cells, &win, &base), MPI_SUCCESS) << perdure_last_error();
  for (std::int64_t step = 1; step <= 4; ++step) {
    base[0] = step;
    ASSERT_EQ(MPI_Win_fence(0, win), MPI_SUCCESS) << perdure_last_error();
    base[0] = -step;  // the contents were staged: this is of the next version
  }
  ASSERT_EQ(MPI_Win_free(&win), MPI_SUCCESS) << perdure_last_error();  // finishes the last one
  ASSERT_EQ(allocate(keys, cells, &win, &base), MPI_SUCCESS) << perdure_last_error();
  EXPECT_EQ(restored(win), 4U);
  EXPECT_EQ(base[0], 4);
  MPI_Win_free(&win);
}

TEST_F(Windows, created_windows_keep_the_programs_memory_and_its_contents) {
  std::vector<std::int64_t> memory(100, 77);
  MPI_Info info = make_info({{"perdure_name", "mine"}, {"perdure_pool", pool()}});
  MPI_Win win = MPI_WIN_NULL;
  ASSERT_EQ(MPI_Win_create(memory.data(), 800, 8, info, MPI_COMM_WORLD, &win), MPI_SUCCESS)
      << perdure_last_error();
  EXPECT_EQ(memory[5], 77);
  ASSERT_EQ(perdure_win_commit(win, nullptr), PERDURE_OK) << perdure_last_error();
  MPI_Win_free(&win);
  std::vector<std::int64_t> other(100, 1);
  ASSERT_EQ(MPI_Win_create(other.data(), 800, 8, info, MPI_COMM_WORLD, &win), MPI_SUCCESS);
  EXPECT_EQ(other[5], 77);
  MPI_Win_free(&win);
  MPI_Info_free(&info);
}

TEST_F(Windows, attached_regions_come_back_in_the_order_of_attachment) {
  const Keys keys = {{"perdure_name", "heap"}, {"perdure_pool", pool()}};
  MPI_Info info = make_info(keys);
  for (int run = 0; run < 2; ++run) {
    MPI_Win win = MPI_WIN_NULL;
    ASSERT_EQ(MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &win), MPI_SUCCESS)
        << perdure_last_error();
    std::vector<std::int64_t> first(10 + static_cast<std::size_t>(rank()), run == 0 ? 1 : 0);
    std::vector<std::int64_t> gone(5, 2);
    std::vector<std::int64_t> last(20, run == 0 ? 3 : 0);
    ASSERT_EQ(MPI_Win_attach(win, first.data(), static_cast<MPI_Aint>(first.size() * 8)), 0)
        << perdure_last_error();
    if (run == 0) {
      ASSERT_EQ(MPI_Win_attach(win, gone.data(), 40), MPI_SUCCESS);
      ASSERT_EQ(perdure_win_commit(win, nullptr), PERDURE_OK) << perdure_last_error();
      ASSERT_EQ(MPI_Win_detach(win, gone.data()), MPI_SUCCESS) << perdure_last_error();
    }
    ASSERT_EQ(MPI_Win_attach(win, last.data(), 160), MPI_SUCCESS) << perdure_last_error();
    EXPECT_EQ(first.back(), 1);
    EXPECT_EQ(last.back(), 3);
    if (run == 0) {
      ASSERT_EQ(perdure_win_commit(win, nullptr), PERDURE_OK) << perdure_last_error();
    }
    MPI_Win_free(&win);
  }
  MPI_Info_free(&info);
}

}  // namespace
}  // namespace perdure_test

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
