// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/delay_device.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "pmem/delay_bucket.hpp"
#include "pmem/forwarding_device.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t ps_per_ns = 1000;
constexpr std::uint64_t least_debt_ns = 1000;  // shorter spins are mostly the clock's own cost

std::uint64_t to_ps(double ns) {
  return static_cast<std::uint64_t>(std::llround(ns * 1000));
}

// The prices of one memory model.
struct Prices {
  std::uint64_t write_ps = 0;
  std::uint64_t commit_ps = 0;
  double gb_per_s = 0;  // 0: not limited
  double read_gb_per_s = 0;
  std::uint64_t granule = 64;
  std::uint64_t queue_bytes = 0;  // 0: not limited

  std::uint64_t transfer_ps(std::uint64_t bytes, std::uint32_t sharers) const {
    return ps_at(gb_per_s, bytes, sharers);
  }
  std::uint64_t accesses_ps(const Accesses& accesses, std::uint32_t sharers) const {
    return ps_at(read_gb_per_s, accesses.loaded_bytes, sharers) +
           ps_at(gb_per_s, accesses.stored_bytes, sharers);
  }

  // 10^9 bytes per second are 1000 ps for one byte.
  static std::uint64_t ps_at(double rate, std::uint64_t bytes, std::uint32_t sharers) {
    if (rate == 0) return 0;
    const double byte_ps = 1000.0 * static_cast<double>(sharers);
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(bytes) * byte_ps / rate));
  }

  std::uint64_t granule_bytes(std::uint64_t offset, std::size_t count) const {
    const std::uint64_t begin = offset / granule * granule;
    return (offset + count + granule - 1) / granule * granule - begin;
  }
};

// What one look at the clock takes: a spin ends that much early.
std::uint64_t clock_cost_ns() {
  static const std::uint64_t cost = [] {
    constexpr std::uint64_t looks = 1000;
    const std::uint64_t begin = monotonic_ns();
    std::uint64_t end = begin;
    for (std::uint64_t i = 0; i < looks; ++i) end = monotonic_ns();
    return (end - begin) / looks;
  }();
  return cost;
}

// Spins for `debt_ns` and returns what it really took.
std::uint64_t spin(std::uint64_t debt_ns) {
  const std::uint64_t early = clock_cost_ns();
  const std::uint64_t begin = monotonic_ns();
  std::uint64_t spent = 0;
  while (spent + early < debt_ns) spent = monotonic_ns() - begin;
  return monotonic_ns() - begin;
}

// Stores go to the cache; they cost when they are flushed.
class DelayDevice final : public ForwardingDevice {
 public:
  DelayDevice(std::unique_ptr<Device> wrapped, DelayMode mode, std::string model_name,
              const Prices& prices, std::unique_ptr<DelayBucket> bucket)
      : ForwardingDevice(std::move(wrapped)),
        mode_(mode),
        model_name_(std::move(model_name)),
        prices_(prices),
        bucket_(std::move(bucket)) {}

  DeviceFile file() const override { return device().file(); }
  void renamed(const std::string& path) override { device().renamed(path); }
  DeviceDescription describe() const override {
    DeviceDescription description = device().describe();
    const char* const modes[] = {" (virtual clock)", " (wait)", " (drain)"};
    description.name += " as " + model_name_ + modes[static_cast<std::size_t>(mode_)];
    return description;
  }
  DeviceCounters counters() const override {
    DeviceCounters counters = device().counters();
    counters.model_ns += owed_ps_.load(std::memory_order_relaxed) / ps_per_ns;
    return counters;
  }
  Status check() const override { return device().check(); }

  void copy(std::uint64_t offset, const void* source, std::size_t count) override {
    const std::uint64_t begun_ns = begin_write();
    device().copy(offset, source, count);
    charge_write(offset, count, begun_ns);
  }
  void stored_past_cache(std::uint64_t offset, std::size_t count) override {
    const std::uint64_t begun_ns = begin_write();
    device().stored_past_cache(offset, count);
    charge_write(offset, count, begun_ns);
  }
  void flush(std::uint64_t offset, std::size_t count) override {
    const std::uint64_t begun_ns = begin_write();
    device().flush(offset, count);
    charge_write(offset, count, begun_ns);
  }

  void flush_each(std::span<const ByteRange> ranges) override {
    const std::uint64_t begun_ns = begin_write();
    device().flush_each(ranges);
    std::uint64_t bytes = 0;
    for (const ByteRange& range : ranges) {
      if (range.begin == range.end) continue;
      bytes += prices_.granule_bytes(range.begin, range.end - range.begin);
    }
    charge_bytes(bytes, begun_ns);
  }

