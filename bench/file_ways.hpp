// SPDX-License-Identifier: BSD-3-Clause
//
// Ways to reach the bytes of a region: through an MPI file, cached or not, by pread and pwrite, in
// mapped memory, and in another rank's memory by MPI's one-sided calls. Each is reached
// through the same virtual call, which costs all of them the same.
#pragma once

#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

// A benchmark has nothing to fall back on.
inline void must(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "bench_file_operations: %s failed\n", what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

class Way {
 public:
  explicit Way(std::string name) : name_(std::move(name)) {}
  virtual ~Way() = default;
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;

  const std::string& name() const { return name_; }
  virtual void read(std::uint64_t offset, char* to, int bytes) = 0;
  virtual void write(std::uint64_t offset, const char* from, int bytes) = 0;

 private:
  std::string name_;
};

using Hints = std::vector<std::pair<const char*, std::string>>;

// Opened by all ranks, and gone when they have closed it.
class MpiFileWay : public Way {
 public:
  MpiFileWay(const std::string& name, const std::string& path, std::uint64_t bytes,
             const Hints& hints)
      : Way(name) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) make(path, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    for (const auto& [key, value] : hints) MPI_Info_set(info, key, value.c_str());
    const int mode = MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    const int error = MPI_File_open(MPI_COMM_WORLD, path.c_str(), mode, info, &file_);
    must(error == MPI_SUCCESS, "MPI_File_open of " + path);
    MPI_Info_free(&info);
  }
  ~MpiFileWay() override { MPI_File_close(&file_); }

  void read(std::uint64_t offset, char* to, int bytes) override {
    MPI_Status status;
    MPI_File_read_at(file_, static_cast<MPI_Offset>(offset), to, bytes, MPI_BYTE, &status);
  }
  void write(std::uint64_t offset, const char* from, int bytes) override {
    MPI_Status status;
    MPI_File_write_at(file_, static_cast<MPI_Offset>(offset), from, bytes, MPI_BYTE, &status);
  }

 private:
  static void make(const std::string& path, std::uint64_t bytes) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0 && ::ftruncate(fd, static_cast<off_t>(bytes)) == 0, "making " + path);
    ::close(fd);
  }
  MPI_File file_ = MPI_FILE_NULL;
};

// A file of this rank alone is as good: what it measures is the call.
class PosixWay : public Way {
 public:
  PosixWay(const std::string& name, const std::string& path)
      : Way(name), fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600)) {
    must(fd_ >= 0 && ::unlink(path.c_str()) == 0, "making " + path);
  }
  ~PosixWay() override { ::close(fd_); }

  void read(std::uint64_t offset, char* to, int bytes) override {
    must(::pread(fd_, to, static_cast<std::size_t>(bytes), static_cast<off_t>(offset)) == bytes,
         "pread");
  }
  void write(std::uint64_t offset, const char* from, int bytes) override {
    must(::pwrite(fd_, from, static_cast<std::size_t>(bytes), static_cast<off_t>(offset)) == bytes,
         "pwrite");
  }

 private:
  int fd_;
};

// Memory mapped from a file, as a node's part of a cached file is.
class MappedWay : public Way {
 public:
  MappedWay(const std::string& path, std::uint64_t bytes, const std::string& name = "mapped")
      : Way(name), bytes_(bytes) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0 && ::ftruncate(fd, static_cast<off_t>(bytes)) == 0, "making " + path);
    void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(base != MAP_FAILED && ::unlink(path.c_str()) == 0, "mapping " + path);
    ::close(fd);
    base_ = static_cast<char*>(base);
  }
  ~MappedWay() override { ::munmap(base_, bytes_); }

  char* base() const { return base_; }
  void read(std::uint64_t offset, char* to, int bytes) override {
    std::memcpy(to, base_ + offset, static_cast<std::size_t>(bytes));
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler keeps it
  }
  void write(std::uint64_t offset, const char* from, int bytes) override {
    std::memcpy(base_ + offset, from, static_cast<std::size_t>(bytes));
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler keeps it
  }

 private:
  std::uint64_t bytes_;
  char* base_ = nullptr;
};

// The same, but where the next access goes depends on what this one moved, so it has to wait for
// it: between the accesses of a bare loop the processor does not, and works on several cache misses
// at once, which a loop of calls leaves no room for.
class OrderedWay : public MappedWay {
 public:
  OrderedWay(const std::string& path, std::uint64_t bytes)
      : MappedWay(path, bytes, "mapped-ordered") {}

  void read(std::uint64_t offset, char* to, int bytes) override {
    MappedWay::read(offset + skew_, to, bytes);
    skew_ = static_cast<unsigned char>(*to) & zero_;
  }
  void write(std::uint64_t offset, const char* from, int bytes) override {
    MappedWay::write(offset + skew_, from, bytes);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    skew_ = static_cast<unsigned char>(base()[offset]) & zero_;
  }

 private:
  volatile std::uint64_t zero_ = 0;  // the compiler must not know
  std::uint64_t skew_ = 0;
};

// The mapped memory of rank 1, by MPI_Get and MPI_Put, each flushed.
class RmaWay : public Way {
 public:
  RmaWay(const MappedWay& memory, std::uint64_t bytes) : Way("mpi-rma") {
    MPI_Win_create(memory.base(), static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &window_);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
  }
  ~RmaWay() override {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  void read(std::uint64_t offset, char* to, int bytes) override {
    const auto at = static_cast<MPI_Aint>(offset);
    MPI_Get(to, bytes, MPI_BYTE, 1, at, bytes, MPI_BYTE, window_);
    MPI_Win_flush(1, window_);
  }
  void write(std::uint64_t offset, const char* from, int bytes) override {
    const auto at = static_cast<MPI_Aint>(offset);
    MPI_Put(from, bytes, MPI_BYTE, 1, at, bytes, MPI_BYTE, window_);
    MPI_Win_flush(1, window_);
  }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
};
