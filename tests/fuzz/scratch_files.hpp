// For fuzzing: files in a directory of their own, in memory where there is a tmpfs. The directory
// goes when the process ends.
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
    path_ = std::filesystem::is_directory("/dev/shm", ignored) ? "/dev/shm" : "/tmp";
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
