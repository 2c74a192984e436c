// SPDX-License-Identifier: BSD-3-Clause
#include "energy/tokens.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/environment.hpp"

namespace perdure::energy {
namespace {

constexpr off_t guard_byte = 0;
constexpr off_t users_byte = 1;
constexpr off_t token_bytes = 16;
constexpr off_t ticket_bytes = 1 << 20;
constexpr unsigned tokens_max = 4096;
constexpr std::size_t page_bytes = 4096;
constexpr std::uint64_t ns_per_ms = 1'000'000;
constexpr std::uint64_t guard_slice_ns = 100'000;
constexpr const char* shared_memory = "/dev/shm";

struct flock range_lock(short type, off_t first, off_t count) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = count;
  return lock;
}

bool set_lock(int fd, int command, short type, off_t byte) {
  struct flock lock = range_lock(type, byte, 1);
  int failed = 0;
  do {
    failed = ::fcntl(fd, command, &lock);
  } while (failed != 0 && errno == EINTR);
  return failed == 0;
}

bool try_lock(int fd, short type, off_t byte) {
  return set_lock(fd, F_OFD_SETLK, type, byte);
}
void unlock(int fd, off_t byte) {
  set_lock(fd, F_OFD_SETLK, F_UNLCK, byte);
}

// Only letters that a file's name may have.
std::string plain(std::string text) {
  for (char& letter : text) {
    const bool fine = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                      (letter >= '0' && letter <= '9') || letter == '.' || letter == '_';
    if (!fine) letter = '_';
  }
  return text.empty() ? "none" : text.substr(0, 64);
}

std::string prefix() {
  return "perdure-tokens-" + std::to_string(::geteuid()) + "-";
}

// The batch system's job, so that jobs of one user don't wait for each other's bugs.
std::string job_name() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"}) {
    if (const std::string job = environment(name); !job.empty()) return plain(job);
  }
  return "node";
}

// Removes the file if nobody else uses it. `fd` holds no share of the users' byte any more.
bool remove_if_unused(int fd, const Directory& directory, const std::string& name) {
  if (!try_lock(fd, F_WRLCK, users_byte)) return false;
  return directory.is_file(fd, name) && directory.remove_file(name).ok();
}

void sleep_ns(std::uint64_t ns) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

}  // namespace

struct WriterTokens::Words {
  std::atomic<std::uint64_t> next_ticket;
  std::atomic<std::uint32_t> changes;  // the futex
};

WriterTokens::WriterTokens(const std::string& device) : shared_(false) {
  const std::string given = environment("PERDURE_ENERGY_TOKENS");
  shared_ = !given.empty();
  path_ = shared_ ? given + "/" + plain(device)
                  : std::string(shared_memory) + "/" + prefix() + job_name() + "-" + plain(device);
}

WriterTokens::WriterTokens(const std::string& path, bool shared) : path_(path), shared_(shared) {}

WriterTokens::~WriterTokens() {
  release();
  close();
}

// A file that is removed between open and the lock is not the one that others will find.
Status WriterTokens::open() {
  if (file_.fd() >= 0) return Status::success();
  if (!shared_) remove_unused_tokens();
  const auto [folder, name] = split_path(path_);
  PERDURE_TRY_ASSIGN(auto directory,
                     Directory::open(folder, shared_ ? Trust::group : trust_unless(false)));
  for (int attempt = 0; attempt < 100; ++attempt) {
    PERDURE_TRY_ASSIGN(auto file, directory.open_or_create(name));
    if (try_lock(file.fd(), F_RDLCK, users_byte) && directory.is_file(file.fd(), name)) {
      directory_ = std::move(directory);
      file_ = std::move(file);
      return shared_ ? Status::success() : map();
    }
    ::usleep(1000);
  }
  return Status(Code::busy, path_, " is being removed all the time");
}

Status WriterTokens::map() {
  struct stat status{};
  if (::fstat(file_.fd(), &status) != 0) return errno_status("stat " + path_, errno);
  if (status.st_size < static_cast<off_t>(page_bytes) && ::ftruncate(file_.fd(), page_bytes) != 0) {
    return errno_status("make " + path_, errno);
  }
  void* mapped = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd(), 0);
  if (mapped == MAP_FAILED) return errno_status("map " + path_, errno);
  words_ = static_cast<Words*>(mapped);  // zeros are a fresh file's words
  return Status::success();
}

void WriterTokens::close() {
  if (words_ != nullptr) ::munmap(words_, page_bytes);
  words_ = nullptr;
  if (!shared_ && directory_) remove_if_unused(file_.fd(), *directory_, split_path(path_).name);
  directory_.reset();
  file_ = FileHandle();
}

// The ticket that the file names, and the one after it is named from now on. What a short or a
// forged file says is a ticket like any other.
Result<std::uint64_t> WriterTokens::next_ticket() {
  constexpr std::uint64_t tickets = std::uint64_t{1} << 48U;
  if (words_ != nullptr) return words_->next_ticket.fetch_add(1) % tickets;
  std::uint64_t ticket = 0;
  if (::pread(file_.fd(), &ticket, sizeof ticket, 0) < 0) {
    return errno_status("read " + path_, errno);
  }
  ticket %= tickets;
  const std::uint64_t after = ticket + 1;
  if (::pwrite(file_.fd(), &after, sizeof after, 0) != sizeof after) {
    return errno_status("write " + path_, errno);
  }
  return ticket;
}

