// SPDX-License-Identifier: BSD-3-Clause
#include "pool/open_place.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "pool/job_record.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t look_ns = 1'000'000;

}  // namespace

void OpenPlace::set(const std::string& directory, const std::string& file) {
  directory_ = directory;
  auto record = open_file(job_record_path(directory), FileAccess::read, Trust::anyone);
  if (record.ok()) record_ = record.take();
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0) return;
  file_ = file;
  device_ = found.st_dev;
  inode_ = found.st_ino;
}

Status OpenPlace::check(std::uint64_t now_ns) {
  struct stat found{};
  if (!file_.empty() && now_ns - seen_ns_ >= look_ns) {
    seen_ns_ = now_ns;
    const bool there = ::stat(file_.c_str(), &found) == 0;
    if (!there && (errno == ENOENT || errno == ENOTDIR)) {
      return Status(Code::io_error, file_,
                    " is not there any more, as its directory was moved or removed while the pool "
                    "is open: a restart would not find this version; move it back, or end the job "
                    "and start it with the new path");
    }
    if (there && (found.st_ino != inode_ || found.st_dev != device_)) {
      return Status(Code::io_error, file_,
                    " is another file than the one that is open, as the pool was moved and another "
                    "one put in its place: a restart would go on from that one; put this one back, "
                    "or end the job");
    }
  }
  if (record_.fd() < 0 || ::fstat(record_.fd(), &found) != 0 || found.st_nlink > 0) {
    return Status::success();
  }
  return Status(Code::io_error, job_record_path(directory_),
                " was removed while the pool is open: a restart would find nothing; keep cleaners "
                "and other programs away from the pool");
}

}  // namespace perdure
