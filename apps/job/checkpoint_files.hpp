// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoint files: the usual application-level checkpoint, which pools are compared with. Each
// version is a new file of the rank, made durable and renamed over the older of two.
//
// A version counts when all ranks have it: whoever commits ends with a barrier; whoever restores
// takes the smallest of the ranks' newest versions, and deletes what lies beyond before anybody
// goes on (tests/spin/commit.pml says why both are needed). What is read is checked.
//
// Threads: one. Failure: std::runtime_error. Nothing here is collective.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace job {

class CheckpointFiles {
 public:
  // What the state is of: a word that names the program, and others that tell problems apart.
  using Problem = std::array<std::uint64_t, 6>;
  struct Piece {
    void* first;
    std::size_t bytes;
  };
  struct Texts {
    std::string another;  // how "PATH is a checkpoint of …" ends
    std::string remedy;   // how a call that failed ends
  };

  CheckpointFiles(std::string directory, int rank, Problem problem, Texts texts)
      : directory_(std::move(directory)),
        rank_(rank),
        problem_(problem),
        texts_(std::move(texts)) {}

  void make_directory() const {
    if (::mkdir(directory_.c_str(), 0755) != 0 && errno != EEXIST) fail("mkdir " + directory_);
  }

  // This rank's newest version; 0: none.
  std::uint64_t newest() const {
    std::uint64_t newest = 0;
    for (std::uint64_t parity = 0; parity < 2; ++parity) {
      const std::string path = path_of(parity);
      if (::access(path.c_str(), F_OK) != 0) continue;
      newest = std::max(newest, version_of(File(*this, path, O_RDONLY), path, parity));
    }
    return newest;
  }

  void read(std::uint64_t version, const std::vector<Piece>& pieces) const {
    const std::string path = path_of(version);
    const File file(*this, path, O_RDONLY);
    const std::uint64_t found = version_of(file, path, version);
    if (found != version) {
      throw std::runtime_error(path + " has version " + std::to_string(found) + ", but " +
                               std::to_string(version) + " is the newest that all ranks have");
    }
    for (const Piece& piece : pieces) file.read(piece.first, piece.bytes);
  }

  void remove(std::uint64_t version) const {
    const std::string path = path_of(version);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail("unlink " + path);
  }

  // What the other ranks lack.
  void remove_beyond(std::uint64_t version) const {
    remove(version + 1);
    sync_directory();
  }

  // Returns the bytes that were written. `passed` is called at the points of a commit, by name.
  std::uint64_t write(
      std::uint64_t version, const std::vector<Piece>& pieces,
      const std::function<void(const char* point)>& passed = [](const char*) {}) const {
    const std::string path = path_of(version);
    const Header header{version, problem_};
    std::uint64_t bytes = sizeof header;
    {
      const File file(*this, path + ".new", O_WRONLY | O_CREAT | O_TRUNC);
      file.write(&header, sizeof header);
      for (const Piece& piece : pieces) {
        file.write(piece.first, piece.bytes);
        if (&piece == &pieces.front()) passed("copy");
        bytes += piece.bytes;
      }
      file.sync();
    }
    passed("data");
    if (::rename((path + ".new").c_str(), path.c_str()) != 0) fail("rename " + path);
    sync_directory();
    passed("state");
    return bytes;
  }

 private:
  struct Header {
    std::uint64_t version;
    Problem problem;
  };

  class File {
   public:
    File(const CheckpointFiles& files, std::string path, int flags)
        : files_(files), path_(std::move(path)) {
      fd_ = ::open(path_.c_str(), flags | O_CLOEXEC, 0644);
      if (fd_ < 0) files_.fail("open " + path_);
    }
    ~File() { ::close(fd_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    void write(const void* from, std::size_t count) const {
      for (const char* at = static_cast<const char*>(from); count > 0;) {
        const ssize_t written = ::write(fd_, at, count);
        if (written < 0) files_.fail("write " + path_);
        at += written;
        count -= static_cast<std::size_t>(written);
      }
    }
    void read(void* to, std::size_t count) const {
      for (char* at = static_cast<char*>(to); count > 0;) {
        const ssize_t got = ::read(fd_, at, count);
        if (got < 0) files_.fail("read " + path_);
        if (got == 0) {
          throw std::runtime_error(path_ +
                                   " is too short for a checkpoint; remove it to start anew");
        }
        at += got;
        count -= static_cast<std::size_t>(got);
      }
    }
    void sync() const {
      if (::fsync(fd_) != 0) files_.fail("fsync " + path_);
    }

   private:
    const CheckpointFiles& files_;
    std::string path_;
    int fd_;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + ": " + std::strerror(errno) + texts_.remedy);
  }

  std::string path_of(std::uint64_t version) const {
    return directory_ + "/rank-" + std::to_string(rank_) + "." + std::to_string(version % 2);
  }

  // Of a file that has versions as even or odd as `like`.
  std::uint64_t version_of(const File& file, const std::string& path, std::uint64_t like) const {
    Header header{};
    file.read(&header, sizeof header);
    if (header.problem == problem_ && header.version % 2 == like % 2) return header.version;
    throw std::runtime_error(path + " is a checkpoint of " + texts_.another);
  }

  // A renamed file is durable when its directory is.
  void sync_directory() const { File(*this, directory_, O_RDONLY | O_DIRECTORY).sync(); }

  std::string directory_;
  int rank_;
  Problem problem_;
  Texts texts_;
};

}  // namespace job
