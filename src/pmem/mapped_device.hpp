// SPDX-License-Identifier: BSD-3-Clause
//
// What the devices on a mapped file share: the mapping, stores through the cache, the counters and
// the checks of every range. Flush and fence are each kind's own.
#pragma once

#include <atomic>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "pmem/counter_set.hpp"
#include "pmem/device.hpp"
#include "pmem/mapped_file.hpp"
#include "pmem/page_ranges.hpp"

namespace perdure {

// [offset, offset + count) rounded outwards; empty stays empty.
inline ByteRange granules_of(std::uint64_t offset, std::size_t count, std::uint64_t granule) {
  if (count == 0) return {offset, offset};
  return {offset / granule * granule, (offset + count + granule - 1) / granule * granule};
}

class MappedDevice : public Device {
 public:
  explicit MappedDevice(MappedFile mapped) : mapped_(std::move(mapped)) {}

  std::byte* base() const override { return mapped_.base(); }
  std::uint64_t size_bytes() const override { return mapped_.size_bytes(); }
  DeviceCounters counters() const override { return counters_.read(); }
  DeviceFile file() const override {
    return {mapped_.file().path, mapped_.file().kind == FileKind::dax};
  }

  void renamed(const std::string& path) override { mapped_.renamed(path); }
  Status check() const override { return mapped_.check(); }
  std::uint64_t allocated_bytes() const override { return mapped_.allocated_bytes(); }
  std::uint64_t next_allocated(std::uint64_t offset) const override {
    return mapped_.next_allocated(offset);
  }
  std::uint64_t free_bytes() const override {
    return mapped_.file().shared ? mapped_.free_bytes() : Device::free_bytes();
  }

  Status resize(std::uint64_t size_bytes) override {
    if (mapped_.file().read_only) {
      return Status(Code::wrong_state, mapped_.file().path, " is open read-only and can't grow");
    }
    return mapped_.grow(size_bytes);
  }

  void touch_pages() override { mapped_.touch_pages(); }

  Status allocate(std::uint64_t offset, std::size_t count) override {
    PERDURE_ASSERT(writable(offset, count) != nullptr);
    return mapped_.file().shared ? mapped_.allocate(offset, count) : Status::success();
  }

  Status discard(std::uint64_t offset, std::size_t count) override {
    PERDURE_ASSERT(writable(offset, count) != nullptr);
    return mapped_.file().shared ? mapped_.discard(offset, count) : Device::discard(offset, count);
  }

  void store(std::uint64_t offset, const void* source, std::size_t count) override {
    std::byte* to = writable(offset, count);
    if (count != 0) std::memcpy(to, source, count);
    counters_.add_store(count);
  }

  void store_word(std::uint64_t offset, std::uint64_t word) override {
    PERDURE_ASSERT(offset % sizeof word == 0);
    auto* to = reinterpret_cast<std::uint64_t*>(writable(offset, sizeof word));
    // pmem.D2: one store instruction, and not before the stores in front of it.
    std::atomic_ref<std::uint64_t>(*to).store(word, std::memory_order_release);
    counters_.add_store(sizeof word);
  }

 protected:
  std::byte* writable(std::uint64_t offset, std::size_t count) const {
    PERDURE_ASSERT(!mapped_.file().read_only);
    PERDURE_ASSERT(offset <= size_bytes() && count <= size_bytes() - offset);
    return base() + offset;
  }
  const MappedFile& mapped() const { return mapped_; }
  CounterSet& counter_set() { return counters_; }

 private:
  MappedFile mapped_;
  CounterSet counters_;
};

}  // namespace perdure
