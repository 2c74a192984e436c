// SPDX-License-Identifier: BSD-3-Clause
//
// The delay model: virtual time is exact arithmetic on the calls and the number of sharers; real
// time is reported as it was; the shared bucket counts the living and goes with the last of them.
#include "pmem/delay_device.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/clock.hpp"
#include "pmem/delay_bucket.hpp"
#include "pmem/parallel.hpp"

namespace perdure {
namespace {

// Plain memory with the counters that the model is checked against.
class MemoryDevice final : public Device {
 public:
  DeviceDescription describe() const override {
    return {"memory", PersistenceClass::process_crash, 64};
  }
  std::byte* base() const override { return const_cast<std::byte*>(bytes_.data()); }
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  DeviceCounters counters() const override { return counters_; }
  std::uint64_t allocated_bytes() const override { return 4096; }
  std::uint64_t next_allocated(std::uint64_t) const override { return 8192; }
  std::uint64_t free_bytes() const override { return 12288; }
  Status resize(std::uint64_t size) override {
    bytes_.resize(size);
    return Status::success();
  }
  void store(std::uint64_t offset, const void* source, std::size_t count) override {
    std::memcpy(bytes_.data() + offset, source, count);
    counters_.stored_bytes += count;
  }
  void store_word(std::uint64_t offset, std::uint64_t word) override {
    store(offset, &word, sizeof word);
  }
  void copy(std::uint64_t offset, const void* source, std::size_t count) override {
    if (count != 0) std::memcpy(bytes_.data() + offset, source, count);
    if (copy_us != 0) ::usleep(copy_us);
  }
  void flush(std::uint64_t, std::size_t) override {}
  Status fence() override { return fence_result; }

