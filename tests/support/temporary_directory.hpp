// SPDX-License-Identifier: BSD-3-Clause
//
// A new directory for a test, removed with all that is in it; and whole files. $PERDURE_TEST_DIR is
// where the runner of mutants, some of which abort, cleans up after them.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace perdure_test {

// $PERDURE_TEST_DIR, or where temporary files go.
inline std::string on_disk() {
  const char* given = std::getenv("PERDURE_TEST_DIR");
  return given != nullptr ? given : std::filesystem::temp_directory_path().string();
}

// $PERDURE_TEST_DIR, or a tmpfs if there is one.
inline std::string in_memory() {
  const bool memory = std::filesystem::is_directory("/dev/shm");
  return memory && std::getenv("PERDURE_TEST_DIR") == nullptr ? "/dev/shm" : on_disk();
}

class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& parent = in_memory())
      : path_(parent + "/perdure-test-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string read_file(const std::string& path) {
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary)
      .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace perdure_test