// The ticket's byte is locked before the guard is given back, so that a later ticket sees it
// (energy.T1). The holder of the guard may be stopped, or keep it on purpose (energy.T3).
Result<std::uint64_t> WriterTokens::draw_ticket(std::uint64_t deadline_ns) {
  while (!try_lock(file_.fd(), F_WRLCK, guard_byte)) {
    if (errno != EAGAIN && errno != EACCES) return errno_status("lock " + path_, errno);
    if (monotonic_ns() >= deadline_ns) {
      return Status(Code::busy, path_, ": another process keeps it locked; see who with `fuser ",
                    path_, "`");
    }
    sleep_ns(guard_slice_ns);
  }
  auto ticket = next_ticket();
  const bool locked = ticket.ok() && try_lock(file_.fd(), F_WRLCK,
                                              ticket_bytes + static_cast<off_t>(ticket.value()));
  const int failed = errno;
  unlock(file_.fd(), guard_byte);
  if (ticket.ok() && !locked) return errno_status("lock a ticket in " + path_, failed);
  return ticket;
}

bool WriterTokens::is_first(std::uint64_t ticket) const {
  if (ticket == 0) return true;
  struct flock lock = range_lock(F_WRLCK, ticket_bytes, static_cast<off_t>(ticket));
  return ::fcntl(file_.fd(), F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

bool WriterTokens::take_token(unsigned limit) {
  for (unsigned token = 0; token < limit; ++token) {
    if (!try_lock(file_.fd(), F_WRLCK, token_bytes + static_cast<off_t>(token))) continue;
    token_ = static_cast<int>(token);
    return true;
  }
  return false;
}

bool WriterTokens::wait_for_token(std::uint64_t ticket, unsigned limit, std::uint64_t deadline_ns) {
  for (;;) {
    const std::uint32_t seen = words_ == nullptr ? 0 : words_->changes.load();
    if (is_first(ticket) && take_token(limit)) return true;
    const std::uint64_t now_ns = monotonic_ns();
    if (now_ns >= deadline_ns) return false;
    sleep(seen, deadline_ns - now_ns);
  }
}

// At most `ns`, and at most a slice.
void WriterTokens::sleep(std::uint32_t seen, std::uint64_t ns) const {
  if (words_ == nullptr) return sleep_ns(std::min(ns, shared_slice_ms * ns_per_ms));
  const std::uint64_t slice_ns = std::min(ns, wait_slice_ms * ns_per_ms);
  const timespec slice{static_cast<time_t>(slice_ns / 1'000'000'000),
                       static_cast<long>(slice_ns % 1'000'000'000)};
  ::syscall(SYS_futex, &words_->changes, FUTEX_WAIT, seen, &slice, nullptr, 0);
}

void WriterTokens::wake_all() const {
  if (words_ == nullptr) return;
  words_->changes.fetch_add(1);
  ::syscall(SYS_futex, &words_->changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool WriterTokens::go_ahead(const std::string& reason) {
  counters_.went_ahead += 1;
  counters_.reason = reason;
  return false;
}

bool WriterTokens::acquire(unsigned limit, std::uint32_t timeout_ms) {
  const std::uint64_t start_ns = monotonic_ns();
  if (const Status opened = open(); !opened.ok()) {
    close();
    return go_ahead(opened.message());
  }
  const std::uint64_t deadline_ns = start_ns + timeout_ms * ns_per_ms;
  const auto ticket = draw_ticket(deadline_ns);
  if (!ticket.ok()) {
    counters_.waited_ns += monotonic_ns() - start_ns;
    return go_ahead(ticket.status().message());
  }
  const bool taken = wait_for_token(ticket.value(), std::clamp(limit, 1U, tokens_max), deadline_ns);
  unlock(file_.fd(), ticket_bytes + static_cast<off_t>(ticket.value()));
  wake_all();  // somebody else is first now
  counters_.waited_ns += monotonic_ns() - start_ns;
  if (!taken) return go_ahead("no token within " + std::to_string(timeout_ms) + " ms");
  counters_.taken += 1;
  return true;
}

void WriterTokens::release() {
  if (token_ < 0) return;
  unlock(file_.fd(), token_bytes + token_);
  token_ = -1;
  wake_all();
}

std::size_t remove_unused_tokens() {
  const auto directory = Directory::open(shared_memory, trust_unless(false));
  const auto names = directory.ok() ? directory.value().names()
                                    : Result<std::vector<std::string>>(directory.status());
  if (!names.ok()) return 0;
  std::size_t removed = 0;
  for (const std::string& name : names.value()) {
    if (!name.starts_with(prefix())) continue;
    const auto file = directory.value().open_file(name, FileAccess::read_write);
    if (file.ok() && remove_if_unused(file.value().fd(), directory.value(), name)) ++removed;
  }
  return removed;
}

}  // namespace perdure::energy
