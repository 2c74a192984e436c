// SPDX-License-Identifier: BSD-3-Clause
#include "energy/sysfs.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "base/environment.hpp"
#include "base/files.hpp"
#include "base/quantity.hpp"

namespace perdure::energy {
namespace {

constexpr std::size_t text_bytes_max = std::size_t{1} << 20U;  // the kernel's are a page or so

std::string without_slash(std::string root) {
  return root.erase(root.find_last_not_of('/') + 1);
}

}  // namespace

Sysfs::Sysfs(std::string root) : root_(without_slash(std::move(root))) {}

SysfsText Sysfs::read(const std::string& path) {
  const FileHandle file = open_kernel_file(at(path), O_RDONLY);
  if (file.fd() < 0) return {errno, {}};
  SysfsText got;
  std::array<char, 4096> buffer{};
  while (got.text.size() < text_bytes_max) {
    const ssize_t count = ::read(file.fd(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) got.error_number = errno;
    if (count <= 0) break;
    got.text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  got.text.erase(got.text.find_last_not_of("\n ") + 1);
  return got;
}

int Sysfs::write(const std::string& path, const std::string& text) {
  const FileHandle file = open_kernel_file(at(path), O_WRONLY);
  if (file.fd() < 0) return errno;
  ssize_t count = 0;
  do {
    count = ::write(file.fd(), text.data(), text.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return errno;
  return count < static_cast<ssize_t>(text.size()) ? EIO : 0;
}

std::vector<std::string> Sysfs::list(const std::string& path) const {
  return kernel_names(at(path));
}

bool Sysfs::writable(const std::string& path) {
  return ::access(at(path).c_str(), W_OK) == 0;
}

std::string Sysfs::resolve(const std::string& path) const {
  std::array<char, PATH_MAX> full{};
  std::array<char, PATH_MAX> top{};
  if (::realpath(at(path).c_str(), full.data()) == nullptr) return {};
  if (::realpath((root_ + "/").c_str(), top.data()) == nullptr) return {};
  const std::string whole = full.data();
  const std::string root = top.data();
  if (root == "/") return whole.substr(1);
  return whole.starts_with(root + "/") ? whole.substr(root.size() + 1) : std::string();
}

std::string sysfs_root() {
  return without_slash(environment("PERDURE_SYSFS_ROOT"));
}

Sysfs& machine() {
  static Sysfs files(sysfs_root());
  return files;
}

std::optional<std::uint64_t> read_number(Sysfs& sysfs, const std::string& path) {
  const SysfsText got = sysfs.read(path);
  return got.ok() ? number_in<std::uint64_t>(got.text) : std::nullopt;
}

std::string read_text(Sysfs& sysfs, const std::string& path) {
  return sysfs.read(path).text;
}

}  // namespace perdure::energy
