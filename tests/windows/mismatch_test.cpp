// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Win_free on one rank where others make another collective call of the window's pool: an error
// on all ranks that names both calls, and nothing freed, committed or lost by it. (Calls of the
// pool among themselves: tests/pool/mpi_mismatch_test.cpp.) And ranks that ask for different
// windows in one call.
// Run at 2 and 4 ranks; every rank runs every test.
// ctest: RANKS 2 4 TIMEOUT 120 LABELS truth
#include <functional>

#include "window_pool_fixture.hpp"

namespace perdure_test {
namespace {

constexpr std::size_t cells = 1000;
constexpr std::uint64_t committed = 3;
// A sentence has 47 bytes of a call, which end in the midst of a letter of two.
constexpr const char* name_of_b = "b of my longer näääääääääme";
constexpr const char* freeing_b = "MPI_Win_free of window 'b of my longer näää (";

struct Call {
  std::string name;
  std::string named;  // in the sentence
  std::function<int(MPI_Win, perdure_pool*)> make;
  bool begins = false;  // perdure_commit_begin(), which is local, comes before it
};

const std::vector<Call>& calls() {
  static const std::vector<Call> all = {
      {"perdure_win_commit", "perdure_win_commit, or an unlock that commits",
       [](MPI_Win win, perdure_pool*) { return perdure_win_commit(win, nullptr); }},
      {"perdure_commit", "perdure_commit of version 4",
       [](MPI_Win, perdure_pool* pool) { return perdure_commit(pool, nullptr); }},
      {"perdure_commit_wait", "perdure_commit_wait of version 4, which an earlier call began",
       [](MPI_Win, perdure_pool* pool) { return perdure_commit_wait(pool, nullptr); }, true},
      {"perdure_commit_begin", "perdure_commit_begin of version 4, which an earlier call began",
       [](MPI_Win, perdure_pool* pool) { return perdure_commit_begin(pool); }, true},
      {"perdure_restore", "perdure_restore to version 2",
       [](MPI_Win, perdure_pool* pool) { return perdure_restore(pool, 2); }},
      {"perdure_delete_version", "perdure_delete_version of version 2",
       [](MPI_Win, perdure_pool* pool) { return perdure_delete_version(pool, 2); }},
      {"perdure_levels_wait", "perdure_levels_wait",
       [](MPI_Win, perdure_pool* pool) { return perdure_levels_wait(pool, nullptr); }},
  };
  return all;
}

class FreeMeets : public Windows, public testing::WithParamInterface<const char*> {
 protected:
  Keys keys(const std::string& name) const {
    return {{"perdure_name", name}, {"perdure_mode", GetParam()}, {"perdure_keep", "4"}};
  }
  void fill(std::int64_t value) {
    std::int64_t* base = base_of(a_);
    for (std::size_t i = 0; i < cells; ++i) base[i] = value * 10 + rank();
    MPI_Win_fence(0, a_);
  }
  void open() {
    ASSERT_EQ(allocate(keys("a"), cells, &a_), MPI_SUCCESS) << perdure_last_error();
    ASSERT_EQ(allocate(keys(name_of_b), cells, &b_), MPI_SUCCESS) << perdure_last_error();
    ASSERT_EQ(perdure_win_pool(a_, &pool_), PERDURE_OK);
  }
  void begin() {
    open();
    std::uint64_t version = 0;
    for (std::uint64_t v = 1; v <= committed; ++v) {
      fill(static_cast<std::int64_t>(v));
      ASSERT_EQ(perdure_win_commit(a_, &version), PERDURE_OK) << perdure_last_error();
      ASSERT_EQ(version, v);
    }
  }
  void expect_sentence(const std::string& one, const std::string& other) {
    const std::string said = perdure_last_error();
    for (const std::string& part :
         {std::string("collective calls do not match"), one, other, std::string("rank 0 is in ")}) {
      EXPECT_NE(said.find(part), std::string::npos) << part << " is not in: " << said;
    }
  }
  int free_one(MPI_Win* win) {
    const MPI_Win before = *win;
    const int code = MPI_Win_free(win);
    EXPECT_NE(code, MPI_SUCCESS);
    EXPECT_EQ(*win, before);  // it is still a window
    return code;
  }
  // All may go on as if the calls had not been made, and the next run finds what was committed.
  void expect_all_goes_on() {
    std::uint64_t version = 0;
    fill(committed + 1);
    ASSERT_EQ(perdure_win_commit(b_, &version), PERDURE_OK) << perdure_last_error();
    EXPECT_EQ(version, committed + 1);
    free_both();
    open();
    EXPECT_EQ(restored(a_), committed + 1);
    fill(0);
    ASSERT_EQ(perdure_restore(pool_, committed + 1), PERDURE_OK) << perdure_last_error();
    EXPECT_EQ(newest(a_)[cells - 1], static_cast<std::int64_t>(committed + 1) * 10 + rank());
    free_both();
  }
  void free_both() {
    ASSERT_EQ(MPI_Win_free(&b_), MPI_SUCCESS) << perdure_last_error();
    ASSERT_EQ(MPI_Win_free(&a_), MPI_SUCCESS) << perdure_last_error();
  }
  const std::int64_t* newest(MPI_Win win) {
    if (std::string(GetParam()) != "twin") return base_of(win);
    MPI_Win consistent = MPI_WIN_NULL;
    EXPECT_EQ(perdure_win_halves(win, &consistent, nullptr), PERDURE_OK);
    return base_of(consistent);
  }
  // Each test once with rank 0 in the one call and once in the other.
  template <typename Test>
  void both_ways(const Test& test) {
    for (const bool frees : {rank() == 0, rank() != 0}) {
      ASSERT_NO_FATAL_FAILURE(begin());
      test(frees);
      ASSERT_NO_FATAL_FAILURE(expect_all_goes_on());
      MPI_Barrier(MPI_COMM_WORLD);
      perdure_test::DirectoryOfRanks::TearDown();
      Windows::SetUp();
      if (HasFailure()) return;
    }
  }

