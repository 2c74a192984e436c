// SPDX-License-Identifier: BSD-3-Clause
//
// Part access: what a process does with a part of a cached file, on whichever node that is.
//
// The verbs are those of CachePart; PartClient asks another node for them (protocol_format.hpp).
// Threads: any number. Failure: of another node, that it does not answer or refuses.
#pragma once

#include <sched.h>

#include <cstdint>

#include "base/status.hpp"
#include "cache/cache_part.hpp"
#include "cache/piece_list.hpp"

namespace perdure {

// What becomes of requests that were begun, for whoever waits for them.
struct Outcome {
  Status status;
  std::uint64_t values[2] = {0, 0};
  std::size_t awaited = 0;  // that are not answered yet
};

class PartAccess {
 public:
  PartAccess() = default;
  virtual ~PartAccess() = default;
  PartAccess(const PartAccess&) = delete;
  PartAccess& operator=(const PartAccess&) = delete;

  virtual Status read(std::uint64_t offset, void* to, std::uint64_t bytes) = 0;
  virtual Status write(std::uint64_t offset, const void* from, std::uint64_t bytes,
                       Acknowledge when) = 0;
  // Pieces of this part. They are begun: after await(), which is called in any case, `outcome` says
  // what came of all that were begun with it, and until then it and the memory of a read stay where
  // they are.
  virtual Status begin_read(const PieceList& pieces, Outcome& outcome) = 0;
  virtual Status begin_write(const PieceList& pieces, Acknowledge when, Outcome& outcome) = 0;
  virtual Status await(Outcome& outcome) = 0;
  virtual Result<std::uint64_t> size() = 0;
  virtual Status grow_size(std::uint64_t bytes) = 0;
  virtual Status set_size(std::uint64_t bytes) = 0;

  virtual Result<std::uint64_t> set_base_version(std::uint64_t version,
                                                 std::uint64_t file_bytes) = 0;

  virtual Result<int> take_pointer() = 0;  // -1: none is free
  virtual Status give_pointer(int slot) = 0;
  // Returns what it was.
  virtual Result<std::uint64_t> add_to_pointer(int slot, std::int64_t add) = 0;
  virtual Status store_pointer(int slot, std::uint64_t value) = 0;
  virtual Result<std::uint64_t> load_pointer(int slot) = 0;
  // `owner` is not 0, and no other process of the file's has it.
  virtual Result<bool> try_lock(std::uint64_t owner) = 0;
  virtual Status unlock(std::uint64_t owner) = 0;
  // What a process that did not get the lock does before it tries again.
  virtual void give_way() const = 0;
};

// The part of this node.
class OwnPart final : public PartAccess {
 public:
  explicit OwnPart(CachePart& part) : part_(part) {}

  Status read(std::uint64_t offset, void* to, std::uint64_t bytes) override {
    return part_.read(offset, to, bytes);
  }
  Status write(std::uint64_t offset, const void* from, std::uint64_t bytes,
               Acknowledge when) override {
    return part_.write(offset, from, bytes, when);
  }
  Status begin_read(const PieceList& pieces, Outcome& outcome) override;
  Status begin_write(const PieceList& pieces, Acknowledge when, Outcome& outcome) override;
  Status await(Outcome& outcome) override { return outcome.status; }
  Result<std::uint64_t> size() override { return part_.size_bytes(); }
  Status grow_size(std::uint64_t bytes) override {
    part_.grow_size(bytes);
    return Status::success();
  }
  Status set_size(std::uint64_t bytes) override { return part_.set_size(bytes); }
  Result<std::uint64_t> set_base_version(std::uint64_t version, std::uint64_t file_bytes) override {
    return part_.set_base_version(version, file_bytes);
  }
  Result<int> take_pointer() override { return part_.take_pointer(); }
  Status give_pointer(int slot) override {
    part_.pointers().give(slot);
    return Status::success();
  }
  Result<std::uint64_t> add_to_pointer(int slot, std::int64_t add) override {
    return part_.pointers().at(slot).fetch_add(static_cast<std::uint64_t>(add));
  }
  Status store_pointer(int slot, std::uint64_t value) override {
    part_.pointers().at(slot).store(value);
    return Status::success();
  }
  Result<std::uint64_t> load_pointer(int slot) override { return part_.pointers().at(slot).load(); }
  // Marked with this process's number, which is enough.
  Result<bool> try_lock(std::uint64_t /*owner*/) override { return part_.try_lock(0); }
  Status unlock(std::uint64_t /*owner*/) override {
    (void)part_.unlock(0);  // it was locked by this process
    return Status::success();
  }
  void give_way() const override { ::sched_yield(); }

 private:
  CachePart& part_;
};

}  // namespace perdure
