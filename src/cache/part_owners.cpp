// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_owners.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/files.hpp"
#include "base/fork_guard.hpp"

namespace perdure {
namespace {

// Where no byte of the file is.
constexpr std::uint64_t lock_begin = std::uint64_t{1} << 60;

struct flock lock_of(std::uint32_t number, short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(lock_begin + number);
  lock.l_len = 1;
  return lock;
}

bool try_lock(const FileHandle& file, std::uint32_t number) {
  struct flock lock = lock_of(number, F_WRLCK);
  return ::fcntl(file.fd(), F_OFD_SETLK, &lock) == 0;
}

void unlock(const FileHandle& file, std::uint32_t number) {
  struct flock lock = lock_of(number, F_UNLCK);
  (void)::fcntl(file.fd(), F_OFD_SETLK, &lock);
}

bool is_locked(const FileHandle& file, std::uint32_t number) {
  struct flock lock = lock_of(number, F_WRLCK);
  return ::fcntl(file.fd(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

std::uint64_t load(const std::uint64_t& word) {
  return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(word))
      .load(std::memory_order_acquire);
}

// Process ids mean something within one namespace of them.
std::uint64_t pid_namespace() {
  struct stat status{};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

// A thread that has ended, is ending (PF_EXITING), or has been sent SIGKILL.
bool is_thread_dying(const std::string& directory) {
  constexpr std::uint64_t exiting = 4;
  constexpr std::uint64_t sigkill_bit = std::uint64_t{1} << 8;
  const auto stat = read_process_stat(directory);
  if (!stat || stat->has_ended() || (stat->flags & exiting) != 0) return true;
  std::istringstream status(read_kernel_text(directory + "/status"));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigPnd:") && !line.starts_with("ShdPnd:")) continue;
    if ((std::strtoull(line.c_str() + 7, nullptr, 16) & sigkill_bit) != 0) return true;
  }
  return false;
}

bool is_process_dying(const OwnerFormat& owner) {
  const std::string directory = "/proc/" + std::to_string(owner.process & 0xFFFFFFFFU);
  const auto stat = read_process_stat(directory);
  if (!stat || stat->start_ticks != owner.start) return true;
  bool dying = true;
  const std::string tasks = directory + "/task/";
  for (const std::string& task : kernel_names(tasks)) {
    dying = dying && is_thread_dying(tasks + task);
  }
  return dying;
}

}  // namespace

// The locks are this process's alone, and so is what has them.
PartOwners::PartOwners(FileHandle file, OwnerFormat* table)
    : file_(std::move(file)), table_(table) {
  keep_from_children(file_.fd());
}

PartOwners::~PartOwners() {
  leave();
}

Status PartOwners::join() {
  const auto self = read_process_stat("/proc/self").value_or(ProcessStat{});
  const auto process = static_cast<std::uint64_t>(::getpid()) | pid_namespace() << 32;
  for (std::uint32_t number = 1; number <= owners_max; ++number) {
    OwnerFormat& entry = table_[number - 1];
    if (load(entry.process) != 0 || !try_lock(file_, number)) continue;
    if (load(entry.process) != 0) {  // somebody had it in the meantime, and died
      unlock(file_, number);
      continue;
    }
    entry.start = self.start_ticks;
    std::atomic_ref<std::uint64_t>(entry.process).store(process, std::memory_order_release);
    number_ = number;
    return Status::success();
  }
  return Status(Code::no_space, "more than ", owners_max,
                " processes of a node have a cached file open; use fewer, or open it with "
                "perdure_cache=off in some");
}

void PartOwners::leave() {
  if (number_ == 0) return;
  std::atomic_ref<std::uint64_t>(table_[number_ - 1].process).store(0, std::memory_order_release);
  unlock(file_, number_);
  number_ = 0;
}

bool PartOwners::take_over(std::uint32_t number) {
  if (number == 0 || number > owners_max || number == number_) return false;
  mutex_.lock();
  const std::uint64_t& process = table_[number - 1].process;
  if (load(process) != 0 && try_lock(file_, number)) {
    if (load(process) != 0) return true;
    unlock(file_, number);
  }
  mutex_.unlock();
  return false;
}

void PartOwners::give_back(std::uint32_t number, bool clean) {
  if (clean) {
    std::atomic_ref<std::uint64_t>(table_[number - 1].process).store(0, std::memory_order_release);
  }
  unlock(file_, number);
  mutex_.unlock();
}

bool PartOwners::any_left_behind() {
  for (std::uint32_t number = 1; number <= owners_max; ++number) {
    if (!take_over(number)) continue;
    give_back(number, false);
    return true;
  }
  return false;
}

OwnersLife PartOwners::life_of(const FileHandle& file, const OwnerFormat* table) {
  OwnersLife life = OwnersLife::none;
  for (std::uint32_t number = 1; number <= owners_max; ++number) {
    const OwnerFormat& owner = table[number - 1];
    const std::uint64_t process = load(owner.process);
    if (process == 0) continue;
    life = OwnersLife::dying;
    if (!is_locked(file, number)) continue;
    if (process >> 32 != (pid_namespace() & 0xFFFFFFFFU)) return OwnersLife::alive;
    if (!is_process_dying(owner)) return OwnersLife::alive;
  }
  return life;
}

}  // namespace perdure
