// SPDX-License-Identifier: BSD-3-Clause
//
// Collective calls that do not belong together, made by processes under MPI: an error on all ranks
// that names both calls, no version made or lost by it, and nobody who waits. And what is no
// mismatch: arrays that only some ranks have, or in other sizes.
// Run at 2 and 4 ranks; every rank runs every test.
// ctest: RANKS 2 4 LABELS truth TIMEOUT 180
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "mpi_test.hpp"
#include "perdure/perdure_ipv.h"
#include "perdure/perdure_mpi.h"
#include "perdure/perdure_mpi.hpp"

namespace {

namespace fs = std::filesystem;
using perdure_test::rank;
using perdure_test::ranks;

constexpr std::uint64_t committed = 3;

struct Call {
  std::string name;
  std::string named;  // in the sentence
  std::function<int(perdure_pool*)> make;
  bool begins = false;  // perdure_commit_begin() comes before it
};

const std::vector<Call>& calls() {
  static const std::vector<Call> all = {
      {"commit", "perdure_commit of version 4",
       [](perdure_pool* pool) { return perdure_commit(pool, nullptr); }},
      {"restart", "perdure_restart",
       [](perdure_pool* pool) {
         std::uint64_t version = 0;
         return perdure_restart(pool, &version);
       }},
      {"restore 2", "perdure_restore to version 2",
       [](perdure_pool* pool) { return perdure_restore(pool, 2); }},
      {"restore 3", "perdure_restore to version 3",
       [](perdure_pool* pool) { return perdure_restore(pool, 3); }},
      {"delete 1", "perdure_delete_version of version 1",
       [](perdure_pool* pool) { return perdure_delete_version(pool, 1); }},
      {"delete 2", "perdure_delete_version of version 2",
       [](perdure_pool* pool) { return perdure_delete_version(pool, 2); }},
      {"commit_wait", "perdure_commit_wait of version 4, which an earlier call began",
       [](perdure_pool* pool) { return perdure_commit_wait(pool, nullptr); }, true},
      {"commit_begin twice", "perdure_commit_begin of version 4, which an earlier call began",
       [](perdure_pool* pool) { return perdure_commit_begin(pool); }, true},
      {"levels_wait", "perdure_levels_wait",
       [](perdure_pool* pool) { return perdure_levels_wait(pool, nullptr); }},
  };
  return all;
}

// A commit meets all others, both ways, and each meets the next: pool_mismatch_test has all pairs.
bool is_tried(std::size_t one, std::size_t other) {
  return one != other && (one == 0 || other == 0 || other == one + 1);
}

class MismatchOfRanks : public perdure_test::DirectoryOfRanks {
 protected:
  int open(const std::string& path, unsigned flags = 0) {
    perdure_options options{};
    options.keep = 4;
    options.flags = flags;
    if (const int code = perdure_open_mpi(MPI_COMM_WORLD, path.c_str(), &options, &pool_)) {
      return code;
    }
    const std::uint64_t cells = u_.size();
    perdure_array_options given{};
    given.buffer = u_.data();
    perdure_array* array = nullptr;
    if (const int code = perdure_array_open(pool_, "u", PERDURE_INT64, 1, &cells, PERDURE_COPY,
                                            &given, &array)) {
      return code;
    }
    return perdure_restart(pool_, &version_);
  }
  int commit(std::int64_t value) {
    u_.assign(u_.size(), value * 10 + rank());
    return perdure_commit(pool_, &version_);
  }
  // A pool with three versions.
  void begin() {
    path_ = directory_ + "/pool" + std::to_string(++pools_);
    ASSERT_EQ(open(path_), 0) << perdure_last_error();
    for (std::uint64_t v = 1; v <= committed; ++v) {
      ASSERT_EQ(commit(static_cast<std::int64_t>(v)), 0) << perdure_last_error();
    }
  }
  // What a restart would find if all processes were killed now: files as they are.
  void expect_after_a_kill(std::uint64_t version) {
    MPI_Barrier(MPI_COMM_WORLD);
    const std::string copy = path_ + ".killed" + std::to_string(++copies_);
    if (rank() == 0) fs::copy(path_, copy, fs::copy_options::recursive);
    MPI_Barrier(MPI_COMM_WORLD);
    perdure_pool* const living = pool_;
    ASSERT_EQ(open(copy, PERDURE_ANY_JOB), 0) << perdure_last_error();
    EXPECT_EQ(version_, version);
    if (version != 0) {
      EXPECT_EQ(u_[999], static_cast<std::int64_t>(version) * 10 + rank());
    }
    EXPECT_EQ(perdure_close(pool_), 0) << perdure_last_error();
    pool_ = living;
  }
  static void expect_mismatch(int code, const std::string& one, const std::string& other) {
    const std::string said = perdure_last_error();
    EXPECT_EQ(code, PERDURE_E_INVALID) << said;
    for (const std::string& part :
         {std::string("collective calls do not match"), one, other, std::string("rank 0 is in ")}) {
      EXPECT_NE(said.find(part), std::string::npos) << part << " is not in: " << said;
    }
  }

