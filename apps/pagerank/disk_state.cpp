// SPDX-License-Identifier: BSD-3-Clause
#include "disk_state.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "job/collective.hpp"
#include "job/stopwatch.hpp"
#include "problem.hpp"

namespace pagerank {
namespace {

constexpr std::uint64_t magic = 0x314b53444b524750U;  // "PGRKDSK1"

[[noreturn]] void fail(const std::string& path) {
  throw job::SharedError(path + ": " + std::strerror(errno) + "; see --disk-dir");
}

class File {
 public:
  File(const std::string& path, const char* mode)
      : path_(path), stream_(std::fopen(path.c_str(), mode)) {
    if (stream_ == nullptr) fail(path);
  }
  ~File() { std::fclose(stream_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const void* from, std::size_t bytes) {
    if (bytes > 0 && std::fwrite(from, 1, bytes, stream_) != bytes) fail(path_);
  }
  void read(void* to, std::size_t bytes) {
    if (bytes == 0 || std::fread(to, 1, bytes, stream_) == bytes) return;
    if (std::ferror(stream_) != 0) fail(path_);
    throw job::SharedError(path_ + " is too short for a checkpoint; remove it to start anew");
  }
  void sync() {
    if (std::fflush(stream_) != 0 || ::fsync(::fileno(stream_)) != 0) fail(path_);
  }

 private:
  std::string path_;
  std::FILE* stream_;
};

}  // namespace

DiskState::DiskState(const Graph& graph, const Options& options)
    : MemoryState(graph),
      directory_(options.disk_dir),
      problem_(problem_of(graph, options)),
      kill_(job::this_rank()) {
  job::on_every_rank([&] {
    if (::mkdir(directory_.c_str(), 0755) != 0 && errno != EEXIST) fail("mkdir " + directory_);
  });
}

DiskState::Header DiskState::header_of(std::uint64_t version) const {
  return {magic, version, problem_, graph_.values(), scalars_};
}

std::string DiskState::path_of(std::uint64_t version) const {
  return directory_ + "/rank-" + std::to_string(job::this_rank()) + "." +
         std::to_string(version % 2);
}

std::uint64_t DiskState::newest_version() const {
  std::uint64_t newest = 0;
  for (std::uint64_t parity = 0; parity < 2; ++parity) {
    const std::string path = path_of(parity);
    if (::access(path.c_str(), F_OK) != 0) continue;
    Header header{};
    File(path, "rb").read(&header, sizeof header);
    const Header expected = header_of(0);
    if (header.magic != magic || header.version % 2 != parity) {
      throw job::SharedError(path + " is not a checkpoint of pagerank; choose another --disk-dir");
    }
    if (header.problem != expected.problem || header.values != expected.values) {
      throw job::SharedError(path +
                             " is a checkpoint of another graph, damping or number of ranks; " +
                             "choose another --disk-dir");
    }
    newest = std::max(newest, header.version);
  }
  return newest;
}

std::uint64_t DiskState::restore() {
  std::uint64_t newest = 0;
  job::on_every_rank([&] { newest = newest_version(); });
  version_ = job::min_over_ranks(newest);
  job::on_every_rank([&] {
    if (version_ > 0) read_version(version_);
    const std::string beyond = path_of(version_ + 1);
    if (newest > version_ && ::unlink(beyond.c_str()) != 0) fail(beyond);
    sync_directory();
  });
  return version_;
}

void DiskState::read_version(std::uint64_t version) {
  const std::string path = path_of(version);
  File file(path, "rb");
  Header header{};
  file.read(&header, sizeof header);
  if (header.version != version) {
    throw job::SharedError(path + " has version " + std::to_string(header.version) + ", but " +
                           std::to_string(version) + " is the newest that all ranks have");
  }
  file.read(current_values(), bytes());
  scalars_ = header.scalars;
}

void DiskState::write_version(std::uint64_t version) {
  const std::string path = path_of(version);
  const Header header = header_of(version);
  {
    File file(path + ".new", "wb");
    file.write(&header, sizeof header);
    kill_.die_if_due("copy", scalars_.iteration);
    file.write(current(), bytes());
    file.sync();
  }
  kill_.die_if_due("data", scalars_.iteration);
  if (::rename((path + ".new").c_str(), path.c_str()) != 0) fail(path);
  sync_directory();
  kill_.die_if_due("state", scalars_.iteration);
  committed_bytes_ += sizeof header + bytes();
}

// A renamed file is durable when its directory is.
void DiskState::sync_directory() const {
  const int directory = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) fail(directory_);
  const int failed = ::fsync(directory);
  ::close(directory);
  if (failed != 0) fail(directory_);
}

void DiskState::commit() {
  const job::Stopwatch watch;
  job::on_every_rank([&] { write_version(version_ + 1); });  // which is a barrier too
  ++version_;
  commit_s_.push_back(watch.seconds());
}

}  // namespace pagerank
