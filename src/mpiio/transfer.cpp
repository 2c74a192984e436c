// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/transfer.hpp"

#include <algorithm>
#include <optional>

#include "mpiio/file_pieces.hpp"

namespace perdure {
namespace {

// While one exists, no other request in atomic mode is served.
class AtomicRequest {
 public:
  explicit AtomicRequest(OpenFile& open) : file_(open.atomic_mode ? open.file.get() : nullptr) {
    if (file_ != nullptr) status_ = file_->lock();
  }
  ~AtomicRequest() {
    // A lock that can't be given back is on a node that is gone, and with it the file.
    if (file_ != nullptr && status_.ok()) (void)file_->unlock();
  }
  AtomicRequest(const AtomicRequest&) = delete;
  AtomicRequest& operator=(const AtomicRequest&) = delete;
  const Status& status() const { return status_; }

 private:
  CachedFile* file_;
  Status status_;
};

void count(std::atomic<std::uint64_t>& number, std::atomic<std::uint64_t>& sum,
           std::int64_t bytes) {
  number.store(number.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  sum.store(sum.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(bytes),
            std::memory_order_relaxed);
}

// In atomic mode a write is to be seen by every read that comes after it.
Acknowledge acknowledgement(const OpenFile& open) {
  const Acknowledge when = open.options.acknowledge;
  return open.atomic_mode && when == Acknowledge::async ? Acknowledge::sync : when;
}

// Of a file that does not stand aside, which it does not again.
Status move_pieces(OpenFile& open, Direction direction, const Items& items, std::int64_t at,
                   std::int64_t bytes) {
  CachedFile& file = *open.file;
  if (direction == Direction::write) PERDURE_TRY(file.base_failure());
  CachedFile::Pieces pieces(file, direction, acknowledgement(open));
  Status status;
  if (items.map->contiguous && open.view.run_bytes != 0) {
    auto* memory = static_cast<std::byte*>(items.buffer);
    for_each_run(open.view, at, bytes, [&](const RegularRun& run) {
      status = pieces.add_regular(run, memory);
      memory += run.bytes * run.count;
      return status.ok();
    });
    return status.ok() ? pieces.finish() : status;
  }
  for_each_pair(*items.map, items.buffer, open.view, at, bytes,
                [&](std::int64_t offset, char* memory, std::int64_t piece) {
                  status = pieces.add(static_cast<std::uint64_t>(offset),
                                      reinterpret_cast<std::byte*>(memory),
                                      static_cast<std::uint64_t>(piece));
                  return status.ok();
                });
  return status.ok() ? pieces.finish() : status;
}

Status move(OpenFile& open, Direction direction, const Items& items, std::int64_t at,
            std::int64_t bytes) {
  Status status;
  CachedFile& file = *open.file;
  const bool in_one = items.map->contiguous && open.view.contiguous;
  if (!in_one && !file.is_aside()) return move_pieces(open, direction, items, at, bytes);
  if (direction == Direction::read) {
    for_each_pair(*items.map, items.buffer, open.view, at, bytes,
                  [&](std::int64_t offset, char* memory, std::int64_t piece) {
                    status = file.read(static_cast<std::uint64_t>(offset), memory,
                                       static_cast<std::uint64_t>(piece));
                    return status.ok();
                  });
    return status;
  }
  const Acknowledge when = acknowledgement(open);
  for_each_pair(*items.map, items.buffer, open.view, at, bytes,
                [&](std::int64_t offset, char* memory, std::int64_t piece) {
                  status = file.write(static_cast<std::uint64_t>(offset), memory,
                                      static_cast<std::uint64_t>(piece), when);
                  return status.ok();
                });
  return status;
}

// Of a file that stands aside, in one piece: the read itself tells where the file ends. Nothing: it
// is to be read as any other.
Result<std::optional<std::int64_t>> read_aside(OpenFile& open, const Items& items,
                                               std::int64_t at) {
  const std::int64_t bytes = items.bytes();
  const bool in_one = items.map->contiguous && open.view.contiguous;
  if (!in_one || bytes <= 0 || !open.file->is_aside()) return std::optional<std::int64_t>();
  PERDURE_TRY_ASSIGN(const auto got,
                     open.file->read_aside(static_cast<std::uint64_t>(open.view.displacement + at),
                                           items.buffer, static_cast<std::uint64_t>(bytes)));
  if (!got) return std::optional<std::int64_t>();
  return std::optional<std::int64_t>(static_cast<std::int64_t>(*got));
}

}  // namespace

void count_access(CacheTally& tally, Direction direction, std::int64_t bytes) {
  if (direction == Direction::read) {
    count(tally.reads, tally.read_bytes, bytes);
  } else {
    count(tally.writes, tally.written_bytes, bytes);
  }
}

Result<std::int64_t> readable_bytes(OpenFile& open, std::int64_t at, std::int64_t bytes) {
  if (bytes == 0) return bytes;
  const std::int64_t end = open.view.file_offset(at + bytes - 1) + 1;
  PERDURE_TRY_ASSIGN(auto size, open.file->size_bytes(static_cast<std::uint64_t>(end)));
  const auto size_bytes = static_cast<std::int64_t>(size);
  if (end <= size_bytes) return bytes;
  const std::int64_t seen = open.view.contiguous
                                ? std::max<std::int64_t>(0, size_bytes - open.view.displacement)
                                : open.view.data_bytes_before(size_bytes);
  return std::clamp<std::int64_t>(seen - at, 0, bytes);
}

Result<std::int64_t> transfer(OpenFile& open, Direction direction, const Items& items,
                              std::int64_t at) {
  const AtomicRequest request(open);
  if (!request.status().ok()) return request.status();
  std::int64_t bytes = items.bytes();
  if (direction == Direction::read) {
    PERDURE_TRY_ASSIGN(const auto done, read_aside(open, items, at));
    if (done) {
      count_access(open.file->tally(), direction, *done);
      return *done;
    }
    PERDURE_TRY_ASSIGN(bytes, readable_bytes(open, at, bytes));
  }
  count_access(open.file->tally(), direction, bytes);
  if (Status moved = move(open, direction, items, at, bytes); !moved.ok()) return moved;
  if (open.short_cut.part.load(std::memory_order_relaxed) == nullptr) find_short_cut(open);
  if (direction == Direction::write) write_early(open);
  return bytes;
}

}  // namespace perdure
