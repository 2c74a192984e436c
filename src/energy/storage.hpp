// SPDX-License-Identifier: BSD-3-Clause
//
// Storage: which device a path lies on, as profiles name it.
//
// By the number of the file system's device (st_dev) and sys/dev/block: a partition is its disk,
// a volume of dm or md the disks under it, a bind mount what it shows, an overlay where it writes.
// Memory (tmpfs, ramfs, DAX) is ":memory".
//
// Threads: any. Failure: a path that can't be looked at is an error; a device that the kernel does
// not describe is called by its number.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "energy/sysfs.hpp"

namespace perdure::energy {

constexpr const char* memory_device = ":memory";

struct Storage {
  std::string name;  // "nvme0n1", "sda+sdb", ":memory"
  std::string model;
  std::string firmware;
  std::string file_system;  // "ext4"
  std::string options;      // of its mount
  bool is_memory = false;
};

// Of `path`, or of the nearest folder above it that exists.
Result<Storage> storage_of(Sysfs& sysfs, const std::string& path);
// The disks under the block device MAJOR:MINOR, sorted; none if the kernel does not describe it.
std::vector<std::string> disks_of(Sysfs& sysfs, unsigned major, unsigned minor);

}  // namespace perdure::energy
