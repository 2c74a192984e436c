// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/parallel.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "base/guests.hpp"

namespace perdure {
namespace {

constexpr std::size_t page_bytes = 4096;
// Waking a sleeping thread costs about as much as copying this.
constexpr std::size_t worth_waking = std::size_t{512} << 10U;
constexpr std::size_t least_chunk = std::size_t{128} << 10U;
constexpr std::size_t chunks_per_thread = 4;

std::size_t round_up(std::size_t count, std::size_t grain) {
  return (count + grain - 1) / grain * grain;
}

}  // namespace

ParallelWriter::ParallelWriter(Device& device, unsigned threads) : device_(device) {
  PERDURE_ASSERT(threads >= 1);
  // Signals are the application's: its handlers must not run on threads that it doesn't know.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (unsigned i = 1; i < threads; ++i) {
      workers_.push_back(start_own_thread([this] { work(); }));
    }
  } catch (const std::system_error&) {
    // The limit of threads is reached: those that exist do the work, and threads() says how many.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ParallelWriter::~ParallelWriter() {
  stopping_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

Status ParallelWriter::copy(std::uint64_t offset, const void* source, std::size_t count) {
  Job job;
  job.piece = copy_piece;
  job.offset = offset;
  job.source = static_cast<const std::byte*>(source);
  job.count = count;
  job.skew = offset % page_bytes;
  return run(job, page_bytes);
}

Status ParallelWriter::flush(std::uint64_t offset, std::size_t count) {
  return run_where_stored(flush_piece, offset, count);
}

Status ParallelWriter::stored_by_dma(std::uint64_t offset, std::size_t count) {
  return run_where_stored(dma_piece, offset, count);
}

Status ParallelWriter::run_where_stored(Piece piece, std::uint64_t offset, std::size_t count) {
  Job job;
  job.piece = piece;
  job.offset = offset;
  job.count = count;
  job.skew = offset % page_bytes;
  return run(job, page_bytes);
}

Status ParallelWriter::copy_with_checksums(std::uint64_t offset, const void* source,
                                           std::size_t count, const Checksums& checksums) {
  PERDURE_ASSERT(checksums.block_bytes != 0);
  Job job;
  job.piece = checksum_piece;
  job.offset = offset;
  job.source = static_cast<const std::byte*>(source);
  job.count = count;
  job.checksums = checksums;
  return run(job, checksums.block_bytes);  // a block is checked by one thread
}

void ParallelWriter::checksum_piece(Device& device, const Job& job, std::size_t begin,
                                    std::size_t end) {
  const Checksums& checksums = job.checksums;
  for (std::size_t block = begin; block < end; block += checksums.block_bytes) {
    const std::size_t count = std::min(end - block, checksums.block_bytes);
    checksums.of_blocks[block / checksums.block_bytes] =
        device.copy_and_sum(job.offset + block, job.source + block, count, checksums.kind);
  }
}

Status ParallelWriter::run(Job job, std::size_t grain) {
  if (workers_.empty() || job.count < worth_waking) {
    job.piece(device_, job, 0, job.count);
    return Status::success();
  }
  const std::size_t share = job.count / (threads() * chunks_per_thread);
  job.chunk_bytes = round_up(std::max(share, least_chunk), grain);
  job_ = job;
  next_chunk_.store(0, std::memory_order_relaxed);
  working_.store(static_cast<std::uint32_t>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);  // publishes the job
  generation_.notify_all();
  run_chunks();
  // Acquires what the workers did, their fences included.
  for (std::uint32_t left = working_.load(std::memory_order_acquire); left != 0;
       left = working_.load(std::memory_order_acquire)) {
    working_.wait(left, std::memory_order_acquire);
  }
  return std::exchange(failure_, Status::success());
}

// Takes chunks until none is left.
void ParallelWriter::run_chunks() {
  const std::size_t all = job_.count + job_.skew;
  for (;;) {
    const std::size_t chunk = next_chunk_.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= (all + job_.chunk_bytes - 1) / job_.chunk_bytes) break;
    const std::size_t begin = chunk * job_.chunk_bytes;
    const std::size_t end = std::min(all, begin + job_.chunk_bytes);
    job_.piece(device_, job_, chunk == 0 ? 0 : begin - job_.skew, end - job_.skew);
  }
}

void ParallelWriter::work() {
  std::uint32_t seen = 0;
  for (;;) {
    generation_.wait(seen, std::memory_order_acquire);
    // Each generation is reported by every worker before the next one begins, so none is missed.
    const std::uint32_t now = generation_.load(std::memory_order_acquire);
    if (now == seen) continue;
    seen = now;
    if (stopping_.load(std::memory_order_relaxed)) return;
    run_chunks();
    record(device_.fence());  // D4: nobody else can fence what this thread wrote
    if (working_.fetch_sub(1, std::memory_order_acq_rel) == 1) working_.notify_one();
  }
}

void ParallelWriter::record(const Status& status) {
  if (status.ok()) return;
  const std::lock_guard lock(failure_mutex_);
  if (failure_.ok()) failure_ = status;
}

}  // namespace perdure
