// SPDX-License-Identifier: BSD-3-Clause
//
// For tests only: a device that has no room for some of what it is asked for, as a test decides.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <utility>

#include "cache/testing/forwarding_device.hpp"
#include "cache/testing/scratch_part.hpp"

namespace perdure {

class SmallDevice final : public ForwardingDevice {
 public:
  using Grants = std::function<bool(std::uint64_t offset, std::size_t count)>;
  SmallDevice(std::unique_ptr<Device> device, Grants grants)
      : ForwardingDevice(std::move(device)), grants_(std::move(grants)) {}

  Status allocate(std::uint64_t offset, std::size_t count) override {
    if (!grants_(offset, count)) return {Code::no_space, "the test's device is full"};
    return ForwardingDevice::allocate(offset, count);
  }

 private:
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
