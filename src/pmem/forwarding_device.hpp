// SPDX-License-Identifier: BSD-3-Clause
//
// A device that is another one, except for what a class that derives from it changes.
#pragma once

#include <memory>
#include <utility>

#include "pmem/device.hpp"

namespace perdure {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  DeviceDescription describe() const override { return device_->describe(); }
  std::byte* base() const override { return device_->base(); }
  std::uint64_t size_bytes() const override { return device_->size_bytes(); }
  DeviceCounters counters() const override { return device_->counters(); }
  std::uint64_t allocated_bytes() const override { return device_->allocated_bytes(); }
  std::uint64_t next_allocated(std::uint64_t offset) const override {
    return device_->next_allocated(offset);
  }
  std::uint64_t free_bytes() const override { return device_->free_bytes(); }
  bool takes_dma() const override { return device_->takes_dma(); }
  Status resize(std::uint64_t size_bytes) override { return device_->resize(size_bytes); }
  void touch_pages() override { device_->touch_pages(); }
  Status allocate(std::uint64_t offset, std::size_t count) override {
    return device_->allocate(offset, count);
  }
  Status discard(std::uint64_t offset, std::size_t count) override {
    return device_->discard(offset, count);
  }
  void store(std::uint64_t offset, const void* source, std::size_t count) override {
    device_->store(offset, source, count);
  }
  void store_word(std::uint64_t offset, std::uint64_t word) override {
    device_->store_word(offset, word);
  }
  void copy(std::uint64_t offset, const void* source, std::size_t count) override {
    device_->copy(offset, source, count);
  }
  void flush(std::uint64_t offset, std::size_t count) override { device_->flush(offset, count); }
  Status fence() override { return device_->fence(); }

 protected:
  Device& device() const { return *device_; }

 private:
  std::unique_ptr<Device> device_;
};

}  // namespace perdure