  // 1. The wrapped device makes the bytes durable.
  // 2. Only then the time of the model passes, so that a crash during the delay loses nothing that
  //    the memory itself would have kept.
  Status fence() override {
    PERDURE_TRY(device().fence());
    owe(prices_.commit_ps + prices_.write_ps);
    if (mode_ == DelayMode::wait) pay();
    if (mode_ == DelayMode::drain) wait_until_drained();
    return Status::success();
  }

  Status begin_accesses(const Accesses& accesses) {
    if (prices_.queue_bytes != 0) {
      return Status(Code::unsupported, "a memory with write_queue_bytes (", model_name_,
                    ") can't be charged for loads and stores; leave the queue without end");
    }
    const std::uint32_t sharers = mode_ == DelayMode::virtual_clock ? bucket_->sharers() : 1;
    const std::uint64_t ps = prices_.accesses_ps(accesses, sharers);
    if (mode_ == DelayMode::virtual_clock) owe(ps);
    if (mode_ == DelayMode::wait) draw(ps);
    if (mode_ == DelayMode::drain) accessed_ns_ = enqueue(ps, monotonic_ns(), false);
    return Status::success();
  }
  void end_accesses() { wait(monotonic_ns(), std::exchange(accessed_ns_, 0)); }

  DelayReport report() const {
    DelayReport report;
    report.owed_ns = owed_ps_.load(std::memory_order_relaxed) / ps_per_ns;
    report.paid_ns = paid_ns_.load(std::memory_order_relaxed);
    report.overshoot_ns = overshoot_ns_.load(std::memory_order_relaxed);
    report.stalled_ns = stalled_ns_.load(std::memory_order_relaxed);
    return report;
  }

 private:
  void owe(std::uint64_t ps) { owed_ps_.fetch_add(ps, std::memory_order_relaxed); }

  std::uint64_t debt_ns() const {
    return owed_ps_.load(std::memory_order_relaxed) / ps_per_ns -
           paid_ns_.load(std::memory_order_relaxed);
  }

  // While the wrapped device takes its time, a memory that drains works already.
  std::uint64_t begin_write() const { return mode_ == DelayMode::drain ? monotonic_ns() : 0; }

  void charge_write(std::uint64_t offset, std::size_t count, std::uint64_t begun_ns) {
    if (count != 0) charge_bytes(prices_.granule_bytes(offset, count), begun_ns);
  }
  void charge_bytes(std::uint64_t bytes, std::uint64_t begun_ns) {
    if (bytes == 0) return;
    switch (mode_) {
      case DelayMode::virtual_clock:
        owe(prices_.transfer_ps(bytes, bucket_->sharers()));
        break;
      case DelayMode::wait:
        draw(prices_.transfer_ps(bytes, 1));
        break;
      case DelayMode::drain:
        queue(prices_.transfer_ps(bytes, 1), begun_ns);
        break;
    }
  }

  // The memory begins with it at once, or when it has done what it had before. Returns when that
  // ends.
  std::uint64_t enqueue(std::uint64_t transfer_ps, std::uint64_t begun_ns, bool write) {
    const std::lock_guard lock(draw_mutex_);
    owe(transfer_ps);
    const std::uint64_t ps = transfer_ps + remainder_ps_;
    remainder_ps_ = ps % ps_per_ns;
    const std::uint64_t end_ns = bucket_->draw(begun_ns, ps / ps_per_ns);
    if (write) drained_ns_ = end_ns;  // a fence waits for nothing else
    return end_ns;
  }

  // The writer waits until no more of it is left than the queue holds.
  void queue(std::uint64_t transfer_ps, std::uint64_t begun_ns) {
    const std::uint64_t free_ns = enqueue(transfer_ps, begun_ns, true);
    if (prices_.queue_bytes == 0) return;
    const std::uint64_t now_ns =
        monotonic_ns() + prices_.transfer_ps(prices_.queue_bytes, 1) / ps_per_ns;
    if (free_ns < now_ns + least_debt_ns) return;  // that little is left in the queue
    stalled_ns_.fetch_add(free_ns - now_ns, std::memory_order_relaxed);
    (void)spin(free_ns - now_ns);
  }

  // Also of what other threads of this process wrote: there is one memory.
  void wait_until_drained() {
    const std::uint64_t begin = monotonic_ns();
    std::uint64_t end = begin;
    {
      const std::lock_guard lock(draw_mutex_);
      end = std::max(begin, drained_ns_) + (prices_.commit_ps + prices_.write_ps) / ps_per_ns;
    }
    wait(begin, end);
  }

  void wait(std::uint64_t begin, std::uint64_t end) {
    if (end <= begin) return;
    const std::uint64_t spent = spin(end - begin);
    paid_ns_.fetch_add(end - begin, std::memory_order_relaxed);
    if (spent > end - begin) {
      overshoot_ns_.fetch_add(spent - (end - begin), std::memory_order_relaxed);
    }
  }

