// SPDX-License-Identifier: BSD-3-Clause
//
// The device on a DAX or tmpfs file: a line that left the cache is in the medium, so the processor
// flushes, and a fence can't fail.
#pragma once

#include "pmem/flush.hpp"
#include "pmem/mapped_device.hpp"
#include "pmem/sum_and_copy.hpp"

namespace perdure {

class CacheFile final : public MappedDevice {
  static constexpr std::size_t by_kernel_from = 4096;  // fewer take longer than a page's fault

 public:
  using MappedDevice::MappedDevice;

  DeviceDescription describe() const override {
    const OpenFile& file = mapped().file();
    const char* kind = file.kind == FileKind::dax ? "DAX file " : "tmpfs file ";
    return {kind + file.path, file.persistence, cache_line_bytes};
  }

  void copy(std::uint64_t offset, const void* source, std::size_t count) override {
    std::byte* const to = writable(offset, count);
    const bool by_kernel = count >= by_kernel_from && mapped().is_untouched(offset, count);
    if (!by_kernel || !mapped().write(offset, source, count)) primitives_.copy(to, source, count);
    counter_set().add_copy(count);
  }

  bool copy_from(std::uint64_t offset, int fd, std::uint64_t from, std::size_t count) override {
    PERDURE_ASSERT(writable(offset, count) != nullptr);
    if (count < by_kernel_from || !mapped().is_untouched(offset, count)) return false;
    if (!mapped().copy_from(offset, fd, from, count)) return false;
    counter_set().add_copy(count);
    return true;
  }

  std::uint64_t copy_and_sum(std::uint64_t offset, const void* source, std::size_t count,
                             DataChecksum kind) override {
    if (primitives_.turn_bytes == 0) {
      return MappedDevice::copy_and_sum(offset, source, count, kind);
    }
    counter_set().add_copy(count);
    return sum_and_copy(writable(offset, count), source, count, kind, primitives_);
  }

  void stored_past_cache(std::uint64_t offset, std::size_t count) override {
    if (primitives_.stored_past_cache == nullptr) return flush(offset, count);
    primitives_.stored_past_cache(writable(offset, count), count);
  }

  // In memory there is nothing to write back to.
  void stored_by_dma(std::uint64_t offset, std::size_t count) override {
    if (mapped().file().persistence == PersistenceClass::power_failure) return flush(offset, count);
    PERDURE_ASSERT(writable(offset, count) != nullptr);
    counter_set().add_copy(count);
  }

  void flush(std::uint64_t offset, std::size_t count) override {
    primitives_.flush(writable(offset, count), count);
    const ByteRange lines = granules_of(offset, count, cache_line_bytes);
    counter_set().add_flush(lines.end - lines.begin);
  }

  void flush_each(std::span<const ByteRange> ranges) override {
    std::uint64_t bytes = 0;
    for (const ByteRange& range : ranges) {
      const std::uint64_t count = range.end - range.begin;
      primitives_.flush(writable(range.begin, count), count);
      const ByteRange lines = granules_of(range.begin, count, cache_line_bytes);
      bytes += lines.end - lines.begin;
    }
    counter_set().add_flush(bytes, ranges.size());
  }

  Status fence() override {
    primitives_.fence();
    counter_set().add_fence();
    return Status::success();
  }

 private:
  const FlushPrimitives& primitives_ = flush_primitives();
};

}  // namespace perdure
