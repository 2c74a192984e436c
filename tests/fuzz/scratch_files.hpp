// SPDX-License-Identifier: BSD-3-Clause
//
// For fuzzing: files in a directory of their own, in memory where there is a tmpfs. The directory
// goes when the process ends; libFuzzer ends without: PERDURE_TEST_DIR is where its runner cleans
// up.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

namespace perdure::fuzz {

class ScratchFiles {
 public:
  ScratchFiles() {
    std::error_code ignored;
    const char* given = std::getenv("PERDURE_TEST_DIR");
    const bool memory = std::filesystem::is_directory("/dev/shm", ignored);
    path_ = given != nullptr ? given : memory ? "/dev/shm" : "/tmp";
    path_ += "/perdure-fuzz-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~ScratchFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFiles(const ScratchFiles&) = delete;
  ScratchFiles& operator=(const ScratchFiles&) = delete;

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  void write(const std::string& name, std::span<const std::byte> bytes) const {
    const int file = ::open(path_of(name).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) std::abort();
    if (::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      std::abort();
    }
    ::close(file);
  }

 private:
  std::string path_;
};

}  // namespace perdure::fuzz
