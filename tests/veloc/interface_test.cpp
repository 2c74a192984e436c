// SPDX-License-Identifier: BSD-3-Clause
//
// VELOC's interface on pools, call by call. Run at 1 and 2 ranks; every rank runs every test.
// ctest: NAME veloc_test RANKS 1 2 4 LIBS perdure_veloc_@
#include <gtest/gtest.h>
#include <veloc.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "mpi_test.hpp"

namespace {

// With a configuration in the directory.
class Veloc : public perdure_test::DirectoryOfRanks {
 protected:
  void SetUp() override {
    DirectoryOfRanks::SetUp();
    configure("scratch_versions = 5");
    init();
  }
  void TearDown() override {
    VELOC_Finalize(0);
    DirectoryOfRanks::TearDown();
  }
  void configure(const std::string& more) {
    if (rank_ == 0) {
      std::ofstream(config()) << "# a comment\nscratch = " << scratch()
                              << "\npersistent = " << persistent() << "\nmode=async\n"
                              << more << "\n";
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  void init() { ASSERT_EQ(VELOC_Init(MPI_COMM_WORLD, config().c_str()), VELOC_SUCCESS); }
  void start_again() {
    ASSERT_EQ(VELOC_Finalize(1), VELOC_SUCCESS);
    init();
  }
  std::string config() const { return directory_ + "/veloc.cfg"; }
  std::string scratch() const { return directory_ + "/scratch"; }
  std::string persistent() const { return directory_ + "/persistent"; }

  int ranks_ = perdure_test::ranks();
};

TEST_F(Veloc, what_was_protected_comes_back_in_the_next_run) {
  std::vector<double> u(1000, rank_ + 0.5);
  int step = 7;
  EXPECT_EQ(VELOC_Restart_test("heat", 0), VELOC_FAILURE);
  EXPECT_FALSE(std::filesystem::exists(scratch() + "/heat"));  // asking makes nothing
  VELOC_Mem_protect(0, &step, 1, sizeof step);
  VELOC_Mem_protect(1, u.data(), u.size(), sizeof(double));
  ASSERT_EQ(VELOC_Checkpoint("heat", step), VELOC_SUCCESS);
  EXPECT_EQ(VELOC_Checkpoint_wait(), VELOC_SUCCESS);
  EXPECT_EQ(VELOC_Checkpoint_finished(), 1);
  start_again();
  u.assign(u.size(), 0);
  step = 0;
  ASSERT_EQ(VELOC_Restart_test("heat", 0), 7);
  EXPECT_EQ(VELOC_Restart("heat", 7), VELOC_FAILURE);  // nothing is protected
  VELOC_Mem_protect(0, &step, 1, sizeof step);
  VELOC_Mem_protect(1, u.data(), u.size(), sizeof(double));
  ASSERT_EQ(VELOC_Restart("heat", 7), VELOC_SUCCESS);
  EXPECT_EQ(step, 7);
  EXPECT_EQ(u, std::vector<double>(1000, rank_ + 0.5));
}

// Whole ones: those with a manifest.
int versions_in(const std::string& persistent) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(persistent)) {
    if (entry.path().filename() == "manifest") ++count;
  }
  return count;
}

TEST_F(Veloc, after_a_wait_and_in_mode_sync_at_once_a_version_is_in_persistent) {
  std::vector<double> u(std::size_t{2} << 20U, rank_ + 0.5);
  VELOC_Mem_protect(0, u.data(), u.size(), sizeof(double));
  for (int version = 1; version < 4; ++version) {
    ASSERT_EQ(VELOC_Checkpoint("heat", version), VELOC_SUCCESS);
    EXPECT_EQ(VELOC_Checkpoint_finished(), 0);
    ASSERT_EQ(VELOC_Checkpoint_wait(), VELOC_SUCCESS);
    EXPECT_EQ(VELOC_Checkpoint_finished(), 1);
    EXPECT_EQ(versions_in(persistent()), version);
  }
  ASSERT_EQ(VELOC_Finalize(0), VELOC_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  configure("mode = sync");
  init();
  VELOC_Mem_protect(0, u.data(), u.size(), sizeof(double));
  ASSERT_EQ(VELOC_Checkpoint("heat", 4), VELOC_SUCCESS);
  EXPECT_EQ(VELOC_Checkpoint_finished(), 1);
  EXPECT_EQ(versions_in(persistent()), 4);
}

TEST_F(Veloc, regions_come_go_and_change_their_size_on_each_rank) {
  std::vector<std::vector<std::int64_t>> regions(4);
  for (int version = 1; version <= 12; ++version) {
    for (std::size_t id = 0; id < regions.size(); ++id) {
      const std::size_t size = (id + 1) * static_cast<std::size_t>(version) *
                               (version % 3 == 0 ? 1 : 5000) * static_cast<std::size_t>(rank_ + 1);
      regions[id].assign(size, 100 * version + static_cast<int>(id));
      VELOC_Mem_protect(static_cast<int>(id), regions[id].data(), size, sizeof(std::int64_t));
    }
    if (version % 4 == 0) {
      ASSERT_EQ(VELOC_Mem_unprotect(2), VELOC_SUCCESS);
    }
    ASSERT_EQ(VELOC_Checkpoint("some", version), VELOC_SUCCESS);
    if (version % 5 == 0) start_again();
  }
  start_again();
  for (const int version : {12, 11, 10, 9, 8}) {
    ASSERT_EQ(VELOC_Restart_begin("some", version), VELOC_SUCCESS);
    for (std::size_t id = 0; id < regions.size(); ++id) {
      const int bytes = VELOC_Recover_size(static_cast<int>(id));
      if (version % 4 == 0 && id == 2) {
        EXPECT_EQ(bytes, -1);
        continue;
      }
      const std::size_t size = (id + 1) * static_cast<std::size_t>(version) *
                               (version % 3 == 0 ? 1 : 5000) * static_cast<std::size_t>(rank_ + 1);
      ASSERT_EQ(bytes, static_cast<int>(size * sizeof(std::int64_t)));
      regions[id].assign(size, 0);
      VELOC_Mem_protect(static_cast<int>(id), regions[id].data(), size, sizeof(std::int64_t));
      int ids[] = {static_cast<int>(id)};
      ASSERT_EQ(VELOC_Recover_selective(VELOC_RECOVER_SOME, ids, 1), VELOC_SUCCESS);
      EXPECT_EQ(regions[id], std::vector<std::int64_t>(size, 100 * version + static_cast<int>(id)));
    }
    ASSERT_EQ(VELOC_Restart_end(1), VELOC_SUCCESS);
  }
}

TEST_F(Veloc, one_rank_alone_may_need_more_room) {
  std::vector<int> u(2000, rank_);
  for (int version = 1; version <= 6; ++version) {
    if (version % ranks_ == rank_) u.resize(3 * u.size(), version);
    VELOC_Mem_protect(0, u.data(), u.size(), sizeof(int));
    ASSERT_EQ(VELOC_Checkpoint("one", version), VELOC_SUCCESS);
  }
  const std::vector<int> before = u;
  start_again();
  u.assign(u.size(), -1);
  VELOC_Mem_protect(0, u.data(), u.size(), sizeof(int));
  ASSERT_EQ(VELOC_Restart("one", 6), VELOC_SUCCESS);
  EXPECT_EQ(u, before);
  // An older version had less room; what was made since is used, and known in the next run.
  ASSERT_EQ(VELOC_Restart("one", 2), VELOC_SUCCESS);
  u.assign(3 * before.size(), 7);
  VELOC_Mem_protect(0, u.data(), u.size(), sizeof(int));
  ASSERT_EQ(VELOC_Checkpoint("one", 7), VELOC_SUCCESS);
  start_again();
  u.assign(u.size(), -1);
  VELOC_Mem_protect(0, u.data(), u.size(), sizeof(int));
  ASSERT_EQ(VELOC_Restart("one", 7), VELOC_SUCCESS);
  EXPECT_EQ(u, std::vector<int>(u.size(), 7));
}

std::uintmax_t bytes_in(const std::string& directory) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

TEST_F(Veloc, a_region_that_shrinks_costs_what_is_left_of_it) {
  std::vector<int> u(1'000'000, rank_);
  VELOC_Mem_protect(0, u.data(), u.size(), sizeof(int));
  ASSERT_EQ(VELOC_Checkpoint("less", 1), VELOC_SUCCESS);
  ASSERT_EQ(VELOC_Checkpoint_wait(), VELOC_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  const std::uintmax_t before = bytes_in(persistent());
  EXPECT_GT(before, 4'000'000U);
  MPI_Barrier(MPI_COMM_WORLD);
  u.resize(100);
  VELOC_Mem_protect(0, u.data(), u.size(), sizeof(int));
  ASSERT_EQ(VELOC_Checkpoint("less", 2), VELOC_SUCCESS);
  ASSERT_EQ(VELOC_Checkpoint_wait(), VELOC_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_LT(bytes_in(persistent()), before + before / 2);
}

TEST_F(Veloc, a_region_may_grow_and_shrink_at_each_checkpoint) {
  std::vector<int> u;
  int version = 0;
  const auto save = [&](std::size_t count) {
    u.resize(count, ++version);
    VELOC_Mem_protect(0, u.data(), u.size(), sizeof(int));
    ASSERT_EQ(VELOC_Checkpoint("long", version), VELOC_SUCCESS);
  };
  for (int turn = 0; turn < 70; ++turn) {
    save(static_cast<std::size_t>(20'000 * (turn + 1)));
  }
  for (int turn = 0; turn < 12; ++turn) save(1000);  // more than are kept
  ASSERT_EQ(VELOC_Checkpoint_begin("long", ++version), VELOC_SUCCESS);
  std::vector<int> larger(300'000);  // of a checkpoint that is given up
  VELOC_Mem_protect(0, larger.data(), larger.size(), sizeof(int));
  ASSERT_EQ(VELOC_Checkpoint_end(0), VELOC_FAILURE);
  const std::vector<int> before = u;
  u.assign(u.size(), -1);
  VELOC_Mem_protect(0, u.data(), u.size(), sizeof(int));
  ASSERT_EQ(VELOC_Restart("long", version - 1), VELOC_SUCCESS);
  EXPECT_EQ(u, before);
  save(500);
  start_again();
  u.assign(500, -1);
  VELOC_Mem_protect(0, u.data(), u.size(), sizeof(int));
  ASSERT_EQ(VELOC_Restart("long", version), VELOC_SUCCESS);
  EXPECT_EQ(u, std::vector<int>(before.begin(), before.begin() + 500));
}

TEST_F(Veloc, names_have_versions_of_their_own_and_older_ones_are_found) {
  int value = 0;
  VELOC_Mem_protect(0, &value, 1, sizeof value);
  for (value = 10; value <= 30; value += 10) {
    ASSERT_EQ(VELOC_Checkpoint("first", value), VELOC_SUCCESS);
  }
  value = 5;
  ASSERT_EQ(VELOC_Checkpoint("second", 5), VELOC_SUCCESS);
  start_again();
  VELOC_Mem_protect(0, &value, 1, sizeof value);
  EXPECT_EQ(VELOC_Restart_test("first", 0), 30);
  EXPECT_EQ(VELOC_Restart_test("first", 30), 20);
  EXPECT_EQ(VELOC_Restart_test("first", 20), 10);
  EXPECT_EQ(VELOC_Restart_test("first", 10), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Restart_test("second", 0), 5);
  EXPECT_EQ(VELOC_Restart("first", 15), VELOC_FAILURE);
  ASSERT_EQ(VELOC_Restart("first", 10), VELOC_SUCCESS);
  EXPECT_EQ(value, 10);
  ASSERT_EQ(VELOC_Restart("first", 30), VELOC_SUCCESS);  // and forward again
  EXPECT_EQ(value, 30);
  ASSERT_EQ(VELOC_Restart("first", 20), VELOC_SUCCESS);
  value = 21;
  ASSERT_EQ(VELOC_Checkpoint("first", 21), VELOC_SUCCESS);  // 30 was given up
  start_again();
  VELOC_Mem_protect(0, &value, 1, sizeof value);
  EXPECT_EQ(VELOC_Restart_test("first", 0), 21);
  EXPECT_EQ(VELOC_Restart_test("first", 21), 20);
}

TEST_F(Veloc, a_process_that_did_not_succeed_takes_the_version_from_all) {
  int value = 1;
  VELOC_Mem_protect(0, &value, 1, sizeof value);
  ASSERT_EQ(VELOC_Checkpoint("all", 1), VELOC_SUCCESS);
  ASSERT_EQ(VELOC_Checkpoint_begin("all", 2), VELOC_SUCCESS);
  ASSERT_EQ(VELOC_Checkpoint_mem(), VELOC_SUCCESS);
  EXPECT_EQ(VELOC_Checkpoint_end(rank_ != ranks_ - 1), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Restart_test("all", 0), 1);
  ASSERT_EQ(VELOC_Checkpoint("all", 3), VELOC_SUCCESS);
  ASSERT_EQ(VELOC_Restart_begin("all", 3), VELOC_SUCCESS);
  EXPECT_EQ(VELOC_Restart_end(rank_ != ranks_ - 1), VELOC_FAILURE);
}

TEST_F(Veloc, some_of_the_regions_and_the_rest) {
  std::array<int, 4> values{1, 2, 3, 4};
  for (int id = 0; id < 4; ++id) {
    VELOC_Mem_protect(id, &values[static_cast<std::size_t>(id)], 1, sizeof(int));
  }
  int ids[] = {1, 3};
  ASSERT_EQ(VELOC_Checkpoint_begin("part", 1), VELOC_SUCCESS);
  ASSERT_EQ(VELOC_Checkpoint_selective(VELOC_CKPT_SOME, ids, 2), VELOC_SUCCESS);
  EXPECT_EQ(VELOC_Checkpoint_mem(), VELOC_FAILURE);  // two of them were written
  int last[] = {0, 1, 3};
  ASSERT_EQ(VELOC_Checkpoint_selective(VELOC_CKPT_REST, last, 3), VELOC_SUCCESS);
  ASSERT_EQ(VELOC_Checkpoint_end(1), VELOC_SUCCESS);
  values = {};
  ASSERT_EQ(VELOC_Restart_begin("part", 1), VELOC_SUCCESS);
  int zero[] = {0};
  EXPECT_EQ(VELOC_Recover_selective(VELOC_RECOVER_SOME, zero, 1), VELOC_FAILURE);
  ASSERT_EQ(VELOC_Recover_selective(VELOC_RECOVER_REST, ids, 1), VELOC_SUCCESS);
  ASSERT_EQ(VELOC_Restart_end(1), VELOC_SUCCESS);
  EXPECT_EQ(values, (std::array<int, 4>{0, 0, 3, 4}));
  VELOC_Mem_protect(3, values.data(), 1, 1);  // smaller than what was saved
  EXPECT_EQ(VELOC_Restart("part", 1), VELOC_FAILURE);
}

TEST_F(Veloc, files_that_the_program_writes_are_part_of_a_version) {
  const std::string mine = "dump-" + std::to_string(rank_) + ".dat";
  for (int version = 1; version <= 2; ++version) {
    ASSERT_EQ(VELOC_Checkpoint_begin("files", version), VELOC_SUCCESS);
    char routed[VELOC_MAX_NAME];
    ASSERT_EQ(VELOC_Route_file(mine.c_str(), routed), VELOC_SUCCESS);
    std::ofstream(routed) << std::string(static_cast<std::size_t>(70'000 * version), 'x') << rank_;
    ASSERT_EQ(VELOC_Checkpoint_end(1), VELOC_SUCCESS);
  }
  start_again();
  ASSERT_EQ(VELOC_Restart_begin("files", 1), VELOC_SUCCESS);
  char routed[VELOC_MAX_NAME];
  EXPECT_EQ(VELOC_Route_file("no such file", routed), VELOC_FAILURE);
  ASSERT_EQ(VELOC_Route_file(mine.c_str(), routed), VELOC_SUCCESS);
  std::ifstream file(routed);
  std::string content;
  std::getline(file, content);
  EXPECT_EQ(content, std::string(70'000, 'x') + std::to_string(rank_));
  ASSERT_EQ(VELOC_Restart_end(1), VELOC_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  for (const auto& entry : std::filesystem::directory_iterator(scratch())) {
    EXPECT_EQ(entry.path().filename(), "files");  // the pool
  }
}

TEST_F(Veloc, a_lost_scratch_directory_is_made_again_from_the_persistent_one) {
  std::vector<int> u(50'000, 3);
  VELOC_Mem_protect(0, u.data(), u.size(), sizeof(int));
  for (int version = 1; version <= 3; ++version) {
    u[0] = version;
    ASSERT_EQ(VELOC_Checkpoint("drained", version), VELOC_SUCCESS);
  }
  ASSERT_EQ(VELOC_Finalize(1), VELOC_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank_ == 0) std::filesystem::remove_all(scratch());
  MPI_Barrier(MPI_COMM_WORLD);
  init();
  VELOC_Mem_protect(0, u.data(), u.size(), sizeof(int));
  u.assign(u.size(), 0);
  ASSERT_EQ(VELOC_Restart_test("drained", 0), 3);
  ASSERT_EQ(VELOC_Restart("drained", 3), VELOC_SUCCESS);
  EXPECT_EQ(u[0], 3);
  EXPECT_EQ(u[49'999], 3);
}

TEST_F(Veloc, checksums_are_those_that_the_checkpoints_began_with) {
  std::vector<int> u(10'000, 3);
  for (const char* chksum : {"chksum = true", "chksum = false", "chksum = true"}) {
    ASSERT_EQ(VELOC_Finalize(1), VELOC_SUCCESS);
    configure(chksum);
    init();
    VELOC_Mem_protect(0, u.data(), u.size(), sizeof(int));
    const int before = VELOC_Restart_test("sums", 0);
    if (before > 0) {
      ASSERT_EQ(VELOC_Restart("sums", before), VELOC_SUCCESS);
    }
    ASSERT_EQ(VELOC_Checkpoint("sums", before + 2), VELOC_SUCCESS);
  }
  EXPECT_EQ(VELOC_Restart_test("sums", 0), 5);
}

TEST_F(Veloc, calls_out_of_place_and_wrong_words_fail) {
  int value = 1;
  int ids[] = {7};
  char routed[VELOC_MAX_NAME];
  EXPECT_EQ(VELOC_Init(MPI_COMM_WORLD, config().c_str()), VELOC_FAILURE);  // twice
  EXPECT_EQ(VELOC_Checkpoint_mem(), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Checkpoint_end(1), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Restart_end(1), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Recover_mem(), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Recover_size(0), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Route_file("x", routed), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Mem_unprotect(3), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Mem_protect(0, nullptr, 4, 4), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Mem_protect(0, &value, SIZE_MAX, 8), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Checkpoint("../heat", 1), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Checkpoint("", 1), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Checkpoint("heat", -1), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Restart("nothing", 1), VELOC_FAILURE);
  ASSERT_EQ(VELOC_Checkpoint_begin("heat", 1), VELOC_SUCCESS);
  EXPECT_EQ(VELOC_Checkpoint_begin("heat", 1), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Checkpoint_selective(VELOC_CKPT_SOME, ids, 1), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Checkpoint_selective(9, nullptr, 0), VELOC_FAILURE);
  std::vector<char> late(1 << 20);
  VELOC_Mem_protect(9, late.data(), late.size(), 1);  // after the room was made
  EXPECT_EQ(VELOC_Checkpoint_mem(), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Checkpoint_end(0), VELOC_FAILURE);
  ASSERT_EQ(VELOC_Finalize(1), VELOC_SUCCESS);
  EXPECT_EQ(VELOC_Finalize(1), VELOC_FAILURE);
  EXPECT_EQ(VELOC_Init(MPI_COMM_WORLD, "/nonexistent/veloc.cfg"), VELOC_FAILURE);
  for (const char* wrong : {"max_versions = two", "mode = slow", "chksum = maybe", "colour = red",
                            "ec_interval = -2", "no equals sign"}) {
    configure(wrong);
    EXPECT_EQ(VELOC_Init(MPI_COMM_WORLD, config().c_str()), VELOC_FAILURE) << wrong;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  configure(
      "ec_interval = -1\npersistent_interval = -1\nmax_versions = 2\nmode = sync\n"
      "axl_type = native\n[section]");
  init();
}

TEST_F(Veloc, a_pool_that_cannot_be_opened_fails_each_call_and_no_other) {
  int value = 1;
  VELOC_Mem_protect(0, &value, 1, sizeof value);
  ASSERT_EQ(VELOC_Checkpoint("good", 1), VELOC_SUCCESS);
  if (rank_ == 0) std::ofstream(scratch() + "/bad") << "no directory";
  MPI_Barrier(MPI_COMM_WORLD);
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_EQ(VELOC_Checkpoint("bad", 1), VELOC_FAILURE);
    EXPECT_EQ(VELOC_Restart_test("bad", 0), VELOC_FAILURE);
    EXPECT_EQ(VELOC_Restart("bad", 1), VELOC_FAILURE);
  }
  ASSERT_EQ(VELOC_Checkpoint("good", 2), VELOC_SUCCESS);
  EXPECT_EQ(VELOC_Restart_test("good", 0), 2);
}

TEST_F(Veloc, a_process_by_itself_has_checkpoints_of_its_own) {
  ASSERT_EQ(VELOC_Finalize(1), VELOC_SUCCESS);
  const auto id = static_cast<unsigned>(rank_);
  int value = rank_;
  ASSERT_EQ(VELOC_Init_single(id, config().c_str()), VELOC_SUCCESS);
  VELOC_Mem_protect(0, &value, 1, sizeof value);
  for (int version = 1; version <= rank_ + 1; ++version) {  // ranks differ
    ASSERT_EQ(VELOC_Checkpoint("own", version), VELOC_SUCCESS);
  }
  ASSERT_EQ(VELOC_Finalize(1), VELOC_SUCCESS);
  value = -1;
  ASSERT_EQ(VELOC_Init_single(id, config().c_str()), VELOC_SUCCESS);
  VELOC_Mem_protect(0, &value, 1, sizeof value);
  EXPECT_EQ(VELOC_Restart_test("own", 0), rank_ + 1);
  EXPECT_EQ(VELOC_Restart("own", rank_ + 1), VELOC_SUCCESS);
  EXPECT_EQ(value, rank_);
}

}  // namespace

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