  std::vector<std::int64_t> u_ = std::vector<std::int64_t>(1000);
  std::string path_;
  perdure_pool* pool_ = nullptr;
  std::uint64_t version_ = 0;
  int pools_ = 0;
  int copies_ = 0;
};

TEST_F(MismatchOfRanks, is_an_error_on_all_that_names_both_calls_and_changes_nothing) {
  for (std::size_t i = 0; i < calls().size(); ++i) {
    for (std::size_t k = 0; k < calls().size(); ++k) {
      if (!is_tried(i, k)) continue;
      const Call& one = calls()[i];
      const Call& other = calls()[k];
      SCOPED_TRACE(one.name + " meets " + other.name);
      begin();
      const Call& own = rank() == 0 ? one : other;
      if (own.begins) {
        ASSERT_EQ(perdure_commit_begin(pool_), 0) << perdure_last_error();
      }
      expect_mismatch(own.make(pool_), one.named, other.named);
      if (k == i + 1) expect_after_a_kill(committed);
      ASSERT_EQ(commit(committed + 1), 0) << perdure_last_error();
      EXPECT_EQ(version_, committed + 1);
      if (k == i + 1) expect_after_a_kill(committed + 1);
      EXPECT_EQ(perdure_close(pool_), 0) << perdure_last_error();
      if (HasFailure()) return;
    }
  }
}

// Whoever closes has closed; the others can do nothing more with the pool but close it.
TEST_F(MismatchOfRanks, with_a_close_is_an_error_on_all_after_which_nobody_waits) {
  for (const Call& other : calls()) {
    SCOPED_TRACE("close meets " + other.name);
    begin();
    if (other.begins) {
      ASSERT_EQ(perdure_commit_begin(pool_), 0) << perdure_last_error();
    }
    if (rank() == 0) {
      expect_mismatch(perdure_close(pool_), "perdure_close", other.named);
    } else {
      expect_mismatch(other.make(pool_), "perdure_close", other.named);
      EXPECT_EQ(commit(9), PERDURE_E_STATE);
      EXPECT_NE(std::string(perdure_last_error()).find("rank 0 has closed"), std::string::npos)
          << perdure_last_error();
      EXPECT_EQ(perdure_close(pool_), 0) << perdure_last_error();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    ASSERT_EQ(open(path_), 0) << perdure_last_error();
    EXPECT_EQ(version_, committed);
    EXPECT_EQ(u_[999], static_cast<std::int64_t>(committed) * 10 + rank());
    ASSERT_EQ(commit(committed + 1), 0) << perdure_last_error();
    EXPECT_EQ(perdure_close(pool_), 0) << perdure_last_error();
    if (HasFailure()) return;
  }
}

TEST_F(MismatchOfRanks, of_a_restart_with_a_commit_of_ranks_that_have_restarted_is_an_error) {
  path_ = directory_ + "/pool";
  ASSERT_EQ(open(path_), 0) << perdure_last_error();
  const int code = rank() == 0 ? perdure_restart(pool_, &version_) : commit(1);
  expect_mismatch(code, "perdure_restart", "perdure_commit of version 1");
  expect_after_a_kill(0);
  ASSERT_EQ(commit(1), 0) << perdure_last_error();
  EXPECT_EQ(perdure_close(pool_), 0);
}

// The rank that commits seldom, or compares nothing, was in another call than the others then.
TEST_F(MismatchOfRanks, of_the_options_of_in_place_versioning_is_an_error_before_the_restart) {
  path_ = directory_ + "/pool";
  std::vector<char> object(10000, static_cast<char>(rank()));
  const char* const different[] = {"every=2", "verify=on"};
  for (const char* const option : {different[0], different[1], ""}) {
    ASSERT_EQ(perdure_open_mpi(MPI_COMM_WORLD, path_.c_str(), nullptr, &pool_), 0);
    if (rank() == 0) {
      ASSERT_EQ(::setenv("PERDURE_IPV", option, 1), 0);
    }
    ASSERT_EQ(perdure_ipv_open(pool_, nullptr), 0) << perdure_last_error();
    ASSERT_EQ(perdure_ipv_object("u", object.data(), object.size(), nullptr), 0)
        << perdure_last_error();
    const int code = perdure_ipv_restart(&version_);
    if (*option == '\0') {
      EXPECT_EQ(code, PERDURE_OK) << perdure_last_error();
      EXPECT_EQ(perdure_ipv_persist(&version_), PERDURE_OK) << perdure_last_error();
    } else {
      EXPECT_EQ(code, PERDURE_E_INVALID);
      const std::string said = perdure_last_error();
      EXPECT_NE(said.find("PERDURE_IPV to all or to none"), std::string::npos) << said;
    }
    EXPECT_EQ(perdure_ipv_close(), PERDURE_OK) << perdure_last_error();
    EXPECT_EQ(perdure_close(pool_), 0) << perdure_last_error();
  }
  EXPECT_EQ(::unsetenv("PERDURE_IPV"), 0);
}

// Where perdure run may ask the job to end, or a plan says when to commit, rank 0 answers for all.
TEST_F(MismatchOfRanks, of_the_question_whether_a_commit_is_due_is_an_error) {
  const std::string run = directory_ + "/run";
  if (rank() == 0) fs::create_directory(run);
  MPI_Barrier(MPI_COMM_WORLD);
  ASSERT_EQ(::setenv("PERDURE_RUN_DIR", run.c_str(), 1), 0);
  begin();
  EXPECT_EQ(::unsetenv("PERDURE_RUN_DIR"), 0);
  int due = -1;
  ASSERT_EQ(perdure_commit_due(pool_, &due), 0) << perdure_last_error();
  EXPECT_EQ(due, PERDURE_DUE);
  for (const bool asks : {rank() == 0, rank() != 0}) {
    due = -1;
    const int code = asks ? perdure_commit_due(pool_, &due) : perdure_commit(pool_, nullptr);
    expect_mismatch(code, "perdure_commit_due", "perdure_commit of version 4");
    EXPECT_EQ(due, -1);
  }
  expect_after_a_kill(committed);
  ASSERT_EQ(commit(committed + 1), 0) << perdure_last_error();
  expect_after_a_kill(committed + 1);
  EXPECT_EQ(perdure_close(pool_), 0);
}

// An exception on one rank must not become a wait for the others.
TEST_F(MismatchOfRanks, is_none_when_an_exception_of_all_ranks_closes_the_pool) {
  begin();
  EXPECT_EQ(perdure_close(pool_), 0) << perdure_last_error();
  try {
    perdure::Pool pool = perdure::open_mpi(MPI_COMM_WORLD, path_);
    throw std::runtime_error("of the program");
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "of the program");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  ASSERT_EQ(open(path_), 0) << perdure_last_error();
  EXPECT_EQ(version_, committed);
  EXPECT_EQ(perdure_close(pool_), 0);
}
TEST_F(MismatchOfRanks, is_none_when_an_exception_of_one_rank_closes_its_pool) {
  begin();
  EXPECT_EQ(perdure_close(pool_), 0) << perdure_last_error();
  static perdure_pool* left_open = nullptr;  // nobody could close it alone
  ASSERT_EQ(perdure_open_mpi(MPI_COMM_WORLD, path_.c_str(), nullptr, &left_open), 0);
  if (rank() == 0) {
    try {
      const perdure::Pool own(left_open);
      throw std::runtime_error("of one rank");
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "of one rank");
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);  // it did not wait
}

// Block-structured codes: what a rank has is its own affair, in name, number, shape and mode.
class ArraysOfRanks : public MismatchOfRanks {
 protected:
  struct Own {
    std::string name;
    std::uint64_t cells;
    int mode;
    perdure_array* array = nullptr;
  };

  // Rank 0 has x and z, others x in another size, and further ones.
  static std::vector<Own> arrays() {
    const auto r = static_cast<std::uint64_t>(rank());
    std::vector<Own> own = {{"x", 100 + 37 * r, rank() % 2 == 0 ? PERDURE_COPY : PERDURE_TWIN}};
    if (rank() == 0) own.push_back({"z", 5000, PERDURE_COPY});
    for (std::uint64_t i = 1; i < r; ++i) {
      own.push_back({"block " + std::to_string(i), 10 * r + i, PERDURE_TWIN});
    }
    return own;
  }
  static std::int64_t value(const Own& own, std::int64_t version) {
    return version * 1000 + rank() * 100 + static_cast<std::int64_t>(own.cells);
  }

  void open_own(std::vector<Own>& own) {
    ASSERT_EQ(perdure_open_mpi(MPI_COMM_WORLD, path_.c_str(), nullptr, &pool_), 0)
        << perdure_last_error();
    for (Own& each : own) {
      ASSERT_EQ(perdure_array_open(pool_, each.name.c_str(), PERDURE_INT64, 1, &each.cells,
                                   each.mode, nullptr, &each.array),
                0)
          << perdure_last_error();
    }
    ASSERT_EQ(perdure_restart(pool_, &version_), 0) << perdure_last_error();
  }
  static void fill(std::vector<Own>& own, std::int64_t version) {
    for (Own& each : own) {
      auto* cells = static_cast<std::int64_t*>(perdure_working(each.array));
      std::fill_n(cells, each.cells, value(each, version));
    }
  }
};

TEST_F(ArraysOfRanks, may_differ_in_name_number_shape_and_mode) {
  path_ = directory_ + "/pool";
  std::vector<Own> own = arrays();
  ASSERT_NO_FATAL_FAILURE(open_own(own));
  for (std::int64_t v = 1; v <= 4; ++v) {
    fill(own, v);
    ASSERT_EQ(perdure_commit(pool_, &version_), 0) << perdure_last_error();
    EXPECT_EQ(version_, static_cast<std::uint64_t>(v));
  }
  EXPECT_EQ(perdure_close(pool_), 0);
  own = arrays();
  ASSERT_NO_FATAL_FAILURE(open_own(own));
  EXPECT_EQ(version_, 4U);
  for (const Own& each : own) {
    const auto* cells = static_cast<const std::int64_t*>(perdure_consistent(each.array));
    EXPECT_EQ(cells[0], value(each, 4)) << each.name;
    EXPECT_EQ(cells[each.cells - 1], value(each, 4)) << each.name;
  }
  EXPECT_EQ(perdure_close(pool_), 0);
}

// One opens an array in the midst of the run, between commits of all; nobody else need know.
TEST_F(ArraysOfRanks, may_come_and_go_on_one_rank_alone) {
  path_ = directory_ + "/pool";
  std::vector<Own> own = arrays();
  ASSERT_NO_FATAL_FAILURE(open_own(own));
  perdure_array* late = nullptr;
  const std::uint64_t cells = 321;
  const auto open_late = [&] {
    return perdure_array_open(pool_, "late", PERDURE_INT64, 1, &cells, PERDURE_COPY, nullptr,
                              &late);
  };
  for (std::int64_t v = 1; v <= 6; ++v) {
    if (v == 3 && rank() == ranks() - 1) {
      ASSERT_EQ(open_late(), 0) << perdure_last_error();
    }
    if (late != nullptr) static_cast<std::int64_t*>(perdure_working(late))[320] = v;
    fill(own, v);
    ASSERT_EQ(perdure_commit(pool_, &version_), 0) << perdure_last_error();
  }
  EXPECT_EQ(perdure_close(pool_), 0);
  ASSERT_NO_FATAL_FAILURE(open_own(own));
  EXPECT_EQ(version_, 6U);
  if (rank() == ranks() - 1) {
    ASSERT_EQ(open_late(), 0) << perdure_last_error();
    EXPECT_EQ(static_cast<const std::int64_t*>(perdure_consistent(late))[320], 6);
  }
  EXPECT_EQ(perdure_close(pool_), 0);
}

TEST_F(ArraysOfRanks, that_cannot_be_opened_are_an_error_of_that_rank_alone) {
  begin();
  const std::uint64_t cells = 7;
  perdure_array* array = nullptr;
  if (rank() == 0) {  // open already
    EXPECT_EQ(
        perdure_array_open(pool_, "u", PERDURE_INT64, 1, &cells, PERDURE_COPY, nullptr, &array),
        PERDURE_E_INVALID);
    const std::uint64_t too_many = std::uint64_t{1} << 44;
    EXPECT_EQ(
        perdure_array_open(pool_, "v", PERDURE_INT64, 1, &too_many, PERDURE_COPY, nullptr, &array),
        PERDURE_E_NO_SPACE)
        << perdure_last_error();
  }
  ASSERT_EQ(commit(4), 0) << perdure_last_error();
  expect_after_a_kill(4);
  EXPECT_EQ(perdure_close(pool_), 0);
}

}  // namespace

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
