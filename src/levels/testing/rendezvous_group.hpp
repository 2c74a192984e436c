// SPDX-License-Identifier: BSD-3-Clause
//
// A group in which nothing is sent before it is received, as a message library does with long
// messages: ranks that wait for each other in a circle hang.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/thread_group.hpp"

namespace perdure {

// How many messages each rank has received of each other one.
class Receipts {
 public:
  explicit Receipts(std::uint32_t ranks) : ranks_(ranks), counts_(2 * ranks * ranks) {}
  std::atomic<std::uint64_t>& of(std::uint32_t from, std::uint32_t to, bool started) {
    return counts_[(std::size_t{from} * ranks_ + to) * 2 + (started ? 1 : 0)];
  }

 private:
  std::uint32_t ranks_;
  std::vector<std::atomic<std::uint64_t>> counts_;
};

class RendezvousGroup final : public Group {
 public:
  RendezvousGroup(ThreadGroup& inner, Receipts& receipts) : inner_(inner), receipts_(receipts) {}
  std::uint32_t rank() const override { return inner_.rank(); }
  std::uint32_t ranks() const override { return inner_.ranks(); }
  Status all_max(std::span<std::uint64_t> values) override { return inner_.all_max(values); }
  Result<std::vector<std::uint32_t>> nodes() override { return inner_.nodes(); }
  Result<std::unique_ptr<Transfer>> start_all_max(std::span<std::uint64_t> values) override {
    return inner_.start_all_max(values);
  }

  Status send(std::uint32_t to, std::span<const std::byte> bytes) override {
    PERDURE_TRY(inner_.send(to, bytes));
    const std::uint64_t number = ++sent_[{to, false}];
    while (receipts_.of(rank(), to, false) < number) std::this_thread::yield();
    return Status::success();
  }
  Status receive(std::uint32_t from, std::span<std::byte> bytes) override {
    ++receipts_.of(from, rank(), false);
    return inner_.receive(from, bytes);
  }
  Result<std::unique_ptr<Transfer>> start_send(std::uint32_t to,
                                               std::span<const std::byte> bytes) override {
    PERDURE_TRY(inner_.start_send(to, bytes).status());
    const std::uint64_t number = ++sent_[{to, true}];
    return std::unique_ptr<Transfer>(new Sent(receipts_.of(rank(), to, true), number));
  }
  Result<std::unique_ptr<Transfer>> start_receive(std::uint32_t from,
                                                  std::span<std::byte> bytes) override {
    ++receipts_.of(from, rank(), true);
    return inner_.start_receive(from, bytes);
  }

 private:
  class Sent final : public Transfer {
   public:
    Sent(const std::atomic<std::uint64_t>& received, std::uint64_t number)
        : received_(received), number_(number) {}
    Result<bool> done() override { return received_ >= number_; }

   private:
    const std::atomic<std::uint64_t>& received_;
    std::uint64_t number_;
  };

  ThreadGroup& inner_;
  Receipts& receipts_;
  std::map<std::pair<std::uint32_t, bool>, std::uint64_t> sent_;
};

// Runs `body` for each of `ranks` ranks, in threads.
template <typename Body>
void run_by_rendezvous(std::uint32_t ranks, const Body& body) {
  ThreadJob job(ranks);
  Receipts receipts(ranks);
  job.run([&](ThreadGroup& inner) {
    RendezvousGroup group(inner, receipts);
    body(group);
  });
}

}  // namespace perdure
