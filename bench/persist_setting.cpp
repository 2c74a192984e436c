// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include "base/clock.hpp"
#include "persist.hpp"
#include "pmem/file_device.hpp"
#include "pmem/flush.hpp"

namespace perdure::bench {
namespace {

class VerbDevice final : public Device {
 public:
  VerbDevice(const Device& memory, const Verbs& verbs)
      : base_(memory.base()), size_(memory.size_bytes()), verbs_(verbs) {}

  DeviceDescription describe() const override {
    return {"contender", PersistenceClass::process_crash, cache_line_bytes};
  }
  std::byte* base() const override { return base_; }
  std::uint64_t size_bytes() const override { return size_; }
  DeviceCounters counters() const override { return {}; }
  Status resize(std::uint64_t) override { return {Code::unsupported, "a contender can't grow"}; }
  void store(std::uint64_t, const void*, std::size_t) override {}
  void store_word(std::uint64_t, std::uint64_t) override {}
  void copy(std::uint64_t offset, const void* source, std::size_t count) override {
    verbs_.copy(base_ + offset, source, count);
  }
  void flush(std::uint64_t offset, std::size_t count) override {
    verbs_.flush(base_ + offset, count);
  }
  Status fence() override {
    verbs_.fence();
    return Status::success();
  }

 private:
  std::byte* base_;
  std::uint64_t size_;
  Verbs verbs_;
};

}  // namespace

std::unique_ptr<Device> device_with_verbs(const Device& memory, const Verbs& verbs) {
  return std::make_unique<VerbDevice>(memory, verbs);
}

Result<std::unique_ptr<Device>> open_scratch(const PersistOptions& options,
                                             std::size_t size_bytes) {
  const std::string path =
      options.directory + "/perdure-bench-persist-" + std::to_string(::getpid());
  auto device = open_file_device(path, {.create = true});
  if (!device.ok()) return device;
  const Status grown = device.value()->resize(size_bytes);
  ::unlink(path.c_str());
  if (!grown.ok()) return grown;
  return device;
}

void evict(const std::byte* begin, std::size_t count) {
  const FlushPrimitives* evicting = flush_primitives_named("clflushopt");
  if (evicting == nullptr) evicting = &flush_primitives();  // the best there is
  evicting->flush(begin, count);
  evicting->fence();
}

Result<double> nanoseconds_of(const std::function<Status()>& work) {
  const std::uint64_t begin = monotonic_ns();
  PERDURE_TRY(work());
  return static_cast<double>(monotonic_ns() - begin);
}

Fact fact_of(const std::string& name, const std::string& metric, const std::string& unit,
             std::size_t size_bytes, unsigned threads) {
  const std::string place = "/" + std::to_string(size_bytes) + "/" + std::to_string(threads);
  Fact fact{.bench = "persist", .name = name + place, .metric = metric, .unit = unit};
  fact.more = {{"size_bytes", static_cast<std::int64_t>(size_bytes)},
               {"threads", static_cast<std::int64_t>(threads)}};
  return fact;
}

}  // namespace perdure::bench