  Status fence_result;
  useconds_t copy_us = 0;

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(8U << 20U);
  DeviceCounters counters_;
};

// 3 ns per write, 1000 ns per commit, 2 GB/s: half a nanosecond per byte.
MemoryModel simple_model() {
  MemoryModel model;
  model.name = "simple";
  model.write_latency_ns = 3;
  model.commit_latency_ns = 1000;
  model.write_gb_per_s = 2;
  return model;
}

std::unique_ptr<Device> delayed(const DelayOptions& options) {
  auto device = wrap_with_delay(std::make_unique<MemoryDevice>(), options);
  EXPECT_TRUE(device.ok()) << device.status().message();
  return device.take();
}

std::unique_ptr<Device> virtual_device(const MemoryModel& model) {
  return delayed({.mode = DelayMode::virtual_clock, .model = model, .bucket_name = ""});
}

std::string unique_name(const char* test) {
  return std::string("/perdure-test-") + test + "-" + std::to_string(::getpid());
}

bool exists(const std::string& bucket) {
  const int fd = ::shm_open(bucket.c_str(), O_RDONLY, 0);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

TEST(VirtualDelay, adds_transfer_latency_and_commit_exactly) {
  const auto device = virtual_device(simple_model());
  const std::vector<char> bytes(65536);
  device->copy(0, bytes.data(), 65536);
  EXPECT_EQ(device->counters().model_ns, 32768U);
  device->flush(0, 128);
  EXPECT_EQ(device->counters().model_ns, 32768U + 64);
  ASSERT_TRUE(device->fence().ok());
  EXPECT_EQ(device->counters().model_ns, 32768U + 64 + 3 + 1000);
}

TEST(VirtualDelay, costs_the_same_however_the_bytes_are_split) {
  const std::vector<char> bytes(65536);
  const auto whole = virtual_device(simple_model());
  whole->copy(0, bytes.data(), 65536);
  ASSERT_TRUE(whole->fence().ok());
  const auto split = virtual_device(simple_model());
  for (std::size_t at = 0; at < 65536; at += 4096) split->copy(at, bytes.data() + at, 4096);
  ASSERT_TRUE(split->fence().ok());
  EXPECT_EQ(whole->counters().model_ns, split->counters().model_ns);
}

TEST(VirtualDelay, flushes_of_several_ranges_cost_what_each_costs) {
  const ByteRange ranges[] = {{0, 64}, {100, 100}, {255, 257}, {4096, 5000}};
  const auto each = virtual_device(simple_model());
  for (const ByteRange& range : ranges) each->flush(range.begin, range.end - range.begin);
  const auto together = virtual_device(simple_model());
  together->flush_each(ranges);
  EXPECT_GT(together->counters().model_ns, 0U);
  EXPECT_EQ(together->counters().model_ns, each->counters().model_ns);
}

TEST(VirtualDelay, charges_whole_granules_of_the_part) {
  MemoryModel model = simple_model();
  model.granule_bytes = 256;
  const auto device = virtual_device(model);
  device->flush(255, 2);
  EXPECT_EQ(device->counters().model_ns, 256U);
  device->copy(256, "x", 1);
  EXPECT_EQ(device->counters().model_ns, 256U + 128);
}

TEST(VirtualDelay, charges_nothing_for_stores_and_empty_ranges) {
  const auto device = virtual_device(simple_model());
  device->store(0, "abc", 3);
  device->store_word(8, 1);
  device->flush(0, 0);
  device->copy(0, nullptr, 0);
  EXPECT_EQ(device->counters().model_ns, 0U);
  EXPECT_EQ(device->counters().stored_bytes, 11U);
}

TEST(VirtualDelay, keeps_fractions_of_nanoseconds) {
  const auto device = virtual_device(find_device("paper-nvm-9.5,write_latency_ns=0").take());
  for (int i = 0; i < 950; ++i) device->flush(0, 64);
  // 950 times 64 bytes at 9.5 GB/s, each rounded to picoseconds: 950 * 6.737 ns.
  EXPECT_EQ(device->counters().model_ns, 6400U);
}

TEST(VirtualDelay, limits_no_bandwidth_that_the_part_does_not_give) {
  const auto device = virtual_device(find_device("paper-nvm").take());
  const std::vector<char> bytes(1U << 20U);
  device->copy(0, bytes.data(), bytes.size());
  ASSERT_TRUE(device->fence().ok());
  EXPECT_EQ(device->counters().model_ns, 150U + 500U);
}

TEST(VirtualDelay, does_not_wait) {
  const auto device = virtual_device(find_device("dram,commit_latency_ns=1e15").take());
  ASSERT_TRUE(device->fence().ok());  // eleven days, if it did
  EXPECT_EQ(device->counters().model_ns, 1'000'000'000'000'000U);
  EXPECT_EQ(delay_report(*device)->paid_ns, 0U);
}

TEST(VirtualDelay, is_the_same_for_any_interleaving_of_threads) {
  std::vector<char> bytes(4U << 20U);
  std::uint64_t first = 0;
  for (int round = 0; round < 5; ++round) {
    const auto device = virtual_device(find_device("paper-nvm-9.5").take());
    ParallelWriter writer(*device, 3);
    ASSERT_TRUE(writer.copy(0, bytes.data(), bytes.size()).ok());
    if (round == 0) first = device->counters().model_ns;
    EXPECT_EQ(device->counters().model_ns, first);
  }
}

TEST(DelayDevice, passes_failures_and_sizes_through) {
  auto memory = std::make_unique<MemoryDevice>();
  memory->fence_result = Status(Code::io_error, "no");
  auto device = wrap_with_delay(std::move(memory), {.model = simple_model(), .bucket_name = ""});
  ASSERT_TRUE(device.ok());
  EXPECT_EQ(device.value()->fence().code(), Code::io_error);
  EXPECT_EQ(device.value()->counters().model_ns, 0U) << "a failed fence took no commit";
  ASSERT_TRUE(device.value()->resize(12345).ok());
  EXPECT_EQ(device.value()->size_bytes(), 12345U);
  EXPECT_EQ(device.value()->describe().name, "memory as simple (virtual clock)");
}

TEST(DelayDevice, says_what_room_the_wrapped_device_has) {
  const auto device = virtual_device(simple_model());
  EXPECT_EQ(device->allocated_bytes(), 4096U);
  EXPECT_EQ(device->next_allocated(5), 8192U);
  EXPECT_EQ(device->free_bytes(), 12288U);
}

TEST(DelayDevice, refuses_parts_that_make_no_sense) {
  MemoryModel model = simple_model();
  model.write_gb_per_s = 0;
  const auto device =
      wrap_with_delay(std::make_unique<MemoryDevice>(), {.model = model, .bucket_name = ""});
  EXPECT_EQ(device.status().code(), Code::invalid_argument);
}

TEST(DelayDevice, has_a_report_only_when_it_delays) {
  EXPECT_FALSE(delay_report(MemoryDevice()).has_value());
}

TEST(RealDelay, pays_what_it_owes_and_reports_the_overshoot) {
  const auto device =
      delayed({.mode = DelayMode::wait, .model = simple_model(), .bucket_name = ""});
  const std::vector<char> bytes(65536);
  const std::uint64_t begin = monotonic_ns();
  for (int i = 0; i < 10; ++i) {
    device->copy(0, bytes.data(), bytes.size());
    ASSERT_TRUE(device->fence().ok());
  }
  const std::uint64_t elapsed = monotonic_ns() - begin;
  const DelayReport report = delay_report(*device).value();
  EXPECT_EQ(report.owed_ns, 10U * (32768 + 3 + 1000));
  EXPECT_EQ(report.paid_ns, report.owed_ns);
  EXPECT_GE(elapsed + 10U * 1000, report.paid_ns) << "the time has really passed";
  EXPECT_LE(report.paid_ns + report.overshoot_ns, elapsed);
  EXPECT_EQ(device->counters().model_ns, report.owed_ns);
}

TEST(RealDelay, keeps_debts_below_a_microsecond_until_they_add_up) {
  const auto device = delayed({.mode = DelayMode::wait,
                               .model = find_device("dram,commit_latency_ns=300").take(),
                               .bucket_name = ""});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(device->fence().ok());
  EXPECT_EQ(delay_report(*device)->paid_ns, 0U);
  ASSERT_TRUE(device->fence().ok());
  EXPECT_EQ(delay_report(*device)->paid_ns, 1200U);
}

TEST(RealDelay, makes_two_sharers_wait_for_each_other) {
  const std::string name = unique_name("draw");
  const DelayOptions options{.mode = DelayMode::wait, .model = simple_model(), .bucket_name = name};
  const auto first = delayed(options);
  const auto second = delayed(options);
  const std::vector<char> bytes(4U << 20U);  // 2 ms of the model
  first->copy(0, bytes.data(), bytes.size());
  second->copy(0, bytes.data(), bytes.size());
  EXPECT_EQ(delay_report(*first)->owed_ns, 2U << 20U);
  // The second waits for what the first has left of its 2 ms; a machine so slow that nothing was
  // left shows only its own part.
  EXPECT_GE(delay_report(*second)->owed_ns, 2U << 20U);
  EXPECT_LE(delay_report(*second)->owed_ns, 4U << 20U);
}

TEST(Draining, works_writes_off_while_the_program_goes_on) {
  const auto device =
      delayed({.mode = DelayMode::drain, .model = simple_model(), .bucket_name = ""});
  const std::vector<char> bytes(4U << 20U);  // 2 ms of the model
  device->copy(0, bytes.data(), bytes.size());
  ::usleep(4000);
  ASSERT_TRUE(device->fence().ok());
  const DelayReport after = delay_report(*device).value();
  EXPECT_EQ(after.owed_ns, (2U << 20U) + 3 + 1000);
  EXPECT_EQ(after.paid_ns, 1003U) << "only the latencies were left";
}

TEST(Draining, waits_for_what_is_left) {
  const auto device =
      delayed({.mode = DelayMode::drain, .model = simple_model(), .bucket_name = ""});
  const std::vector<char> bytes(4U << 20U);
  const std::uint64_t begin = monotonic_ns();
  for (int i = 0; i < 10; ++i) device->copy(0, bytes.data(), bytes.size());
  ASSERT_TRUE(device->fence().ok());
  const std::uint64_t elapsed = monotonic_ns() - begin;
  EXPECT_GE(elapsed + 1000, (20U << 20U)) << "no faster than the model";
  EXPECT_LE(delay_report(*device)->paid_ns, (20U << 20U) + 1003U);
}

TEST(Draining, writes_wait_for_room_in_a_queue_that_is_full) {
  MemoryModel model = simple_model();
  model.write_gb_per_s = 0.125;     // slower than a copy of any build
  model.write_queue_bytes = 65536;  // 524 us of the model
  const auto device = delayed({.mode = DelayMode::drain, .model = model, .bucket_name = ""});
  const std::vector<char> bytes(65536);
  const std::uint64_t begin = monotonic_ns();
  for (std::uint64_t i = 0; i < 64; ++i) device->copy(65536 * i, bytes.data(), bytes.size());
  const std::uint64_t elapsed = monotonic_ns() - begin;
  EXPECT_GE(elapsed + 1000, 63U << 19U) << "only one is left";
  EXPECT_GT(delay_report(*device)->stalled_ns, 0U);
  ASSERT_TRUE(device->fence().ok());
  EXPECT_LE(delay_report(*device)->paid_ns, (1U << 19U) + 1003U + 1000U);
}

// The wrapped device needs longer for a copy than the model does.
TEST(Draining, begins_when_the_write_begins) {
  auto slow = std::make_unique<MemoryDevice>();
  slow->copy_us = 4000;
  auto device = wrap_with_delay(
      std::move(slow), {.mode = DelayMode::drain, .model = simple_model(), .bucket_name = ""});
  ASSERT_TRUE(device.ok());
  const std::vector<char> bytes(4U << 20U);  // 2 ms of the model
  device.value()->copy(0, bytes.data(), bytes.size());
  ASSERT_TRUE(device.value()->fence().ok());
  EXPECT_EQ(delay_report(*device.value())->paid_ns, 1003U) << "only the latencies were left";
}

// 4 GB/s to read and 2 GB/s to write.
MemoryModel model_of_both() {
  MemoryModel model = simple_model();
  model.read_gb_per_s = 4;
  return model;
}

TEST(Accesses, cost_their_bytes_at_the_bandwidths_of_reading_and_of_writing) {
  const auto device = virtual_device(model_of_both());
  ASSERT_TRUE(begin_accesses(*device, {.loaded_bytes = 1U << 20U, .stored_bytes = 0}).ok());
  EXPECT_EQ(device->counters().model_ns, 1U << 18U);
  ASSERT_TRUE(begin_accesses(*device, {.loaded_bytes = 0, .stored_bytes = 1U << 20U}).ok());
  EXPECT_EQ(device->counters().model_ns, (1U << 18U) + (1U << 19U));
  end_accesses(*device);
  EXPECT_EQ(delay_report(*device)->paid_ns, 0U) << "the virtual clock waits for nothing";
}

TEST(Accesses, are_served_behind_earlier_writes_and_while_the_program_computes) {
  const auto device =
      delayed({.mode = DelayMode::drain, .model = model_of_both(), .bucket_name = ""});
  const Accesses accesses{.loaded_bytes = 8U << 20U, .stored_bytes = 1U << 20U};
  const std::uint64_t served_ns = (2U << 20U) + (1U << 19U);
  ASSERT_TRUE(begin_accesses(*device, accesses).ok());
  ::usleep(6000);
  end_accesses(*device);
  EXPECT_EQ(delay_report(*device)->paid_ns, 0U) << "served meanwhile";
  const std::vector<char> bytes(4U << 20U);  // 2 ms of the model
  const std::uint64_t begin = monotonic_ns();
  device->copy(0, bytes.data(), bytes.size());
  ASSERT_TRUE(begin_accesses(*device, accesses).ok());
  end_accesses(*device);
  EXPECT_GE(monotonic_ns() - begin + 1000, (2U << 20U) + served_ns);
  EXPECT_EQ(delay_report(*device)->owed_ns, (2U << 20U) + 2 * served_ns);
}

// What a program's last version waits for: it loads nothing after that.
TEST(Accesses, are_not_waited_for_by_a_fence_of_writes_before_them) {
  MemoryModel model = model_of_both();
  model.read_gb_per_s = 0.001;
  const auto device = delayed({.mode = DelayMode::drain, .model = model, .bucket_name = ""});
  const std::vector<char> bytes(1U << 20U);  // 0.5 ms of the model
  device->copy(0, bytes.data(), bytes.size());
  ASSERT_TRUE(begin_accesses(*device, {.loaded_bytes = 1U << 30U, .stored_bytes = 0}).ok());
  ASSERT_TRUE(device->fence().ok());  // eighteen minutes, if it did
  EXPECT_LE(delay_report(*device)->paid_ns, (1U << 19U) + 1003U);
}

TEST(Accesses, are_paid_at_the_next_fence_where_nothing_overlaps) {
  const auto device =
      delayed({.mode = DelayMode::wait, .model = model_of_both(), .bucket_name = ""});
  ASSERT_TRUE(begin_accesses(*device, {.loaded_bytes = 4U << 20U, .stored_bytes = 0}).ok());
  end_accesses(*device);
  EXPECT_EQ(delay_report(*device)->paid_ns, 0U);
  ASSERT_TRUE(device->fence().ok());
  EXPECT_EQ(delay_report(*device)->paid_ns, (1U << 20U) + 1003U);
}

TEST(Accesses, are_refused_where_they_would_not_be_true) {
  MemoryDevice memory;
  EXPECT_EQ(begin_accesses(memory, {1, 1}).code(), Code::unsupported);
  end_accesses(memory);
  MemoryModel model = model_of_both();
  model.write_queue_bytes = 16384;
  const auto device = delayed({.mode = DelayMode::drain, .model = model, .bucket_name = ""});
  EXPECT_NE(begin_accesses(*device, {1, 1}).message().find("write_queue_bytes"), std::string::npos);
}

// A child that opens the bucket and says so, then waits until it may leave.
class Sharer {
 public:
  explicit Sharer(const std::string& bucket) {
    EXPECT_EQ(::pipe(to_parent_), 0);
    EXPECT_EQ(::pipe(to_child_), 0);
    pid_ = ::fork();
    if (pid_ == 0) share(bucket);
    char ready = 0;
    EXPECT_EQ(::read(to_parent_[0], &ready, 1), 1);
    EXPECT_EQ(ready, 'y');
  }
  ~Sharer() {
    for (const int fd : {to_parent_[0], to_parent_[1], to_child_[0], to_child_[1]}) ::close(fd);
  }
  Sharer(const Sharer&) = delete;
  Sharer& operator=(const Sharer&) = delete;

  void leave() {
    EXPECT_EQ(::write(to_child_[1], "x", 1), 1);
    reap();
  }
  void kill_unreaped() { ::kill(pid_, SIGKILL); }
  void reap() { ::waitpid(pid_, nullptr, 0); }

 private:
  [[noreturn]] void share(const std::string& bucket) {
    {
      const auto device = delayed({.model = simple_model(), .bucket_name = bucket});
      if (::write(to_parent_[1], "y", 1) != 1) ::_exit(1);
      char word = 0;
      if (::read(to_child_[0], &word, 1) != 1) ::_exit(1);
    }
    ::_exit(0);
  }
  int to_parent_[2] = {};
  int to_child_[2] = {};
  pid_t pid_ = 0;
};

std::uint64_t cost_of_a_kib(Device& device) {
  const std::uint64_t before = device.counters().model_ns;
  device.flush(0, 1024);
  return device.counters().model_ns - before;
}

TEST(DelayBucket, divides_the_bandwidth_by_the_processes_that_share_it) {
  const std::string name = unique_name("count");
  const auto device = delayed({.model = simple_model(), .bucket_name = name});
  EXPECT_EQ(cost_of_a_kib(*device), 512U);
  Sharer one(name);
  EXPECT_EQ(cost_of_a_kib(*device), 1024U);
  Sharer two(name);
  EXPECT_EQ(cost_of_a_kib(*device), 1536U);
  one.leave();
  EXPECT_EQ(cost_of_a_kib(*device), 1024U);
  two.leave();
  EXPECT_EQ(cost_of_a_kib(*device), 512U);
}

TEST(DelayBucket, drops_killed_processes_at_the_next_attach_even_before_they_are_reaped) {
  const std::string name = unique_name("killed");
  const auto device = delayed({.model = simple_model(), .bucket_name = name});
  Sharer one(name);
  Sharer two(name);
  EXPECT_EQ(cost_of_a_kib(*device), 1536U);
  one.kill_unreaped();
  siginfo_t ended;  // wait until it is a zombie, without reaping it
  ASSERT_EQ(::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT), 0);
  const auto again = DelayBucket::attach(name);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value()->sharers(), 2U) << "this process counts once";
  one.reap();
  two.leave();
}

TEST(DelayBucket, is_removed_by_the_last_that_leaves) {
  const std::string name = unique_name("removed");
  {
    const auto device = delayed({.model = simple_model(), .bucket_name = name});
    EXPECT_TRUE(exists(name));
    Sharer other(name);
    other.leave();
    EXPECT_TRUE(exists(name));
  }
  EXPECT_FALSE(exists(name));
}

TEST(DelayBucket, of_a_killed_process_is_reset_and_then_removed) {
  const std::string name = unique_name("left");
  Sharer only(name);
  only.kill_unreaped();
  only.reap();
  EXPECT_TRUE(exists(name));
  {
    const auto device = delayed({.model = simple_model(), .bucket_name = name});
    EXPECT_EQ(cost_of_a_kib(*device), 512U);
  }
  EXPECT_FALSE(exists(name));
}

TEST(DelayBucket, stays_when_a_forked_child_drops_its_inherited_device) {
  const std::string name = unique_name("inherited");
  auto device = delayed({.model = simple_model(), .bucket_name = name});
  const pid_t child = ::fork();
  if (child == 0) {
    device.reset();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(exists(name));
  EXPECT_EQ(cost_of_a_kib(*device), 512U);
}

TEST(DelayBucket, refuses_an_object_of_another_kind_and_bad_names) {
  const std::string name = unique_name("foreign");
  const int fd = ::shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::ftruncate(fd, 100), 0);
  EXPECT_EQ(DelayBucket::attach(name).status().code(), Code::foreign);
  ::close(fd);
  ::shm_unlink(name.c_str());
  const Status bad = DelayBucket::attach("/a/b").status();
  EXPECT_FALSE(bad.ok());
  EXPECT_NE(bad.message().find("/perdure-1"), std::string::npos);
}

}  // namespace
}  // namespace perdure
