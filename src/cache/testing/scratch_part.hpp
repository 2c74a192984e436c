// SPDX-License-Identifier: BSD-3-Clause
//
// For tests only: a directory of their own, a file to cache in it, and parts of that file.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cache/cache_part.hpp"
#include "pmem/file_device.hpp"

namespace perdure {

// On tmpfs where there is one, removed with all that is in it.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::error_code ignored;
    const bool memory = std::filesystem::is_directory("/dev/shm", ignored);
    path_ = (memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) +
            "/perdure-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

using Bytes = std::vector<unsigned char>;

inline Bytes random_bytes(std::size_t count, std::mt19937_64& random) {
  Bytes bytes(count);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
  return bytes;
}

inline void write_file(const std::string& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline Bytes read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  Bytes bytes(file ? static_cast<std::size_t>(file.tellg()) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

// The value of a result that must be good.
template <typename T>
T must(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.status().message();
    std::abort();
  }
  return result.take();
}

inline void must(const Status& status) {
  EXPECT_TRUE(status.ok()) << status.message();
}

inline bool says(const Status& status, const std::string& words) {
  return status.message().find(words) != std::string::npos;
}

// The seed of a random test: $PERDURE_TEST_SEED, or a new one; printed.
inline std::uint64_t test_seed() {
  const char* given = std::getenv("PERDURE_TEST_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::printf("PERDURE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

inline std::unique_ptr<CachePart> attach_part(const std::string& file, const BackingFile& backing) {
  auto part = must(CachePart::attach(must(open_file_device(file, {.shared = true}))));
  part->set_backing(&backing);
  return part;
}

// Formats the file of a part and attaches to it.
inline std::unique_ptr<CachePart> new_part(const std::string& file, const BackingFile& backing,
                                           std::uint32_t node, const Layout& layout,
                                           std::uint64_t file_bytes, const PartGeometry& geometry) {
  PartIdentity identity;
  identity.path = backing.path();
  identity.file_device = backing.device();
  identity.file_inode = backing.inode();
  identity.node = node;
  identity.layout = layout;
  FileDeviceOptions options;
  options.create = true;
  options.shared = true;
  options.sparse_bytes = part_file_bytes(layout, geometry);
  auto device = must(open_file_device(file, options));
  must(CachePart::format(*device, identity, geometry, file_bytes));
  device.reset();
  return attach_part(file, backing);
}

}  // namespace perdure
