// SPDX-License-Identifier: BSD-3-Clause
//
// The device on an ordinary file: the kernel writes pages back when it is asked to.
//
// Threads: a fence takes the ranges that every thread noted, and holds fence_mutex_ until they are
// durable; else a second thread would find its own range taken, and return before it is written.
// Failure: Linux forgets a page that it could not write, so a repeated fence would wrongly succeed.
// Therefore the first failure stays, and every later fence reports it.
#pragma once

#include <mutex>
#include <vector>

#include "pmem/mapped_device.hpp"
#include "pmem/page_ranges.hpp"

namespace perdure {

class WrittenBackFile final : public MappedDevice {
 public:
  explicit WrittenBackFile(MappedFile mapped);

  DeviceDescription describe() const override;
  bool takes_dma() const override { return false; }
  void copy(std::uint64_t offset, const void* source, std::size_t count) override;
  void flush(std::uint64_t offset, std::size_t count) override;
  Status fence() override;

 private:
  void note(ByteRange pages);
  std::vector<ByteRange> take_noted();
  Status write_back(const std::vector<ByteRange>& ranges) const;

  std::size_t page_bytes_;
  std::mutex noted_mutex_;
  PageRanges noted_;
  std::mutex fence_mutex_;
  Status failure_;
};

}  // namespace perdure
