// SPDX-License-Identifier: BSD-3-Clause
#include "trace/byte_stream.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "base/files.hpp"

namespace perdure::trace {
namespace {

// The descriptor of a file; those of the standard streams stay open.
class Descriptor {
 public:
  Descriptor(int number, bool owned) : number_(number), owned_(owned) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (owned_ && number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  bool owned() const { return owned_; }

 private:
  int number_;
  bool owned_;
};

class FileSource final : public ByteSource {
 public:
  FileSource(std::string name, int descriptor, bool owned)
      : name_(std::move(name)), descriptor_(descriptor, owned) {
    struct stat status = {};
    if (owned && ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
      size_ = static_cast<std::uint64_t>(status.st_size);
    }
  }
  const std::string& name() const override { return name_; }
  std::optional<std::uint64_t> size_bytes() const override { return size_; }

  Result<std::size_t> read(std::span<std::byte> to) override {
    std::size_t done = 0;
    while (done < to.size()) {
      const ssize_t count = ::read(descriptor_.number(), to.data() + done, to.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno_status("reading " + name_, errno);
      if (count == 0) break;
      done += static_cast<std::size_t>(count);
    }
    return done;
  }

  Status seek(std::uint64_t offset) override {
    if (::lseek(descriptor_.number(), static_cast<off_t>(offset), SEEK_SET) < 0) {
      return errno_status("seeking in " + name_, errno);
    }
    return Status::success();
  }

 private:
  std::string name_;
  Descriptor descriptor_;
  std::optional<std::uint64_t> size_;
};

// While it lives, a pipe without a reader is an error of write(), and no signal that ends the
// program: the writer is a guest in it.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;
  ~WithoutSigpipe() {
    const int error = errno;
    constexpr timespec at_once = {0, 0};
    if (!was_pending_) ::sigtimedwait(&pipe_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }

 private:
  sigset_t pipe_ = {};
  sigset_t before_ = {};
  bool was_pending_ = false;
};

class FileSink final : public ByteSink {
 public:
  FileSink(std::string name, int descriptor, bool owned)
      : name_(std::move(name)), descriptor_(descriptor, owned) {}
  const std::string& name() const override { return name_; }

  Status write(std::span<const std::byte> from) override {
    const WithoutSigpipe without_sigpipe;
    while (!from.empty()) {
      const ssize_t count = ::write(descriptor_.number(), from.data(), from.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno_status("writing " + name_, errno);
      from = from.subspan(static_cast<std::size_t>(count));
    }
    return Status::success();
  }

  Status close() override {
    if (!descriptor_.owned()) return Status::success();
    if (::close(descriptor_.release()) != 0) return errno_status("closing " + name_, errno);
    return Status::success();
  }

 private:
  std::string name_;
  Descriptor descriptor_;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::span<const std::byte> bytes, bool seekable)
      : bytes_(bytes), seekable_(seekable) {}
  const std::string& name() const override { return name_; }
  std::optional<std::uint64_t> size_bytes() const override {
    return seekable_ ? std::optional<std::uint64_t>(bytes_.size()) : std::nullopt;
  }
  Result<std::size_t> read(std::span<std::byte> to) override {
    const std::size_t count = std::min(to.size(), bytes_.size() - at_);
    if (count != 0) std::memcpy(to.data(), bytes_.data() + at_, count);
    at_ += count;
    return count;
  }
  Status seek(std::uint64_t offset) override {
    at_ = std::min<std::size_t>(offset, bytes_.size());
    return Status::success();
  }

 private:
  std::string name_ = "memory";
  std::span<const std::byte> bytes_;
  bool seekable_;
  std::size_t at_ = 0;
};

class MemorySink final : public ByteSink {
 public:
  explicit MemorySink(std::vector<std::byte>& bytes) : bytes_(bytes) {}
  const std::string& name() const override { return name_; }
  Status write(std::span<const std::byte> from) override {
    bytes_.insert(bytes_.end(), from.begin(), from.end());
    return Status::success();
  }
  Status close() override { return Status::success(); }

 private:
  std::string name_ = "memory";
  std::vector<std::byte>& bytes_;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_source(const std::string& path) {
  if (path == "-") {
    return std::unique_ptr<ByteSource>(new FileSource("standard input", STDIN_FILENO, false));
  }
  PERDURE_TRY_ASSIGN(auto file, open_input_stream(path));
  return std::unique_ptr<ByteSource>(new FileSource(path, file.release(), true));
}

Result<std::unique_ptr<ByteSink>> open_sink(const std::string& path) {
  if (path == "-") {
    return std::unique_ptr<ByteSink>(new FileSink("standard output", STDOUT_FILENO, false));
  }
  PERDURE_TRY_ASSIGN(auto file, open_output_stream(path));
  return std::unique_ptr<ByteSink>(new FileSink(path, file.release(), true));
}

std::unique_ptr<ByteSource> memory_source(std::span<const std::byte> bytes, bool seekable) {
  return std::make_unique<MemorySource>(bytes, seekable);
}

std::unique_ptr<ByteSink> memory_sink(std::vector<std::byte>& bytes) {
  return std::make_unique<MemorySink>(bytes);
}

}  // namespace perdure::trace
