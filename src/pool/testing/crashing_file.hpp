// SPDX-License-Identifier: BSD-3-Clause
//
// A rank's file whose device can crash: a CrashDevice, which begins with what the file has, in
// front of it. What is flushed to the device goes to the file at once, because other ranks look at
// its header. What a crash leaves is known to the CrashDevice alone: a test writes an image of that
// to the file when the device is gone.
//
// Threads: as Device.
#pragma once

#include <cstring>
#include <memory>
#include <utility>

#include "pmem/testing/crash_device.hpp"

namespace perdure {

class CrashingFile final : public Device {
 public:
  CrashingFile(std::unique_ptr<Device> file, std::uint64_t size_bytes_max)
      : file_(std::move(file)), medium_(size_bytes_max, 64) {
    medium_.load({file_->base(), file_->size_bytes()});
  }
  CrashDevice& medium() { return medium_; }

  DeviceDescription describe() const override { return medium_.describe(); }
  void renamed(const std::string& path) override { file_->renamed(path); }
  std::byte* base() const override { return medium_.base(); }
  std::uint64_t size_bytes() const override { return medium_.size_bytes(); }
  DeviceCounters counters() const override { return medium_.counters(); }
  Status check() const override { return file_->check(); }

  Status resize(std::uint64_t size_bytes) override {
    PERDURE_TRY(file_->resize(size_bytes));
    return medium_.resize(size_bytes);
  }
  void store(std::uint64_t offset, const void* source, std::size_t count) override {
    medium_.store(offset, source, count);
  }
  void store_word(std::uint64_t offset, std::uint64_t word) override {
    medium_.store_word(offset, word);
  }
  void copy(std::uint64_t offset, const void* source, std::size_t count) override {
    medium_.copy(offset, source, count);
    show(offset, count);
  }
  void flush(std::uint64_t offset, std::size_t count) override {
    medium_.flush(offset, count);
    show(offset, count);
  }
  Status fence() override { return medium_.fence(); }

 private:
  void show(std::uint64_t offset, std::size_t count) {
    std::memcpy(file_->base() + offset, medium_.base() + offset, count);
  }

  std::unique_ptr<Device> file_;
  CrashDevice medium_;
};

}  // namespace perdure
