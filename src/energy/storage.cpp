// SPDX-License-Identifier: BSD-3-Clause
#include "energy/storage.hpp"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/files.hpp"

namespace perdure::energy {
namespace {

constexpr int depth_max = 16;  // of volumes on volumes

struct Mount {
  unsigned major = 0, minor = 0;
  std::string point, type, source, options;
};

// /proc/self/mountinfo: "36 35 98:0 / /point options … - type source superoptions".
std::vector<Mount> mounts() {
  std::vector<Mount> all;
  std::istringstream file(read_kernel_text("/proc/self/mountinfo"));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string skipped, device, point_options, word, super_options;
    Mount mount;
    words >> skipped >> skipped >> device >> skipped >> mount.point >> point_options;
    while (words >> word && word != "-") {
    }
    words >> mount.type >> mount.source >> super_options;
    if (std::sscanf(device.c_str(), "%u:%u", &mount.major, &mount.minor) != 2) continue;
    mount.options = point_options + "," + super_options;
    all.push_back(mount);
  }
  return all;
}

// The mount of the device whose point is the longest beginning of the path; else any of the device.
Mount mount_of(const std::string& path, dev_t device) {
  Mount best;
  for (const Mount& mount : mounts()) {
    if (mount.major != major(device) || mount.minor != minor(device)) continue;
    const bool above = path.starts_with(mount.point);
    if (best.point.empty() || (above && mount.point.size() >= best.point.size())) best = mount;
  }
  return best;
}

std::string option_of(const std::string& options, const std::string& key) {
  std::istringstream words(options);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == key || word.starts_with(key + "=always")) return "yes";
    if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
  }
  return {};
}

bool is_memory(const std::string& path, const Mount& mount) {
  struct statfs file_system{};
  if (::statfs(path.c_str(), &file_system) != 0) return false;
  if (file_system.f_type == TMPFS_MAGIC || file_system.f_type == RAMFS_MAGIC) return true;
  const std::string dax = option_of(mount.options, "dax");
  return !dax.empty() && dax != "never";
}

void collect_disks(Sysfs& sysfs, const std::string& folder, int depth, std::set<std::string>& to) {
  if (depth > depth_max) return;
  const auto slaves = sysfs.list(folder + "/slaves");
  for (const std::string& slave : slaves) {
    const std::string under = sysfs.resolve(folder + "/slaves/" + slave);
    if (!under.empty()) collect_disks(sysfs, under, depth + 1, to);
  }
  if (!slaves.empty()) return;
  const std::filesystem::path place = folder;
  const bool is_partition = sysfs.read(folder + "/partition").ok();
  to.insert(is_partition ? place.parent_path().filename() : place.filename());
}

// model and firmware of a disk, wherever its driver shows them.
void describe(Sysfs& sysfs, const std::string& disk, Storage& storage) {
  for (const std::string& folder : {"sys/block/" + disk, "sys/class/block/" + disk}) {
    for (const char* name : {"/device/model", "/device/name"}) {
      if (storage.model.empty()) storage.model = read_text(sysfs, folder + name);
    }
    for (const char* name : {"/device/firmware_rev", "/device/rev"}) {
      if (storage.firmware.empty()) storage.firmware = read_text(sysfs, folder + name);
    }
  }
}

dev_t block_device_of(const Mount& mount, dev_t device) {
  struct stat source{};
  if (::stat(mount.source.c_str(), &source) == 0 && S_ISBLK(source.st_mode)) return source.st_rdev;
  return device;
}

Result<Storage> storage_at(Sysfs& sysfs, const std::string& path, int depth) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return errno_status("look at " + path, errno);
  Storage storage;
  dev_t device = status.st_dev;
  if (S_ISBLK(status.st_mode)) {
    device = status.st_rdev;
    storage.file_system = "none";
  } else {
    const Mount mount = mount_of(path, device);
    storage.file_system = mount.type;
    storage.options = mount.options;
    storage.is_memory = is_memory(path, mount);
    const std::string upper = option_of(mount.options, "upperdir");
    if (mount.type == "overlay" && !upper.empty() && depth < depth_max) {
      auto under = storage_at(sysfs, upper, depth + 1);
      if (under.ok()) return under;
    }
    if (major(device) == 0) device = block_device_of(mount, device);
  }
  if (storage.is_memory) {
    storage.name = memory_device;
    return storage;
  }
  const auto disks = disks_of(sysfs, major(device), minor(device));
  storage.name = disks.empty() ? std::to_string(major(device)) + ":" + std::to_string(minor(device))
                               : listed(disks, {}, "+");
  if (!disks.empty()) describe(sysfs, disks.front(), storage);
  return storage;
}

}  // namespace

std::vector<std::string> disks_of(Sysfs& sysfs, unsigned major, unsigned minor) {
  const std::string folder =
      sysfs.resolve("sys/dev/block/" + std::to_string(major) + ":" + std::to_string(minor));
  if (folder.empty()) return {};
  std::set<std::string> disks;
  collect_disks(sysfs, folder, 0, disks);
  return {disks.begin(), disks.end()};
}

Result<Storage> storage_of(Sysfs& sysfs, const std::string& path) {
  std::error_code error;
  std::filesystem::path place = std::filesystem::weakly_canonical(path, error);
  if (error) place = std::filesystem::absolute(path);
  while (!std::filesystem::exists(place, error) && place.has_parent_path() &&
         place != place.parent_path()) {
    place = place.parent_path();
  }
  return storage_at(sysfs, place, 0);
}

}  // namespace perdure::energy
