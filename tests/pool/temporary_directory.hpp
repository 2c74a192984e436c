// SPDX-License-Identifier: BSD-3-Clause
//
// A directory for a test's pools, on tmpfs where there is one, removed with all it holds; and whole
// files. PERDURE_TEST_DIR: where the runner of mutants, some of which abort, cleans up after them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace perdure_test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const char* given = std::getenv("PERDURE_TEST_DIR");
    std::string pattern = given != nullptr                            ? given
                          : std::filesystem::is_directory("/dev/shm") ? "/dev/shm"
                                                                      : "/tmp";
    pattern += "/perdure-test-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }

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
