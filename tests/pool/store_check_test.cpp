// SPDX-License-Identifier: BSD-3-Clause
//
// PERDURE_CHECK=1: a store through a pointer that is older than a commit ends the program at the
// store, with a sentence, before it reaches a copy that a version holds.
// ctest: LABELS truth
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "perdure/perdure.h"
#include "temporary_directory.hpp"

namespace {

using perdure_test::TemporaryDirectory;

void check(int code) {
  if (code == PERDURE_OK) return;
  std::fprintf(stderr, "%s\n", perdure_last_error());
  std::exit(3);
}

struct Job {
  perdure_pool* pool = nullptr;
  perdure_array* u = nullptr;
  std::uint64_t cells;

  Job(const std::string& path, std::uint64_t count, unsigned keep = 0, unsigned flags = 0)
      : cells(count) {
    perdure_options options{};
    options.keep = keep;
    perdure_array_options of_array{};
    of_array.flags = flags;
    check(perdure_open(path.c_str(), &options, &pool));
    check(perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &cells, PERDURE_TWIN, &of_array, &u));
    check(perdure_restart(pool, nullptr));
  }
  ~Job() { check(perdure_close(pool)); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  double* working() { return static_cast<double*>(perdure_working(u)); }
  const double* consistent() { return static_cast<const double*>(perdure_consistent(u)); }
  void fill(double value) {
    for (std::uint64_t i = 0; i < cells; ++i) working()[i] = value;
  }
  void step(double value) {
    fill(value);
    check(perdure_commit(pool, nullptr));
  }
};

class StoreCheck : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("PERDURE_CHECK", "1", 1); }
  void TearDown() override { ::unsetenv("PERDURE_CHECK"); }

  // What a later run without the check finds.
  std::vector<double> restarted(std::uint64_t cells, unsigned keep = 0, unsigned flags = 0) {
    ::unsetenv("PERDURE_CHECK");
    Job job(path(), cells, keep, flags);
    return {job.consistent(), job.consistent() + cells};
  }
  std::string path() const { return directory_.path() + "/pool"; }

  TemporaryDirectory directory_;
};

// cases.md pool.F4, in C: a pointer that is taken once, three commits, a store.
void store_through_a_pointer_that_is_taken_once(const std::string& path, std::uint64_t cells,
                                                unsigned flags) {
  Job job(path, cells, 0, flags);
  double* const once = job.working();
  for (int k = 1; k <= 3; ++k) job.step(k);
  once[2] = 99;
  std::fprintf(stderr, "the store went through\n");
  std::_Exit(0);
}

TEST_F(StoreCheck, ends_a_program_at_the_store_through_an_older_pointer) {
  const auto ends = ::testing::KilledBySignal(SIGSEGV);
  for (const std::uint64_t cells : {8U, 1000U, 100000U}) {
    for (const unsigned flags : {0U, unsigned{PERDURE_CHECKSUM}}) {
      const std::string own = path() + std::to_string(cells) + "-" + std::to_string(flags);
      EXPECT_EXIT(store_through_a_pointer_that_is_taken_once(own, cells, flags), ends,
                  "store to byte 16 of array 'u' was stopped: .* older than the last commit");
      ::unsetenv("PERDURE_CHECK");
      Job job(own, cells, 0, flags);
      EXPECT_EQ(job.consistent()[2], 3) << "what no commit ever saw";
      ::setenv("PERDURE_CHECK", "1", 1);
    }
  }
}

TEST_F(StoreCheck, protects_every_version_that_is_kept) {
  const auto store = [this] {
    Job job(path(), 8, 3);
    std::vector<double*> pointers;
    for (int k = 1; k <= 8; ++k) {
      pointers.push_back(job.working());
      job.step(k);
    }
    for (double* pointer : pointers) {
      if (pointer != job.working()) *pointer = 99;
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(store(), ::testing::KilledBySignal(SIGSEGV), "byte 0 of array 'u' was stopped");
  ::unsetenv("PERDURE_CHECK");
  Job job(path(), 8, 3);
  for (std::uint64_t version = 6; version <= 8; ++version) {
    check(perdure_restore(job.pool, version));
    EXPECT_EQ(job.consistent()[0], static_cast<double>(version));
  }
}

TEST_F(StoreCheck, stops_a_store_while_a_commit_saves_in_the_background) {
  const auto store = [this] {
    Job job(path(), 8);
    job.fill(1);
    double* const now = job.working();
    check(perdure_commit_begin(job.pool));
    *now = 99;
    std::_Exit(0);
  };
  EXPECT_EXIT(store(), ::testing::KilledBySignal(SIGSEGV), "that a commit saves now");
}

TEST_F(StoreCheck, lets_a_correct_program_run_as_it_does_without) {
  {
    Job job(path(), 1000, 2);
    for (int k = 1; k <= 5; ++k) job.step(k);
    job.fill(6);
    check(perdure_commit_begin(job.pool));
    check(perdure_commit_wait(job.pool, nullptr));
    check(perdure_restore(job.pool, 5));
    EXPECT_EQ(job.consistent()[999], 5);
    job.step(7);
    std::vector<double> row(1000, 8);
    check(perdure_write(job.u, 0, 1000, row.data()));
    check(perdure_commit(job.pool, nullptr));
    std::memcpy(row.data(), job.consistent(), 8 * row.size());
    EXPECT_EQ(row[999], 8);
  }
  EXPECT_EQ(restarted(1000, 2), std::vector<double>(1000, 8));
}

TEST_F(StoreCheck, refuses_a_value_that_it_does_not_know) {
  ::setenv("PERDURE_CHECK", "yes", 1);
  perdure_pool* pool = nullptr;
  perdure_array* u = nullptr;
  const std::uint64_t cells = 8;
  ASSERT_EQ(perdure_open(path().c_str(), nullptr, &pool), PERDURE_OK);
  EXPECT_EQ(perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &cells, PERDURE_TWIN, nullptr, &u),
            PERDURE_E_INVALID);
  EXPECT_NE(std::strstr(perdure_last_error(), "PERDURE_CHECK='yes'"), nullptr);
  EXPECT_EQ(perdure_close(pool), PERDURE_OK);
}

}  // namespace
