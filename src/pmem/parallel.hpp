// SPDX-License-Identifier: BSD-3-Clause
//
// Copies and flushes large ranges of a device with several threads that live as long as this
// object. One thread means the calling thread: none is created, and nothing is allocated per call.
//
// After a call, the bytes are durable when the calling thread has fenced, as if it had done all the
// work: the other threads fence what they wrote before they report that they are done (device.hpp,
// pmem.D4). The work is handed out in aligned chunks, so that threads neither share cache lines nor
// wait for a slow one. A range too small to be worth waking anybody for is done by the calling
// thread.
//
// Threads: one call at a time. The source must not change during a call. Failure: the first failed
// fence of another thread; which bytes are durable then is unknown (pmem.D3).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/data_checksum.hpp"
#include "base/status.hpp"
#include "pmem/device.hpp"

namespace perdure {

class ParallelWriter {
 public:
  // `device` must outlive this object; `threads` >= 1 counts the calling thread.
  ParallelWriter(Device& device, unsigned threads);
  ~ParallelWriter();
  ParallelWriter(const ParallelWriter&) = delete;
  ParallelWriter& operator=(const ParallelWriter&) = delete;

  unsigned threads() const { return static_cast<unsigned>(workers_.size()) + 1; }

  Status copy(std::uint64_t offset, const void* source, std::size_t count);
  Status flush(std::uint64_t offset, std::size_t count);
  Status stored_by_dma(std::uint64_t offset, std::size_t count);

  // With the checksum of each block (the last may be shorter).
  struct Checksums {
    DataChecksum kind;
    std::size_t block_bytes;
    std::uint64_t* of_blocks;
  };
  Status copy_with_checksums(std::uint64_t offset, const void* source, std::size_t count,
                             const Checksums& checksums);

 private:
  struct Job {
    void (*piece)(Device&, const Job&, std::size_t begin, std::size_t end) = nullptr;
    std::uint64_t offset = 0;
    const std::byte* source = nullptr;
    std::size_t count = 0;
    Checksums checksums = {DataChecksum::none, 0, nullptr};
    std::size_t chunk_bytes = 0;
    std::size_t skew = 0;  // the first chunk is shorter by this, so that the others are aligned
  };

  static void copy_piece(Device& device, const Job& job, std::size_t begin, std::size_t end) {
    device.copy(job.offset + begin, job.source + begin, end - begin);
  }
  static void flush_piece(Device& device, const Job& job, std::size_t begin, std::size_t end) {
    device.flush(job.offset + begin, end - begin);
  }
  static void dma_piece(Device& device, const Job& job, std::size_t begin, std::size_t end) {
    device.stored_by_dma(job.offset + begin, end - begin);
  }
  static void checksum_piece(Device& device, const Job& job, std::size_t begin, std::size_t end);

  using Piece = void (*)(Device&, const Job&, std::size_t begin, std::size_t end);
  Status run_where_stored(Piece piece, std::uint64_t offset, std::size_t count);
  Status run(Job job, std::size_t grain);
  void run_chunks();
  void work();
  void record(const Status& status);

  Device& device_;
  Job job_;
  std::atomic<std::size_t> next_chunk_{0};
  std::atomic<std::uint32_t> generation_{0};  // a job was published; workers wait for its change
  std::atomic<std::uint32_t> working_{0};     // workers that have still to report this job
  std::atomic<bool> stopping_{false};
  std::mutex failure_mutex_;
  Status failure_;
  std::vector<std::thread> workers_;
};

}  // namespace perdure