  MPI_Win a_ = MPI_WIN_NULL;
  MPI_Win b_ = MPI_WIN_NULL;
  perdure_pool* pool_ = nullptr;
};

TEST_P(FreeMeets, another_call_of_the_pool_and_all_ranks_get_an_error_that_names_both) {
  for (const Call& other : calls()) {
    SCOPED_TRACE("MPI_Win_free meets " + other.name);
    both_ways([&](bool frees) {
      if (frees) {
        free_one(&a_);
      } else {
        if (other.begins) {
          ASSERT_EQ(perdure_commit_begin(pool_), PERDURE_OK);
        }
        EXPECT_EQ(other.make(a_, pool_), PERDURE_E_INVALID);
      }
      expect_sentence("MPI_Win_free of window 'a'", other.named);
    });
    if (HasFailure()) return;
  }
}

TEST_P(FreeMeets, the_freeing_of_another_window_and_all_ranks_get_an_error_that_names_both) {
  both_ways([&](bool frees) {
    free_one(frees ? &a_ : &b_);
    expect_sentence("MPI_Win_free of window 'a'", freeing_b);
  });
}

class Made : public Windows {
 protected:
  // The last rank gives `other` as well; whether all were refused.
  void expect_refused(const Keys& keys, const Keys& other) {
    Keys own = keys;
    if (rank() == ranks() - 1) {
      for (const auto& [key, value] : other) own[key] = value;
    }
    MPI_Win win = MPI_WIN_NULL;
    ASSERT_NE(allocate(own, cells, &win), MPI_SUCCESS) << "made: " << other.begin()->second;
    const std::string said = perdure_last_error();
    EXPECT_NE(said.find("the ranks ask for different windows"), std::string::npos) << said;
    EXPECT_NE(said.find("perdure_mode=" + own["perdure_mode"]), std::string::npos) << said;
  }
};

// Twin meets copy in no call of MPI's: the ranks waited for each other without end.
TEST_F(Made, by_ranks_that_say_different_things_are_refused_on_all_and_leave_the_pool_as_it_is) {
  const Keys keys{{"perdure_name", "a"}, {"perdure_mode", "copy"}};
  MPI_Win win = MPI_WIN_NULL;
  std::uint64_t version = 0;
  for (const bool open : {true, false}) {  // the pool, at that time
    ASSERT_EQ(allocate(keys, cells, &win), MPI_SUCCESS) << perdure_last_error();
    base_of(win)[cells - 1] = 17 + rank();
    ASSERT_EQ(perdure_win_commit(win, &version), PERDURE_OK) << perdure_last_error();
    if (!open) MPI_Win_free(&win);
    Keys others = keys;
    others["perdure_name"] = "b";
    expect_refused(others, {{"perdure_mode", "twin"}});
    expect_refused(others, {{"perdure_mode", "log"}});
    expect_refused(others, {{"perdure_name", "c"}});
    expect_refused(others, {{"perdure_free", "delete"}});
    expect_refused(others, {{"perdure_commit", "fence"}});
    expect_refused(others, {{"perdure_async", "true"}});
    expect_refused(others, {{"perdure_checksum", "false"}});
    expect_refused(others, {{"perdure_keep", "3"}});
    expect_refused(others, {{"perdure_restore", "discard"}});
    if (open) {
      ASSERT_EQ(MPI_Win_free(&win), MPI_SUCCESS) << perdure_last_error();
    }
  }
  ASSERT_EQ(allocate(keys, cells, &win), MPI_SUCCESS) << perdure_last_error();
  EXPECT_EQ(restored(win), version);
  EXPECT_EQ(base_of(win)[cells - 1], 17 + rank());
  ASSERT_EQ(MPI_Win_free(&win), MPI_SUCCESS) << perdure_last_error();
}

INSTANTIATE_TEST_SUITE_P(Modes, FreeMeets, testing::Values("copy", "log", "twin"),
                         [](const auto& mode) { return std::string(mode.param); });

}  // namespace
}  // namespace perdure_test

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
