// SPDX-License-Identifier: BSD-3-Clause
//
// A group whose process ends at its n-th call, as if all ranks had been killed at once.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/thread_group.hpp"

namespace perdure {

constexpr int killed_code = 9;  // exit code of the process

// Ends the process at call `kill_at` of all ranks together.
class MortalGroup final : public Group {
 public:
  MortalGroup(ThreadGroup& group, std::atomic<std::uint64_t>& calls, std::uint64_t kill_at,
              bool late = false)
      : group_(group), calls_(calls), kill_at_(kill_at), late_(late) {}
  // Besides, at call `at` of all ranks together.
  void call_at(std::uint64_t at, std::function<void()> what) {
    at_ = at;
    what_ = std::move(what);
  }
  // From then on nothing that it has started to wait for arrives, in time.
  void hear_no_maxima() { hears_maxima_ = false; }
  void hear_no_messages() { hears_messages_ = false; }
  std::uint32_t rank() const override { return group_.rank(); }
  std::uint32_t ranks() const override { return group_.ranks(); }
  bool may_be_used_beside() const override { return false; }
  Status all_max(std::span<std::uint64_t> values) override {
    count();
    const Status done = group_.all_max(values);
    // Others are far ahead: they reach what comes next before this rank has done anything.
    if (late_) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return done;
  }
  Status send(std::uint32_t to, std::span<const std::byte> bytes) override {
    count();
    return group_.send(to, bytes);
  }
  Status receive(std::uint32_t from, std::span<std::byte> bytes) override {
    return group_.receive(from, bytes);
  }
  Result<std::unique_ptr<Transfer>> start_send(std::uint32_t to,
                                               std::span<const std::byte> bytes) override {
    count();
    return group_.start_send(to, bytes);
  }
  Result<std::unique_ptr<Transfer>> start_receive(std::uint32_t from,
                                                  std::span<std::byte> bytes) override {
    count();
    return heard(hears_messages_, group_.start_receive(from, bytes));
  }
  Result<std::unique_ptr<Transfer>> start_all_max(std::span<std::uint64_t> values) override {
    count();
    return heard(hears_maxima_, group_.start_all_max(values));
  }
  Result<std::vector<std::uint32_t>> nodes() override { return group_.nodes(); }

 private:
  // Its words are still where they were given.
  class Unheard final : public Transfer {
   public:
    explicit Unheard(std::unique_ptr<Transfer> transfer) : transfer_(std::move(transfer)) {}
    Result<bool> done() override { return false; }

   private:
    std::unique_ptr<Transfer> transfer_;
  };
  static Result<std::unique_ptr<Transfer>> heard(bool hears,
                                                 Result<std::unique_ptr<Transfer>> started) {
    if (hears || !started.ok()) return started;
    return std::unique_ptr<Transfer>(std::make_unique<Unheard>(started.take()));
  }
  void count() {
    const std::uint64_t call = ++calls_;
    if (call == kill_at_) ::_exit(killed_code);
    if (what_ && call == at_) what_();
  }
  ThreadGroup& group_;
  std::atomic<std::uint64_t>& calls_;
  std::uint64_t kill_at_;
  bool late_;
  bool hears_maxima_ = true;
  bool hears_messages_ = true;
  std::uint64_t at_ = 0;
  std::function<void()> what_;
};

}  // namespace perdure
