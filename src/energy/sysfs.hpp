// SPDX-License-Identifier: BSD-3-Clause
//
// Sysfs: the kernel's files of power and frequency, read and written through a root prefix.
//
// The seam of everything in energy/ that touches the machine. Paths are without a leading slash,
// "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq". The root is $PERDURE_SYSFS_ROOT, or
// "/"; tests give a tree that behaves as the kernel does (testing/fake_tree.hpp).
//
// Threads: any. Failure: the errno of the kernel decides what a caller says, so it is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace perdure::energy {

// What a read or a write came to. error_number 0: it was done.
struct SysfsText {
  int error_number = 0;
  std::string text;  // of a read; without the newline at its end
  bool ok() const { return error_number == 0; }
};

class Sysfs {
 public:
  explicit Sysfs(std::string root);
  Sysfs(const Sysfs&) = delete;
  Sysfs& operator=(const Sysfs&) = delete;
  virtual ~Sysfs() = default;

  virtual SysfsText read(const std::string& path);
  // One write(2) of the whole text; 0, or the errno.
  virtual int write(const std::string& path, const std::string& text);
  virtual bool writable(const std::string& path);
  // Names in a folder, sorted; none if it can't be read.
  std::vector<std::string> list(const std::string& path) const;
  // Where a link leads: the folder's path below the root, or "" if there is none.
  std::string resolve(const std::string& path) const;

 private:
  std::string at(const std::string& path) const { return root_ + "/" + path; }
  std::string root_;  // without a slash at its end
};

// $PERDURE_SYSFS_ROOT without a slash at its end; "" for "/".
std::string sysfs_root();
// The tree below sysfs_root(), as it was when it was first asked for.
Sysfs& machine();

// The file as a whole number that is not negative; nothing if it is not one or can't be read.
std::optional<std::uint64_t> read_number(Sysfs& sysfs, const std::string& path);
// The file's text; "" if it can't be read.
std::string read_text(Sysfs& sysfs, const std::string& path);

}  // namespace perdure::energy
