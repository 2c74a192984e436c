// SPDX-License-Identifier: BSD-3-Clause
#include "energy/io_worker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/clock.hpp"
#include "base/files.hpp"

namespace perdure::energy {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{4} << 20U;
constexpr std::size_t stamp_bytes = 512;
constexpr std::uint64_t page = 4096;
constexpr int look_ms = 250;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

double now_s() {
  return static_cast<double>(monotonic_ns()) / 1e9;
}

// splitmix64 (Steele, Lea, Flood): every output differs, and looks like noise.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

// What a child reports: that it is ready, then its times, or why not.
struct Message {
  IoTimes times;
  std::array<char, 512> failure{};
};

struct Child {
  pid_t pid = -1;
  int go_fd = -1;    // to it
  int from_fd = -1;  // from it
};

bool read_whole(int fd, void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t count = ::read(fd, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

void send(int fd, const Status& status, const IoTimes& times) {
  Message message{times, {}};
  const std::size_t length = std::min(status.message().size(), message.failure.size() - 1);
  std::memcpy(message.failure.data(), status.message().data(), length);
  if (::write(fd, &message, sizeof message) != sizeof message) ::_exit(1);
}

// Ctrl-C ends it at once, whatever its parent does with the signal.
[[noreturn]] void be_child(const IoRequest& request, int go_fd, int to_fd) {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto worker = IoWorker::prepare(request);
  send(to_fd, worker.status(), {});
  char go = 0;
  if (!worker.ok() || !read_whole(go_fd, &go, 1)) ::_exit(1);
  const auto times = worker.value()->run();
  send(to_fd, times.status(), times.ok() ? times.value() : IoTimes{});
  ::_exit(0);
}

Result<Child> start_child(const IoRequest& request, std::vector<Child>& started) {
  std::array<int, 2> go{};
  std::array<int, 2> back{};
  if (::pipe2(go.data(), O_CLOEXEC) != 0) return errno_status("make a pipe", errno);
  if (::pipe2(back.data(), O_CLOEXEC) != 0) return errno_status("make a pipe", errno);
  const pid_t pid = ::fork();
  if (pid < 0) return errno_status("start a process", errno);
  if (pid == 0) {
    for (const Child& other : started) ::close(other.go_fd);  // so that each sees its end
    ::close(go[1]);
    be_child(request, go[0], back[1]);
  }
  ::close(go[0]);
  ::close(back[1]);
  return Child{pid, go[1], back[0]};
}

Status receive(const Child& child, IoTimes& times) {
  Message message;
  if (!read_whole(child.from_fd, &message, sizeof message)) {
    return {Code::io_error, "a process of the measurement was ended"};
  }
  times = message.times;
  if (message.failure[0] == '\0') return Status::success();
  return {Code::io_error, message.failure.data()};
}

void end_children(const std::vector<Child>& children) {
  for (const Child& child : children) {
    ::close(child.go_fd);
    ::close(child.from_fd);
  }
  for (const Child& child : children) {
    while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

// All are ready before any is let go.
Status direct_children(const std::vector<Child>& children, std::vector<IoTimes>& times,
                       const std::function<void()>& look) {
  for (std::size_t i = 0; i < children.size(); ++i) PERDURE_TRY(receive(children[i], times[i]));
  look();
  for (const Child& child : children) {
    if (::write(child.go_fd, "g", 1) != 1) return errno_status("let a process go", errno);
  }
  for (std::size_t i = 0; i < children.size(); ++i) {
    pollfd ended{children[i].from_fd, POLLIN, 0};
    while (::poll(&ended, 1, look_ms) == 0) look();
    PERDURE_TRY(receive(children[i], times[i]));
  }
  look();
  return Status::success();
}

}  // namespace

Result<std::vector<IoTimes>> run_workers(const std::vector<IoRequest>& requests,
                                         const std::function<void()>& look) {
  std::vector<Child> children;
  std::vector<IoTimes> times(requests.size());
  Status status;
  for (const IoRequest& request : requests) {
    auto child = start_child(request, children);
    status = child.status();
    if (!child.ok()) break;
    children.push_back(child.take());
  }
  if (status.ok()) status = direct_children(children, times, look);
  end_children(children);
  if (!status.ok()) return status;
  return times;
}

Result<std::unique_ptr<IoWorker>> IoWorker::prepare(const IoRequest& request) {
  if (request.bytes == 0 || request.bytes % page != 0) {
    return Status(Code::invalid_argument, request.bytes, " bytes are no multiple of 4096 above 0");
  }
  std::unique_ptr<IoWorker> worker(new IoWorker(request));
  PERDURE_TRY(worker->open());
  return worker;
}

IoWorker::~IoWorker() {
  if (buffer_ != nullptr) ::munmap(buffer_, chunk_bytes);
}

Status IoWorker::set_direct() {
  const int flags = ::fcntl(file_.fd(), F_GETFL);
  if (flags >= 0 && ::fcntl(file_.fd(), F_SETFL, flags | O_DIRECT) == 0) return Status::success();
  return errno_status("direct I/O of " + request_.path, errno);
}

Status IoWorker::open() {
  const bool writes = request_.kind == IoKind::write;
  PERDURE_TRY_ASSIGN(
      file_, writes && request_.create
                 ? create_file(request_.path, Trust::anyone)
                 : open_measured(request_.path, writes ? FileAccess::write : FileAccess::read));
  if (request_.direct) PERDURE_TRY(set_direct());
  void* memory = ::mmap(nullptr, chunk_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return errno_status("allocate a buffer", errno);
  buffer_ = static_cast<std::byte*>(memory);
  for (std::size_t i = 0; writes && i < chunk_bytes; i += sizeof(std::uint64_t)) {
    const std::uint64_t word = mix(request_.seed * chunk_bytes + i);
    std::memcpy(buffer_ + i, &word, sizeof word);
  }
  if (!writes && !request_.direct) {
    const int failed = ::posix_fadvise(file_.fd(), static_cast<off_t>(request_.offset),
                                       static_cast<off_t>(request_.bytes), POSIX_FADV_DONTNEED);
    if (failed != 0) return errno_status("drop the pages of " + request_.path, failed);
  }
  return Status::success();
}

// The noise of the buffer is the same in each chunk; its stamps are not.
void IoWorker::stamp(std::uint64_t position) {
  for (std::size_t i = 0; i < chunk_bytes; i += stamp_bytes) {
    const std::uint64_t word = mix(request_.seed ^ (position + i));
    std::memcpy(buffer_ + i, &word, sizeof word);
  }
}

Status IoWorker::transfer() {
  const bool writes = request_.kind == IoKind::write;
  std::uint64_t done = 0;
  while (done < request_.bytes) {
    if (writes) stamp(done);
    const std::size_t count =
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes, request_.bytes - done));
    const auto at = static_cast<off_t>(request_.offset + done);
    const ssize_t moved =
        writes ? ::pwrite(file_.fd(), buffer_, count, at) : ::pread(file_.fd(), buffer_, count, at);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return errno_status((writes ? "write " : "read ") + request_.path, errno);
    if (moved == 0) return Status(Code::io_error, request_.path, " ends too early");
    done += static_cast<std::uint64_t>(moved);
  }
  if (writes && request_.sync && ::fsync(file_.fd()) != 0) {
    return errno_status("sync " + request_.path, errno);
  }
  return Status::success();
}

Result<IoTimes> IoWorker::run() {
  IoTimes times;
  const double cpu_before_s = cpu_seconds();
  times.start_s = now_s();
  PERDURE_TRY(transfer());
  times.end_s = now_s();
  times.cpu_s = cpu_seconds() - cpu_before_s;
  return times;
}

}  // namespace perdure::energy
