// SPDX-License-Identifier: BSD-3-Clause
//
// The board on which the ranks of a window say for whom they have posted: what a rank may believe
// of it at which moment. No window is needed for that.
// ctest: RANKS 2 4 LIBS perdure_rma_words_@_layer
#include "rma/post_board.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "mpi_test.hpp"

namespace perdure {
namespace {

using perdure_test::rank;
using perdure_test::ranks;

void barrier() {
  MPI_Barrier(MPI_COMM_WORLD);
}

class Ranks {  // of MPI_COMM_WORLD, as a group
 public:
  explicit Ranks(const std::vector<int>& of) {
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, static_cast<int>(of.size()), of.data(), &group_);
    MPI_Group_free(&world);
  }
  ~Ranks() { MPI_Group_free(&group_); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  operator MPI_Group() const { return group_; }

 private:
  MPI_Group group_ = MPI_GROUP_NULL;
};

std::vector<int> all_but_backwards(int left_out) {
  std::vector<int> found;
  for (int i = ranks() - 1; i >= 0; --i) {
    if (i != left_out) found.push_back(i);
  }
  return found;
}

// Rank 0 accesses the others, which post one after another.
TEST(PostBoard, a_target_may_be_accessed_from_its_post_to_the_end_of_the_epoch) {
  const auto board = PostBoard::create(MPI_COMM_WORLD);
  ASSERT_NE(board, nullptr);
  const Ranks others(all_but_backwards(0));
  const Ranks zero({0});
  for (int round = 0; round < 3; ++round) {
    if (rank() == 0) board->start(others);
    for (int target = 1; target < ranks(); ++target) {
      barrier();
      if (rank() == 0) {
        EXPECT_FALSE(board->is_posted(static_cast<std::size_t>(target))) << round;
      }
      barrier();
      if (rank() == target) board->post(zero);
      barrier();
      if (rank() == 0) {
        EXPECT_TRUE(board->is_posted(static_cast<std::size_t>(target))) << round;
      }
    }
    EXPECT_FALSE(board->is_posted(0));  // nobody has it in a group
    if (rank() == 0) board->complete();
    for (int target = 0; target < ranks(); ++target) {
      EXPECT_FALSE(board->is_posted(static_cast<std::size_t>(target))) << round;
    }
    barrier();
  }
}

// A post for another rank does not count, nor does one that belonged to an earlier epoch.
TEST(PostBoard, a_post_counts_for_one_start_of_the_rank_that_it_is_for) {
  const auto board = PostBoard::create(MPI_COMM_WORLD);
  ASSERT_NE(board, nullptr);
  const int last = ranks() - 1;
  const Ranks to_last({last});
  const Ranks to_zero({0});
  if (rank() == last) board->post(to_last);
  barrier();
  if (rank() == 0 && last != 0) {
    board->start(to_last);
    EXPECT_FALSE(board->is_posted(static_cast<std::size_t>(last)));
    board->complete();
  }
  barrier();
  if (rank() == last) board->post(to_zero);
  barrier();
  if (rank() == 0 && last != 0) {
    board->start(to_last);  // its second start, of which the post is the first
    EXPECT_FALSE(board->is_posted(static_cast<std::size_t>(last)));
    board->complete();
  }
  barrier();
}

}  // namespace
}  // namespace perdure

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
