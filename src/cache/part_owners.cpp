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

// proc_pid_stat(5), from the third field on: the name before it may hold anything.
struct ProcessStat {
  char state = 0;
  std::uint64_t flags = 0;
  std::uint64_t start = 0;
};

bool read_stat(const std::string& directory, ProcessStat& stat) {
  const std::string line = read_kernel_text(directory + "/stat");
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return false;
  std::size_t blank = name_end + 1;  // before the field
  for (int field = 3; field <= 22 && blank < line.size(); ++field) {
    const char* const word = line.c_str() + blank + 1;
    if (field == 3) stat.state = *word;
    if (field == 9) stat.flags = std::strtoull(word, nullptr, 10);
    if (field == 22) stat.start = std::strtoull(word, nullptr, 10);
    blank = line.find(' ', blank + 1);
  }
  return true;
}

// A thread that has ended, is ending (PF_EXITING), or has been sent SIGKILL.
bool is_thread_dying(const std::string& directory) {
  constexpr std::uint64_t exiting = 4;
  constexpr std::uint64_t sigkill_bit = std::uint64_t{1} << 8;
  ProcessStat stat;
  if (!read_stat(directory, stat)) return true;
  if (stat.state == 'Z' || stat.state == 'X' || (stat.flags & exiting) != 0) return true;
  std::istringstream status(read_kernel_text(directory + "/status"));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigPnd:") && !line.starts_with("ShdPnd:")) continue;
    if ((std::strtoull(line.c_str() + 7, nullptr, 16) & sigkill_bit) != 0) return true;
  }
  return false;
}

bool is_process_dying(const OwnerFormat& owner) {
  const std::string directory = "/proc/" + std::to_string(owner.process & 0xFFFFFFFFU);
  ProcessStat stat;
  if (!read_stat(directory, stat) || stat.start != owner.start) return true;
  bool dying = true;
  for (const std::string& task : kernel_names(directory + "/task")) {
    dying = dying && is_thread_dying(directory + "/task/" + task);
  }
  return dying;
}

}  // namespace

PartOwners::~PartOwners() {
  leave();
}

Status PartOwners::join() {
  ProcessStat self;
  (void)read_stat("/proc/self", self);
  const auto process = static_cast<std::uint64_t>(::getpid()) | pid_namespace() << 32;
  for (std::uint32_t number = 1; number <= owners_max; ++number) {
    OwnerFormat& entry = table_[number - 1];
    if (load(entry.process) != 0 || !try_lock(file_, number)) continue;
    if (load(entry.process) != 0) {  // somebody had it in the meantime, and died
      unlock(file_, number);
      continue;
    }
    entry.start = self.start;
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
