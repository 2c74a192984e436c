// SPDX-License-Identifier: BSD-3-Clause
//
// A device around that of a file, on which a process can be killed at any call. If it loses, what
// was not flushed and fenced is not in the file: a kill leaves what a loss of power would leave of
// its bytes at worst.
//
// Threads: as Device; the counter is the process's.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "pmem/device.hpp"

namespace perdure {

// Calls of all devices of this process, the first one being 1; before the `at`th it is killed.
struct DeviceKill {
  static inline std::atomic<std::uint64_t> calls{0};
  static inline std::uint64_t at = 0;
  static void count() {
    if (++calls == at) (void)::raise(SIGKILL);
  }
};

class LosingDevice final : public Device {
 public:
  LosingDevice(std::unique_ptr<Device> file, bool loses) : file_(std::move(file)), loses_(loses) {
    if (!loses_) return;
    memory_ = static_cast<std::byte*>(::mmap(nullptr, room_bytes, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    PERDURE_ASSERT(memory_ != MAP_FAILED && file_->size_bytes() <= room_bytes);
    std::memcpy(memory_, file_->base(), file_->size_bytes());
  }
  ~LosingDevice() override {
    if (loses_) ::munmap(memory_, room_bytes);
  }
  LosingDevice(const LosingDevice&) = delete;
  LosingDevice& operator=(const LosingDevice&) = delete;

  DeviceDescription describe() const override { return file_->describe(); }
  DeviceFile file() const override { return file_->file(); }
  void renamed(const std::string& path) override { file_->renamed(path); }
  std::byte* base() const override { return loses_ ? memory_ : file_->base(); }
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }
  DeviceCounters counters() const override { return file_->counters(); }
  Status check() const override { return file_->check(); }

  Status resize(std::uint64_t size_bytes) override {
    DeviceKill::count();
    PERDURE_ASSERT(size_bytes <= room_bytes);
    return file_->resize(size_bytes);
  }
  void store(std::uint64_t offset, const void* source, std::size_t count) override {
    DeviceKill::count();
    std::memcpy(base() + offset, source, count);
  }
  void store_word(std::uint64_t offset, std::uint64_t word) override {
    DeviceKill::count();
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(base() + offset)).store(word);
  }
  void copy(std::uint64_t offset, const void* source, std::size_t count) override {
    store(offset, source, count);
    note(offset, count);
  }
  void flush(std::uint64_t offset, std::size_t count) override {
    DeviceKill::count();
    note(offset, count);
  }
  Status fence() override {
    std::vector<ByteRange> noted;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      noted.swap(noted_);
    }
    for (const ByteRange& range : noted) {
      DeviceKill::count();
      const std::size_t bytes = range.end - range.begin;
      if (loses_) file_->store(range.begin, memory_ + range.begin, bytes);
      file_->flush(range.begin, bytes);
    }
    DeviceKill::count();
    return file_->fence();
  }

 private:
  static constexpr std::uint64_t room_bytes = 64 << 20;
  void note(std::uint64_t offset, std::size_t count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    noted_.push_back({offset, offset + count});
  }

  std::unique_ptr<Device> file_;
  bool loses_;
  std::byte* memory_ = nullptr;
  std::mutex mutex_;
  std::vector<ByteRange> noted_;
};

}  // namespace perdure
