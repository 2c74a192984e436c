// SPDX-License-Identifier: BSD-3-Clause
//
// The group that tests run in, between threads, has the verbs of MPI's.
#include "base/testing/thread_group.hpp"

#include <gtest/gtest.h>

#include <array>

namespace perdure {
namespace {

std::array<std::byte, 2> word_of(std::uint32_t rank) {
  return {static_cast<std::byte>(rank), std::byte{7}};
}

TEST(ThreadGroup, carries_bytes_round_a_ring) {
  ThreadJob(3).run([](ThreadGroup& group) {
    auto word = word_of(group.rank());
    EXPECT_TRUE(group.send((group.rank() + 1) % 3, word).ok());
    EXPECT_TRUE(group.receive((group.rank() + 2) % 3, word).ok());
    EXPECT_EQ(word, word_of((group.rank() + 2) % 3));
    EXPECT_EQ(group.send(3, {}).code(), Code::invalid_argument);
    EXPECT_EQ(group.receive(group.rank(), {}).code(), Code::invalid_argument);
  });
}

TEST(ThreadGroup, matches_started_messages_in_the_order_in_which_they_were_started) {
  ThreadJob(2).run([](ThreadGroup& group) {
    const std::uint32_t other = 1 - group.rank();
    std::array<std::array<std::byte, 2>, 2> in{};
    auto first = group.start_receive(other, in[0]).take();
    auto second = group.start_receive(other, in[1]).take();
    EXPECT_TRUE(group.start_send(other, word_of(group.rank())).ok());
    EXPECT_TRUE(group.start_send(other, word_of(group.rank() + 10)).ok());
    while (!second->done().value()) EXPECT_TRUE(first->done().ok());
    EXPECT_EQ(in[0], word_of(other));
    EXPECT_EQ(in[1], word_of(other + 10));
  });
}

TEST(ThreadGroup, takes_a_maximum_with_and_without_waiting) {
  ThreadJob(4).run([](ThreadGroup& group) {
    std::array<std::uint64_t, 1> started{group.rank()};
    auto transfer = group.start_all_max(started).take();
    std::array<std::uint64_t, 1> waited{10 * group.rank()};
    EXPECT_TRUE(group.all_max(waited).ok());
    EXPECT_EQ(waited[0], 30U);
    while (!transfer->done().value()) std::this_thread::yield();
    EXPECT_EQ(started[0], 3U);
  });
}

TEST(ThreadGroup, ends_every_call_that_waits_with_the_job) {
  ThreadJob job(2);
  job.run([&job](ThreadGroup& group) {
    if (group.rank() == 1) return job.end();
    std::array<std::uint64_t, 1> value{1};
    EXPECT_EQ(group.all_max(value).code(), Code::peer_failed);
    std::array<std::byte, 2> word{};
    EXPECT_EQ(group.receive(1, word).code(), Code::peer_failed);
    EXPECT_EQ(group.start_receive(1, word).take()->done().status().code(), Code::peer_failed);
  });
}

}  // namespace
}  // namespace perdure
