// SPDX-License-Identifier: BSD-3-Clause
//
// Level files of tests: in a directory of their own, or on a device in memory.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "levels/level_file.hpp"
#include "levels/sealed_format.hpp"
#include "temporary_directory.hpp"

namespace perdure {

using Bytes = std::vector<std::byte>;

// The same for the same seed.
inline Bytes bytes_of(std::uint64_t count, std::uint64_t seed) {
  Bytes bytes(count);
  std::mt19937_64 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

inline SealedHeader level_header(const LevelFileName& name, std::uint32_t ranks,
                                 std::uint64_t version, std::uint64_t payload_bytes) {
  const JobRecord job{{{11, 12}}, "test", ranks, 13, {}};
  return {name.kind, job, name.rank, {3, version}, payload_bytes};
}

// Begin, write and complete, chunk by chunk.
inline Status fill(LevelFile& file, const SealedHeader& header, std::span<const std::byte> all) {
  PERDURE_TRY(file.begin(header.payload_bytes));
  for (std::uint64_t at = 0; at < all.size(); at += sealed_chunk_bytes) {
    file.write(at, all.subspan(at, std::min<std::uint64_t>(sealed_chunk_bytes, all.size() - at)));
  }
  return file.complete(header);
}

inline Bytes bytes_in(const LevelFile& file) {
  const auto payload = file.payload();
  return {payload.begin(), payload.end()};
}

// Room for `size_max` bytes, which nothing outlives.
class MemoryDevice final : public Device {
 public:
  explicit MemoryDevice(std::uint64_t size_max)
      : bytes_(static_cast<std::byte*>(std::calloc(size_max, 1)), &std::free),
        size_max_(size_max) {}
  DeviceDescription describe() const override {
    return {"memory", PersistenceClass::process_crash, 64};
  }
  std::byte* base() const override { return bytes_.get(); }
  std::uint64_t size_bytes() const override { return size_; }
  DeviceCounters counters() const override { return {}; }
  Status resize(std::uint64_t size) override {
    if (size > size_max_) return {Code::no_space, "the memory is full"};
    size_ = std::max(size_, size);
    return Status::success();
  }
  void store(std::uint64_t offset, const void* source, std::size_t count) override {
    copy(offset, source, count);
  }
  void store_word(std::uint64_t offset, std::uint64_t word) override {
    copy(offset, &word, sizeof word);
  }
  void copy(std::uint64_t offset, const void* source, std::size_t count) override {
    PERDURE_ASSERT(offset + count <= size_);
    if (count != 0) std::memcpy(base() + offset, source, count);
  }
  void flush(std::uint64_t, std::size_t) override {}
  Status fence() override { return Status::success(); }

 private:
  std::unique_ptr<std::byte, decltype(&std::free)> bytes_;
  std::uint64_t size_max_;
  std::uint64_t size_ = 0;
};

inline LevelFile file_in_memory(const LevelFileName& name, std::uint64_t size_max) {
  const std::string path = level_file_name(name.kind, name.rank, name.slot);
  return LevelFile::on_device(std::make_unique<MemoryDevice>(size_max), name, path).take();
}

class ScratchLevel {
 public:
  Directory open() const { return Directory::open(directory_.path()).take(); }
  LevelFile file(const LevelFileName& name) const {
    auto opened = LevelFile::open_or_make(open(), name, Trust::own);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.take();
  }

 private:
  perdure_test::TemporaryDirectory directory_{perdure_test::on_disk()};
};

}  // namespace perdure
