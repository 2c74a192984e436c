// The verbs of a group over ranks of MPI: what levels beyond a node are made of.
#include "mpi/mpi_group.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

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

TEST_F(GroupOfRanks, the_parts_of_a_split_agree_and_send_among_themselves) {
  auto split = group_->split(group_->rank() % 2);
  ASSERT_TRUE(split.ok()) << split.status().message();
  Group& part = *split.value();
  EXPECT_EQ(part.rank(), group_->rank() / 2);
  EXPECT_EQ(part.ranks(), (group_->ranks() + 1 - group_->rank() % 2) / 2);
  std::uint64_t largest = group_->rank();
  ASSERT_TRUE(part.all_max({&largest, 1}).ok());
  EXPECT_EQ(largest, group_->rank() % 2 + 2 * (part.ranks() - 1));
  if (part.ranks() == 1) return;
  std::vector<std::byte> in(1000);
  pass_on(part, pattern(group_->rank(), in.size()), in);
  EXPECT_TRUE(in == pattern((group_->rank() + 2) % 4, in.size()));
}

}  // namespace
}  // namespace perdure

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  int any = 0;
  MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return any;
}
