// SPDX-License-Identifier: BSD-3-Clause
#include "input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "arcs.hpp"

namespace graphs {
namespace {

[[noreturn]] void fail(const std::string& path, const char* remedy) {
  throw InputError(path + ": " + std::strerror(errno) + remedy);
}

}  // namespace

InputFile::InputFile(const std::string& path)
    : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) fail(path_, "; give the path of a graph that every rank can read");
  struct stat status{};
  if (::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd_);
    throw InputError(path_ + " is not an ordinary file; give the path of a graph");
  }
  bytes_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  ::close(fd_);
}

std::string InputFile::read(std::uint64_t begin, std::uint64_t end) const {
  std::string bytes(end - begin, '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got =
        ::pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, "");
    if (got == 0) {
      throw InputError(path_ + " became shorter than " + std::to_string(end) +
                       " bytes while it was read; start again when nobody writes to it");
    }
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace graphs
