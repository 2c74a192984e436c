// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/delay_bucket.hpp"

#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/files.hpp"

namespace perdure {
namespace {

constexpr std::uint32_t most_entries = 1024;
const std::string memory_directory = "/dev/shm";
constexpr std::uint64_t bucket_magic = 0x31746b6275636b74U;

struct Entry {
  std::int32_t pid;     // 0: free
  std::uint32_t opens;  // devices of this process
  std::uint64_t start;  // of the process, in clock ticks since boot
};

// The start time of a living process, or 0.
std::uint64_t start_of(int pid) {
  const auto stat = read_process_stat("/proc/" + std::to_string(pid));
  return stat && !stat->has_ended() ? stat->start_ticks : 0;
}

// Exclusive while attaching or detaching; the kernel releases it when its holder dies.
class Locked {
 public:
  Locked(int fd, const std::string& name) : fd_(fd), status_(lock_file(fd, name, {})) {}
  ~Locked() { unlock_file(fd_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  const Status& status() const { return status_; }

 private:
  int fd_;
  Status status_;
};

}  // namespace

// All zero is a valid empty bucket, except for the magic.
struct DelayBucket::Shared {
  std::uint64_t magic;
  std::uint32_t retired;  // unlinked: attach to a new object instead
  std::atomic<std::uint32_t> sharers;
  std::atomic<std::uint64_t> free_at_ns;
  Entry entries[most_entries];

  // Drops the dead and counts the living.
  void drop_dead() {
    std::uint32_t living = 0;
    for (Entry& entry : entries) {
      if (entry.pid == 0) continue;
      if (start_of(entry.pid) != entry.start) {
        entry = Entry{};
      } else {
        ++living;
      }
    }
    sharers.store(living, std::memory_order_relaxed);
  }

  Entry* entry_of(int pid) {
    for (Entry& entry : entries) {
      if (entry.pid == pid) return &entry;
    }
    return nullptr;
  }

  bool add(int pid) {
    drop_dead();
    Entry* entry = entry_of(pid);
    if (entry == nullptr) {
      entry = entry_of(0);
      if (entry == nullptr) return false;
      *entry = Entry{pid, 0, start_of(pid)};
    }
    ++entry->opens;
    drop_dead();
    return true;
  }

  void remove(int pid) {
    Entry* entry = entry_of(pid);
    if (entry != nullptr && --entry->opens == 0) *entry = Entry{};
    drop_dead();
  }
};

namespace {

Status too_many(const std::string& name) {
  return Status(Code::no_space, "delay bucket ", name, " is shared by ", most_entries,
                " processes already; use fewer ranks per node");
}

Status foreign(const std::string& name) {
  return Status(Code::foreign, name,
                " in shared memory is not a delay bucket of this version of Perdure; choose "
                "another name, or remove it");
}

// Gives a new object its size, and maps it. A creator that was killed in between left zeroes.
Result<void*> map_object(int fd, const std::string& name, std::size_t size) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return errno_status("delay bucket " + name, errno);
  if (status.st_size == 0 && ::ftruncate(fd, static_cast<off_t>(size)) != 0) {
    return errno_status("delay bucket " + name, errno);
  }
  if (status.st_size != 0 && static_cast<std::size_t>(status.st_size) != size) {
    return foreign(name);
  }
  void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return errno_status("delay bucket " + name, errno);
  return mapped;
}

}  // namespace

DelayBucket::DelayBucket(std::string name, Shared* shared, FileHandle object) noexcept
    : name_(std::move(name)), shared_(shared), object_(std::move(object)), owner_pid_(::getpid()) {}

Result<std::unique_ptr<DelayBucket>> DelayBucket::attach(const std::string& name) {
  if (name.empty()) {
    auto* own = new Shared{};
    own->sharers.store(1, std::memory_order_relaxed);
    return std::unique_ptr<DelayBucket>(new DelayBucket(name, own, FileHandle()));
  }
  PERDURE_TRY_ASSIGN(auto shared_memory, Directory::open(memory_directory));
  if (name.front() != '/' || name.find('/', 1) != std::string::npos) {
    return Status(Code::invalid_argument, "delay bucket ", name,
                  ": its name must look like /perdure-1");
  }
  for (;;) {
    PERDURE_TRY_ASSIGN(auto opened, shared_memory.open_or_create(name.substr(1)));
    FileHandle object = std::move(opened);
    const Locked locked(object.fd(), memory_directory + name);
    PERDURE_TRY(locked.status());
    Result<void*> mapped = map_object(object.fd(), name, sizeof(Shared));
    if (!mapped.ok()) return mapped.status();
    auto* shared = static_cast<Shared*>(mapped.value());
    const bool known = shared->magic == 0 || shared->magic == bucket_magic;
    const bool retired = shared->retired != 0;
    const bool added = known && !retired && shared->add(::getpid());
    if (added) {
      shared->magic = bucket_magic;
      return std::unique_ptr<DelayBucket>(new DelayBucket(name, shared, std::move(object)));
    }
    ::munmap(mapped.value(), sizeof(Shared));
    if (!known) return foreign(name);
    if (!retired) return too_many(name);
  }
}

DelayBucket::~DelayBucket() {
  if (object_.fd() < 0) {
    delete shared_;
    return;
  }
  if (owner_pid_ == ::getpid()) {
    const Locked locked(object_.fd(), memory_directory + name_);
    if (locked.status().ok()) shared_->remove(owner_pid_);  // else as one that died
    if (locked.status().ok() && sharers() == 0) {
      shared_->retired = 1;
      (void)remove_file(memory_directory + name_);
    }
  }
  ::munmap(shared_, sizeof(Shared));
}

std::uint32_t DelayBucket::sharers() const {
  return shared_->sharers.load(std::memory_order_relaxed);
}

std::uint64_t DelayBucket::draw(std::uint64_t from_ns, std::uint64_t busy_ns) {
  std::uint64_t free_at = shared_->free_at_ns.load(std::memory_order_relaxed);
  std::uint64_t end = 0;
  do {
    end = (free_at > from_ns ? free_at : from_ns) + busy_ns;
  } while (!shared_->free_at_ns.compare_exchange_weak(free_at, end, std::memory_order_relaxed));
  return end;
}

}  // namespace perdure
