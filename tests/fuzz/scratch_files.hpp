// SPDX-License-Identifier: BSD-3-Clause
//
// For fuzzing: files in a directory of their own, in memory where there is a tmpfs. The directory
// goes when the process ends; libFuzzer ends without: PERDURE_TEST_DIR is where its runner cleans
// up.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <span>
#include <string>

#include "temporary_directory.hpp"

namespace perdure::fuzz {

class ScratchFiles {
 public:
  const std::string& path() const { return directory_.path(); }
  std::string path_of(const std::string& name) const { return directory_ / name; }

  void write(const std::string& name, std::span<const std::byte> bytes) const {
    const int file = ::open(path_of(name).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) std::abort();
    if (::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      std::abort();
    }
    ::close(file);
  }

 private:
  perdure_test::TemporaryDirectory directory_;
};

}  // namespace perdure::fuzz
