// SPDX-License-Identifier: BSD-3-Clause
//
// Queue device: a device of a program's own, with memory that the processor can't touch, a queue of
// the program's work and one of copies, each of a thread that takes its time. What no function of
// perdure_device has put in order comes out wrong.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file_handle.hpp"
#include "device/device_functions.hpp"

namespace perdure {

// Does what it is given, one after the other, each a random time later.
class SlowQueue {
 public:
  explicit SlowQueue(unsigned seed) : delays_(seed), worker_([this] { work(); }) {}
  ~SlowQueue() {
    ask(nullptr);
    worker_.join();
  }
  SlowQueue(const SlowQueue&) = delete;
  SlowQueue& operator=(const SlowQueue&) = delete;

  void ask(std::function<void()> task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
    something_.notify_one();
  }
  std::shared_future<void> end_of_all() {
    auto end = std::make_shared<std::promise<void>>();
    ask([end] { end->set_value(); });
    return end->get_future().share();
  }
  void go_on_after(std::shared_future<void> other) {
    ask([other = std::move(other)] { other.wait(); });
  }

 private:
  void work() {
    while (const auto task = next()) {
      std::this_thread::sleep_for(std::chrono::microseconds(delays_() % 300));
      task();
    }
  }
  std::function<void()> next() {
    std::unique_lock<std::mutex> lock(mutex_);
    something_.wait(lock, [this] { return !tasks_.empty(); });
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  std::mutex mutex_;
  std::condition_variable something_;
  std::deque<std::function<void()>> tasks_;
  std::minstd_rand delays_;
  std::thread worker_;
};

class QueueDevice {
 public:
  QueueDevice() {
    EXPECT_EQ(::ftruncate(file_.fd(), room), 0);
    shown_ = map(PROT_NONE);
    inside_ = map(PROT_READ | PROT_WRITE);
  }
  ~QueueDevice() {
    EXPECT_TRUE(held_.empty()) << held_.size() << " pieces of memory were not given back";
    ::munmap(shown_, room);
    ::munmap(inside_, room);
  }
  QueueDevice(const QueueDevice&) = delete;
  QueueDevice& operator=(const QueueDevice&) = delete;

  DeviceFunctions functions() { return {this, copy, follow, hold, wait, allocate}; }
  // Without a queue of its own for copies, whose functions need neither follow nor hold nor wait.
  DeviceFunctions plain_functions() {
    return {this, copy_at_once, nullptr, nullptr, nullptr, nullptr};
  }

  // Of the program: at a page, until the end of the test.
  std::byte* place(std::uint64_t bytes) { return take(bytes); }
  // The program's work: the contents are stored when its queue comes to it.
  template <typename T>
  void store(std::byte* to, const std::vector<T>& contents) {
    program_.ask([this, to, contents] {
      std::memcpy(inside(to), contents.data(), contents.size() * sizeof(T));
    });
  }
  template <typename T>
  std::vector<T> read(const std::byte* from, std::uint64_t count) {
    std::vector<T> contents(count);
    program_.end_of_all().wait();
    std::memcpy(contents.data(), inside(from), count * sizeof(T));
    return contents;
  }

  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> failing{0};     // this call fails; 0: none
  std::atomic<std::uint64_t> room_left{64};  // pieces that allocate() may give
  std::atomic<bool> loses{false};            // the next copy is not made, which a wait tells once
  std::shared_future<void> gate;             // before copies to the host; none: at once

 private:
  static constexpr std::size_t room = std::size_t{64} << 20U;

  static QueueDevice& of(void* context) { return *static_cast<QueueDevice*>(context); }
  // One function at a time.
  class Call {
   public:
    explicit Call(QueueDevice& device) : device_(device) {
      EXPECT_FALSE(device_.called_.exchange(true)) << "two threads call at once";
    }
    ~Call() { device_.called_ = false; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    QueueDevice& device_;
  };
  bool fails() { return ++calls == failing; }

  static int copy(void* context, void* to, const void* from, std::size_t bytes, int direction) {
    QueueDevice& device = of(context);
    const Call call(device);
    if (device.fails()) return 5;
    const bool to_host = direction == static_cast<int>(CopyDirection::to_host);
    if (to_host && device.gate.valid()) device.gate.wait();
    device.copies_.ask([&device, to, from, bytes, direction] {
      if (device.loses.exchange(false)) {
        device.lost_ = true;
      } else {
        device.copy_now(to, from, bytes, direction);
      }
    });
    return 0;
  }
  static int copy_at_once(void* context, void* to, const void* from, std::size_t bytes,
                          int direction) {
    QueueDevice& device = of(context);
    const Call call(device);
    if (device.fails()) return 5;
    device.program_.end_of_all().wait();
    device.copy_now(to, from, bytes, direction);
    return 0;
  }
  static int follow(void* context) {
    QueueDevice& device = of(context);
    const Call call(device);
    if (device.fails()) return 6;
    device.copies_.go_on_after(device.program_.end_of_all());
    return 0;
  }
  static int hold(void* context) {
    QueueDevice& device = of(context);
    const Call call(device);
    if (device.fails()) return 7;
    device.program_.go_on_after(device.copies_.end_of_all());
    return 0;
  }
  static int wait(void* context) {
    QueueDevice& device = of(context);
    const Call call(device);
    device.copies_.end_of_all().wait();
    if (device.lost_.exchange(false)) return 9;
    return device.fails() ? 8 : 0;
  }
  static void* allocate(void* context, void* memory, std::size_t bytes) {
    QueueDevice& device = of(context);
    const Call call(device);
    if (bytes == 0) {
      EXPECT_EQ(device.held_.erase(memory), 1U);
      ++device.room_left;
      return nullptr;
    }
    EXPECT_EQ(memory, nullptr);
    if (device.room_left == 0 || device.fails()) return nullptr;
    --device.room_left;
    void* const made = device.take(bytes);
    device.held_.insert({made, bytes});
    return made;
  }

  std::byte* take(std::uint64_t bytes) {
    const std::size_t begin = taken_;
    taken_ += (bytes + 4096) / 4096 * 4096;
    EXPECT_LE(taken_, room);
    return shown_ + begin;
  }
  void copy_now(void* to, const void* from, std::size_t bytes, int direction) {
    const bool to_host = direction == static_cast<int>(CopyDirection::to_host);
    const bool to_device = direction == static_cast<int>(CopyDirection::to_device);
    std::memcpy(to_host ? to : inside(to), to_device ? from : inside(from), bytes);
  }
  std::byte* inside(const void* shown) const {
    const std::ptrdiff_t at = static_cast<const std::byte*>(shown) - shown_;
    EXPECT_TRUE(at >= 0 && at < static_cast<std::ptrdiff_t>(room)) << "no memory of the device";
    return inside_ + at;
  }
  std::byte* map(int protection) const {
    void* const at = ::mmap(nullptr, room, protection, MAP_SHARED, file_.fd(), 0);
    EXPECT_NE(at, MAP_FAILED);
    return static_cast<std::byte*>(at);
  }

  const FileHandle file_{::memfd_create("device", MFD_CLOEXEC)};
  std::byte* shown_ = nullptr;   // what addresses say
  std::byte* inside_ = nullptr;  // the same memory, for the device alone
  std::size_t taken_ = 0;
  std::atomic<bool> lost_{false};
  std::atomic<bool> called_{false};
  std::map<void*, std::uint64_t> held_;
  SlowQueue program_{1};
  SlowQueue copies_{2};
};

}  // namespace perdure
