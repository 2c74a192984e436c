// SPDX-License-Identifier: BSD-3-Clause
//
// InputFile: ranges of a file that is read, not trusted; so nothing is mapped, as a file that is
// cut off meanwhile would then be a SIGBUS. Throws InputError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace graphs {

class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }

  // Bytes [begin, end) of the file, which must lie within it.
  std::string read(std::uint64_t begin, std::uint64_t end) const;
  std::string read() const { return read(0, bytes_); }

 private:
  std::string path_;
  int fd_;
  std::uint64_t bytes_ = 0;
};

}  // namespace graphs
