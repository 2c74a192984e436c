// SPDX-License-Identifier: BSD-3-Clause
//
// The verbs of a group over ranks of MPI: what levels beyond a node are made of.
// ctest: RANKS 1 2 4 LIBS perdure_mpi_@_layer
#include "mpi/mpi_group.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "mpi_test.hpp"

namespace perdure {
namespace {

class GroupOfRanks : public testing::Test {
 protected:
  void SetUp() override {
    auto made = MpiGroup::create(MPI_COMM_WORLD);
    ASSERT_TRUE(made.ok()) << made.status().message();
    group_ = made.take();
  }
  // Even ranks send first, so that nobody waits in a ring.
  void pass_on(Group& group, std::span<const std::byte> out, std::span<std::byte> in) {
    const std::uint32_t next = (group.rank() + 1) % group.ranks();
    const std::uint32_t before = (group.rank() + group.ranks() - 1) % group.ranks();
    const bool first = group.rank() % 2 == 0;
    EXPECT_TRUE(!first || group.send(next, out).ok());
    EXPECT_TRUE(group.receive(before, in).ok());
    EXPECT_TRUE(first || group.send(next, out).ok());
  }
  static std::vector<std::byte> pattern(std::uint32_t rank, std::size_t bytes) {
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(rank * 31 + i % 251);
    return made;
  }

  std::unique_ptr<MpiGroup> group_;
};

TEST_F(GroupOfRanks, bytes_go_round_a_ring_whole) {
  if (group_->ranks() == 1) GTEST_SKIP() << "one rank has nobody to send to";
  const std::uint32_t before = (group_->rank() + group_->ranks() - 1) % group_->ranks();
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4} << 20U}) {
    std::vector<std::byte> in(bytes);
    pass_on(*group_, pattern(group_->rank(), bytes), in);
    EXPECT_TRUE(in == pattern(before, bytes)) << bytes;
  }
}

TEST_F(GroupOfRanks, messages_arrive_in_the_order_in_which_they_were_sent) {
  if (group_->ranks() == 1) GTEST_SKIP() << "one rank has nobody to send to";
  std::array<std::byte, 1> word{};
  for (unsigned i = 0; i < 100 && group_->rank() < 2; ++i) {
    if (group_->rank() == 0) {
      word[0] = static_cast<std::byte>(i);
      ASSERT_TRUE(group_->send(1, word).ok());
    } else {
      ASSERT_TRUE(group_->receive(0, word).ok());
      ASSERT_EQ(word[0], static_cast<std::byte>(i));
    }
  }
}

TEST_F(GroupOfRanks, a_message_to_itself_or_beyond_the_last_rank_is_refused) {
  std::array<std::byte, 1> word{};
  for (const std::uint32_t other : {group_->rank(), group_->ranks()}) {
    EXPECT_EQ(group_->send(other, word).code(), Code::invalid_argument) << other;
    EXPECT_EQ(group_->receive(other, word).code(), Code::invalid_argument) << other;
  }
}

void wait_for(Transfer& transfer) {
  for (;;) {
    const auto done = transfer.done();
    ASSERT_TRUE(done.ok()) << done.status().message();
    if (done.value()) return;
  }
}

TEST_F(GroupOfRanks, started_messages_go_round_a_ring_beside_blocking_ones) {
  if (group_->ranks() == 1) GTEST_SKIP() << "one rank has nobody to send to";
  const std::uint32_t next = (group_->rank() + 1) % group_->ranks();
  const std::uint32_t before = (group_->rank() + group_->ranks() - 1) % group_->ranks();
  const auto large = pattern(group_->rank(), std::size_t{4} << 20U);
  const auto small = pattern(group_->rank() + 7, 100);
  std::vector<std::byte> large_in(large.size());
  std::vector<std::byte> small_in(small.size());
  auto first_in = group_->start_receive(before, large_in);
  auto second_in = group_->start_receive(before, small_in);
  auto first_out = group_->start_send(next, large);
  auto second_out = group_->start_send(next, small);
  std::array<std::byte, 3> word{};
  pass_on(*group_, pattern(group_->rank(), 3), word);
  for (auto* transfer : {&first_in, &second_in, &first_out, &second_out}) {
    ASSERT_TRUE(transfer->ok()) << transfer->status().message();
    wait_for(*transfer->value());
  }
  EXPECT_TRUE(large_in == pattern(before, large.size()));
  EXPECT_TRUE(small_in == pattern(before + 7, small.size()));
}

TEST_F(GroupOfRanks, a_started_maximum_is_that_of_all_ranks_as_unsigned_numbers) {
  std::array<std::uint64_t, 2> values{group_->rank(), ~std::uint64_t{group_->rank()}};
  auto transfer = group_->start_all_max(values);
  ASSERT_TRUE(transfer.ok()) << transfer.status().message();
  wait_for(*transfer.value());
  EXPECT_EQ(values[0], group_->ranks() - 1);
  EXPECT_EQ(values[1], ~std::uint64_t{0});
}

TEST_F(GroupOfRanks, all_ranks_of_one_machine_are_on_one_node) {
  auto nodes = group_->nodes();
  ASSERT_TRUE(nodes.ok()) << nodes.status().message();
  EXPECT_EQ(nodes.value(), std::vector<std::uint32_t>(group_->ranks(), 0));
}

}  // namespace
}  // namespace perdure

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