  // Draws from the bucket at the time that it would be had every debt been paid when it was made:
  // alone, this gives the plain sum; beside others, the time to wait for them as well.
  void draw(std::uint64_t transfer_ps) {
    const std::lock_guard lock(draw_mutex_);
    const std::uint64_t ps = transfer_ps + remainder_ps_;
    remainder_ps_ = ps % ps_per_ns;
    const std::uint64_t now_ns = monotonic_ns() + debt_ns();
    const std::uint64_t end_ns = bucket_->draw(now_ns, ps / ps_per_ns);
    owe((end_ns - now_ns) * ps_per_ns);
  }

  // Threads pay one after the other, because there is one memory: a thread whose debt another one
  // took along also returns only when that is paid.
  void pay() {
    const std::lock_guard lock(pay_mutex_);
    const std::uint64_t debt = debt_ns();
    if (debt < least_debt_ns) return;
    const std::uint64_t spent = spin(debt);
    paid_ns_.fetch_add(debt, std::memory_order_relaxed);
    if (spent > debt) overshoot_ns_.fetch_add(spent - debt, std::memory_order_relaxed);
  }

  DelayMode mode_;
  std::string model_name_;
  Prices prices_;
  std::unique_ptr<DelayBucket> bucket_;
  std::atomic<std::uint64_t> owed_ps_{0};  // 2^64 ps are 213 days
  std::atomic<std::uint64_t> paid_ns_{0};
  std::atomic<std::uint64_t> overshoot_ns_{0};
  std::atomic<std::uint64_t> stalled_ns_{0};
  std::mutex draw_mutex_;
  std::uint64_t remainder_ps_ = 0;
  std::uint64_t drained_ns_ = 0;   // draining: when this process's writes are done
  std::uint64_t accessed_ns_ = 0;  // draining: when the accesses are served
  std::mutex pay_mutex_;
};

bool is_sensible(const std::optional<double>& amount, bool zero_allowed) {
  return !amount.has_value() ||
         (std::isfinite(*amount) && (*amount > 0 || (zero_allowed && *amount == 0)));
}

Result<Prices> prices_of(const MemoryModel& model) {
  if (!is_sensible(model.write_latency_ns, true) || !is_sensible(model.commit_latency_ns, true) ||
      !is_sensible(model.write_gb_per_s, false) || !is_sensible(model.read_gb_per_s, false) ||
      !is_sensible(model.write_queue_bytes, false) || model.granule_bytes == 0) {
    return Status(Code::invalid_argument, "memory model ", model.name,
                  " can't be emulated: latencies must not be negative, the bandwidth, the queue "
                  "and the granule must be more than 0");
  }
  Prices prices;
  prices.write_ps = to_ps(model.write_latency_ns.value_or(0));
  prices.commit_ps = to_ps(model.commit_latency_ns.value_or(0));
  prices.gb_per_s = model.write_gb_per_s.value_or(0);
  prices.read_gb_per_s = model.read_gb_per_s.value_or(0);
  prices.granule = model.granule_bytes;
  prices.queue_bytes = static_cast<std::uint64_t>(model.write_queue_bytes.value_or(0));
  return prices;
}

}  // namespace

Result<std::unique_ptr<Device>> wrap_with_delay(std::unique_ptr<Device> wrapped,
                                                const DelayOptions& options) {
  PERDURE_ASSERT(wrapped != nullptr);
  const Result<Prices> prices = prices_of(options.model);
  if (!prices.ok()) return prices.status();
  Result<std::unique_ptr<DelayBucket>> bucket = DelayBucket::attach(options.bucket_name);
  if (!bucket.ok()) return bucket.status();
  return std::unique_ptr<Device>(std::make_unique<DelayDevice>(
      std::move(wrapped), options.mode, options.model.name, prices.value(), bucket.take()));
}

Result<std::unique_ptr<Device>> emulate_memory(std::unique_ptr<Device> wrapped,
                                               const std::string& model, DelayMode mode,
                                               const std::string& bucket_name) {
  PERDURE_TRY_ASSIGN(auto found, find_device(model));
  return wrap_with_delay(std::move(wrapped), {mode, std::move(found), bucket_name});
}

Status begin_accesses(Device& device, const Accesses& accesses) {
  auto* delayed = dynamic_cast<DelayDevice*>(&device);
  if (delayed != nullptr) return delayed->begin_accesses(accesses);
  return Status(Code::unsupported,
                "only an emulated memory is charged for loads and stores; name one "
                "(perdure_options.emulate, PERDURE_EMULATE)");
}

void end_accesses(Device& device) {
  auto* delayed = dynamic_cast<DelayDevice*>(&device);
  if (delayed != nullptr) delayed->end_accesses();
}

std::optional<DelayReport> delay_report(const Device& device) {
  const auto* delayed = dynamic_cast<const DelayDevice*>(&device);
  if (delayed == nullptr) return std::nullopt;
  return delayed->report();
}

}  // namespace perdure
