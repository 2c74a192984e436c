// SPDX-License-Identifier: BSD-3-Clause
//
// For tests only: a directory of their own, a file to cache in it, its parts, and processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cache/cache_part.hpp"
#include "pmem/file_device.hpp"
#include "temporary_directory.hpp"
#include "test_seed.hpp"

namespace perdure {

using perdure_test::TemporaryDirectory;

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

// What a cached file holds after a crash, in three ways in turn: all that it was handed, what it
// had at its last sync, or of each page one of them.
inline Bytes file_after_crash(const Bytes& handed, const Bytes& synced, std::uint64_t turn,
                              std::mt19937_64& random) {
  constexpr std::size_t page = 4096;
  if (turn % 3 == 0) return handed;
  if (turn % 3 == 1) return synced;
  Bytes mixed = handed;
  const std::size_t both = std::min(handed.size(), synced.size());
  for (std::size_t at = 0; at < both; at += page) {
    if (random() % 2 == 0) {
      std::copy_n(synced.data() + at, std::min(page, both - at), mixed.data() + at);
    }
  }
  return mixed;
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

// A file to cache in a part, and what it should hold.
class ExpectedFile {
 public:
  explicit ExpectedFile(Bytes bytes) : expected(std::move(bytes)) {
    write_file(file_path, expected);
    backing.emplace(must(BackingFile::open(file_path, BackingFile::Access::read_write)));
  }

  void write(CachePart& by, std::uint64_t offset, const Bytes& bytes,
             Acknowledge when = Acknowledge::sync) {
    must(by.write(offset, bytes.data(), bytes.size(), when));
    if (expected.size() < offset + bytes.size()) expected.resize(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  // As MPI_File_set_size does.
  void cut(CachePart& by, std::uint64_t bytes) {
    must(by.set_size(bytes));
    must(backing->set_size(bytes));
    expected.resize(bytes);
  }
  Bytes wanted(std::uint64_t offset, std::uint64_t bytes) const {
    Bytes some(bytes);
    for (std::uint64_t i = 0; i < bytes && offset + i < expected.size(); ++i) {
      some[i] = expected[offset + i];
    }
    return some;
  }
  Bytes file() const { return read_file(file_path); }
  Bytes in_file(std::uint64_t offset, std::uint64_t bytes) const {
    Bytes got(bytes);
    must(backing->read(offset, got.data(), bytes));
    return got;
  }

  TemporaryDirectory directory;
  std::string file_path = directory / "file";
  std::string part_path = directory / "part";
  Bytes expected;
  std::optional<BackingFile> backing;
};

// Runs `body`, which ends its process, in so many; its failures are theirs until expect_success().
inline std::vector<pid_t> in_processes(unsigned count, const std::function<void(unsigned)>& body) {
  std::vector<pid_t> children;
  for (unsigned process = 0; process < count; ++process) {
    const pid_t child = ::fork();
    if (child == 0) body(process);
    children.push_back(child);
  }
  return children;
}
inline void expect_success(const std::vector<pid_t>& children) {
  for (const pid_t child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace perdure
