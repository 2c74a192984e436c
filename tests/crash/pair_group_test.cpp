// The group that the sweeps run in, between two threads, has the verbs of MPI's.
#include "pair_group.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

namespace perdure {
namespace {

void run_pair(const std::function<void(PairGroup&)>& body) {
  PairExchange exchange;
  std::thread other([&] {
    PairGroup group(exchange, 1);
    body(group);
  });
  PairGroup group(exchange, 0);
  body(group);
  other.join();
}

void exchange_ranks(Group& group) {
  std::array<std::byte, 2> word{static_cast<std::byte>(group.rank()), std::byte{7}};
  EXPECT_TRUE(group.send(1 - group.rank(), word).ok());
  EXPECT_TRUE(group.receive(1 - group.rank(), word).ok());
  EXPECT_EQ(word[0], static_cast<std::byte>(1 - group.rank()));
  EXPECT_EQ(word[1], std::byte{7});
}

TEST(PairGroup, carries_bytes_both_ways) {
  run_pair([](PairGroup& group) {
    exchange_ranks(group);
    EXPECT_EQ(group.send(2, {}).code(), Code::invalid_argument);
    EXPECT_EQ(group.receive(group.rank(), {}).code(), Code::invalid_argument);
  });
}

TEST(PairGroup, splits_into_one_part_or_two) {
  run_pair([](PairGroup& group) {
    for (int round = 0; round < 100; ++round) {
      const auto both = group.split(3);
      ASSERT_TRUE(both.ok());
      EXPECT_EQ(both.value()->ranks(), 2U);
      EXPECT_EQ(both.value()->rank(), group.rank());
      exchange_ranks(*both.value());
      const auto alone = group.split(group.rank());
      ASSERT_TRUE(alone.ok());
      EXPECT_EQ(alone.value()->ranks(), 1U);
    }
  });
}

}  // namespace
}  // namespace perdure
