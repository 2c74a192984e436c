// SPDX-License-Identifier: BSD-3-Clause
//
// For tests only: a device that has no room for some of what it is asked for, as a test decides.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <utility>

#include "cache/testing/scratch_part.hpp"

namespace perdure {

class SmallDevice final : public Device {
 public:
  using Grants = std::function<bool(std::uint64_t offset, std::size_t count)>;
  SmallDevice(std::unique_ptr<Device> device, Grants grants)
      : device_(std::move(device)), grants_(std::move(grants)) {}

  DeviceDescription describe() const override { return device_->describe(); }
  std::byte* base() const override { return device_->base(); }
  std::uint64_t size_bytes() const override { return device_->size_bytes(); }
  DeviceCounters counters() const override { return device_->counters(); }
  std::uint64_t allocated_bytes() const override { return device_->allocated_bytes(); }
  std::uint64_t next_allocated(std::uint64_t offset) const override {
    return device_->next_allocated(offset);
  }
  Status resize(std::uint64_t size_bytes) override { return device_->resize(size_bytes); }
  Status allocate(std::uint64_t offset, std::size_t count) override {
    if (!grants_(offset, count)) return {Code::no_space, "the test's device is full"};
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

 private:
  std::unique_ptr<Device> device_;
  Grants grants_;
};

// Of a part: blocks for which `has_room` says so, and all else.
inline SmallDevice::Grants room_for(const PartHeaderFormat& header,
                                    std::function<bool(std::uint64_t block)> has_room) {
  return [begin = header.block_offset, bytes = header.block_bytes, has_room = std::move(has_room)](
             std::uint64_t offset, std::size_t) {
    return offset < begin || has_room((offset - begin) / bytes);
  };
}

// Half of the blocks, each time another half.
inline std::function<bool(std::uint64_t block)> random_room(std::uint64_t seed) {
  return [random = std::make_shared<std::mt19937_64>(seed)](std::uint64_t) {
    return (*random)() % 2 == 0;
  };
}

inline std::unique_ptr<CachePart> attach_small_part(
    const std::string& file, const BackingFile& backing,
    const std::function<bool(std::uint64_t block)>& has_room) {
  auto device = must(open_file_device(file, {.shared = true}));
  const PartHeaderFormat header = must(read_part_header(*device));
  auto part = must(CachePart::attach(
      std::make_unique<SmallDevice>(std::move(device), room_for(header, has_room))));
  part->set_backing(&backing);
  return part;
}

}  // namespace perdure
