// SPDX-License-Identifier: BSD-3-Clause
//
// Memory device: a device that is nothing but memory, for fuzzing. What lies beyond its size
// cannot be touched where AddressSanitizer is at hand.
//
// Threads: one at a time. Failure: it grows up to `bytes_max`, then Code::no_space; fences succeed.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "pmem/device.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define PERDURE_FUZZ_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PERDURE_FUZZ_ASAN 1
#endif
#endif
#ifdef PERDURE_FUZZ_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) static_cast<void>(0)
#endif

namespace perdure::fuzz {

class MemoryDevice final : public Device {
 public:
  static constexpr std::uint64_t bytes_max = std::uint64_t{1} << 18;

  // The device begins with `image`, zeros follow up to `size_bytes`.
  explicit MemoryDevice(std::span<const std::byte> image, std::uint64_t size_bytes = 0)
      : memory_(take_memory()), size_bytes_(std::max<std::uint64_t>(image.size(), size_bytes)) {
    PERDURE_ASSERT(size_bytes_ <= bytes_max);
    if (!image.empty()) std::memcpy(memory_, image.data(), image.size());
    ASAN_POISON_MEMORY_REGION(memory_ + size_bytes_, bytes_max - size_bytes_);
  }
  ~MemoryDevice() override {
    ASAN_UNPOISON_MEMORY_REGION(memory_, bytes_max);
    std::memset(memory_, 0, size_bytes_);
    free_memory().push_back(memory_);
  }

  DeviceDescription describe() const override {
    return {"memory", PersistenceClass::process_crash, 64};
  }
  std::byte* base() const override { return memory_; }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  DeviceCounters counters() const override { return {}; }
  std::span<const std::byte> image() const { return {memory_, size_bytes_}; }

  Status resize(std::uint64_t size_bytes) override {
    if (size_bytes > bytes_max) return {Code::no_space, "the memory device is full"};
    ASAN_UNPOISON_MEMORY_REGION(memory_, size_bytes);
    size_bytes_ = std::max(size_bytes_, size_bytes);
    return Status::success();
  }
  Status allocate(std::uint64_t offset, std::size_t count) override {
    check_range(offset, count);
    return Status::success();
  }
  Status discard(std::uint64_t offset, std::size_t count) override {
    check_range(offset, count);
    std::memset(memory_ + offset, 0, count);
    return Status::success();
  }
  void store(std::uint64_t offset, const void* source, std::size_t count) override {
    check_range(offset, count);
    if (count != 0) std::memcpy(memory_ + offset, source, count);
  }
  void store_word(std::uint64_t offset, std::uint64_t word) override {
    PERDURE_ASSERT(offset % sizeof word == 0);
    store(offset, &word, sizeof word);
  }
  void copy(std::uint64_t offset, const void* source, std::size_t count) override {
    store(offset, source, count);
  }
  void flush(std::uint64_t offset, std::size_t count) override { check_range(offset, count); }
  Status fence() override { return Status::success(); }

 private:
  void check_range(std::uint64_t offset, std::uint64_t count) const {
    PERDURE_ASSERT(offset <= size_bytes_ && count <= size_bytes_ - offset);
  }
  // Zeros; kept from one device to the next, as mapping them takes longer than all else.
  static std::vector<std::byte*>& free_memory() {
    static std::vector<std::byte*> memory;
    return memory;
  }
  static std::byte* take_memory() {
    std::vector<std::byte*>& free = free_memory();
    if (free.empty()) {
      void* mapped =
          ::mmap(nullptr, bytes_max, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (mapped == MAP_FAILED) std::abort();
      return static_cast<std::byte*>(mapped);
    }
    std::byte* memory = free.back();
    free.pop_back();
    return memory;
  }

  std::byte* memory_;
  std::uint64_t size_bytes_;
};

}  // namespace perdure::fuzz
