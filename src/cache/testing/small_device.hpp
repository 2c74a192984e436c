// SPDX-License-Identifier: BSD-3-Clause
//
// For tests only: a device that has no room for some of what it is asked for, as a test decides.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <utility>

#include "cache/part_files.hpp"
#include "cache/testing/scratch_part.hpp"
#include "pmem/forwarding_device.hpp"

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

// Room for so many blocks at a time, which all processes that come of this one share.
class SharedRoom {
 public:
  static constexpr std::size_t blocks_max = 1024;
  explicit SharedRoom(std::uint32_t blocks) {
    void* memory =
        ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    table_ = new (memory) Table;
    table_->left = static_cast<int>(blocks);
  }
  ~SharedRoom() { ::munmap(table_, sizeof(Table)); }
  SharedRoom(const SharedRoom&) = delete;
  SharedRoom& operator=(const SharedRoom&) = delete;

  bool take(std::size_t block) {
    if (table_->has[block].load()) return true;
    if (table_->left.fetch_sub(1) <= 0) {
      table_->left.fetch_add(1);
      return false;
    }
    if (table_->has[block].exchange(true)) table_->left.fetch_add(1);
    return true;
  }
  void give(std::size_t block) {
    if (table_->has[block].exchange(false)) table_->left.fetch_add(1);
  }
  int left() const { return table_->left.load(); }

 private:
  struct Table {
    std::atomic<int> left;
    std::atomic<bool> has[blocks_max];
  };
  Table* table_;
};

// A part's device with a room for its blocks.
class RoomDevice final : public ForwardingDevice {
 public:
  RoomDevice(std::unique_ptr<Device> device, SharedRoom& room)
      : ForwardingDevice(std::move(device)), room_(room) {
    const PartHeaderFormat header = must(read_part_header(*this));
    begin_ = header.block_offset;
    block_bytes_ = header.block_bytes;
  }
  std::function<void()> on_allocate;  // of a block that gets room
  std::function<void()> on_discard;   // of a block, before

  Status allocate(std::uint64_t offset, std::size_t count) override {
    if (offset >= begin_) {
      if (!room_.take((offset - begin_) / block_bytes_)) {
        return {Code::no_space, "the test's device is full"};
      }
      if (on_allocate) on_allocate();
    }
    return ForwardingDevice::allocate(offset, count);
  }
  Status discard(std::uint64_t offset, std::size_t count) override {
    if (offset < begin_) return ForwardingDevice::discard(offset, count);
    if (on_discard) on_discard();
    const Status done = ForwardingDevice::discard(offset, count);
    room_.give((offset - begin_) / block_bytes_);
    return done;
  }

 private:
  SharedRoom& room_;
  std::uint64_t begin_ = 0;
  std::uint64_t block_bytes_ = 1;
};

// On a device that has it, as a process that joins has it; blocks are evicted soon.
inline std::unique_ptr<CachePart> join_evicting_part(const std::string& file,
                                                     const BackingFile& backing, SharedRoom& room,
                                                     std::uint64_t price = 6,
                                                     std::uint64_t room_price = 0) {
  auto part = must(CachePart::attach(
      std::make_unique<RoomDevice>(must(open_file_device(file, {.shared = true})), room)));
  part->set_backing(&backing);
  part->set_evicting({price, price, room_price});
  must(part->join_owners(must(open_part_lock(file))));
  return part;
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
