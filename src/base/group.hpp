// SPDX-License-Identifier: BSD-3-Clause
//
// Group: the ranks that act together. All that the pool and its levels need of a message library,
// so that the commit protocol runs alone, under MPI (mpi/mpi_group.hpp), and between threads in
// tests.
//
// Threads: called only from the thread that calls the pool, and from another one in its place if
// may_be_used_beside(). Failure: a call fails when the message library does; noticing that another
// rank died is the launcher's task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.hpp"

namespace perdure {

// A message on its way. Bytes that were given to it must stay until it is done, or until the whole
// group has ended if it is destroyed before: then what it had may still be read, or written.
class Transfer {
 public:
  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  virtual ~Transfer() = default;
  // Moves it on, and returns at once. An error is the end of it as well.
  virtual Result<bool> done() = 0;
};

// The collective call that this rank is in, for agreement.hpp alone.
struct CallUnderWay {
  const char* name = nullptr;  // null: none
  std::uint64_t count = 0;     // of the calls that have exchanged anything, with this one
  std::uint64_t step = 0;      // its exchanges so far
  std::uint64_t file = 0;      // that it concerns, by number, where a group has several; 0: none
  bool is_last = false;        // this rank leaves the group with it
  Status mismatch;             // it is another call on another rank, so it is over
  Status gone;                 // a rank has left the group: no call is possible any more
};

class Group {
 public:
  virtual ~Group() = default;
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t ranks() const = 0;

  // Collective: replaces each element by its maximum over all ranks. Returns on no rank before
  // every rank has called, so it is a barrier as well.
  virtual Status all_max(std::span<std::uint64_t> values) = 0;

  // Bytes to another rank, which receives as many: point to point, in the order in which they were
  // sent. send() may return before they are received, or only after, so two ranks that exchange
  // bytes must not both send first. Code::invalid_argument if the other is no other rank.
  virtual Status send(std::uint32_t to, std::span<const std::byte> bytes) = 0;
  virtual Status receive(std::uint32_t from, std::span<std::byte> bytes) = 0;

  // The same without waiting. Between two ranks they are matched in the order in which they were
  // started, apart from those of send() and receive(). No message library here moves much while
  // nobody calls done().
  virtual Result<std::unique_ptr<Transfer>> start_send(std::uint32_t to,
                                                       std::span<const std::byte> bytes) = 0;
  virtual Result<std::unique_ptr<Transfer>> start_receive(std::uint32_t from,
                                                          std::span<std::byte> bytes) = 0;
  // Collective: all_max() that waits for nobody, and is never met by an all_max().
  virtual Result<std::unique_ptr<Transfer>> start_all_max(std::span<std::uint64_t> values) = 0;

  // Collective: the node of each rank, numbered from 0. Ranks of one node fail together.
  virtual Result<std::vector<std::uint32_t>> nodes() = 0;

  // Another thread may call this group while this one does something else with the message library.
  virtual bool may_be_used_beside() const { return false; }
  // All of its ranks come to MPI_Finalize, which ends it.
  virtual bool ends_with_mpi() const { return false; }

  CallUnderWay& call() { return call_; }

 protected:
  Status check_other(std::uint32_t rank) const;

 private:
  CallUnderWay call_;
};

// A group of one.
class SoloGroup : public Group {
 public:
  std::uint32_t rank() const override { return 0; }
  std::uint32_t ranks() const override { return 1; }
  Status all_max(std::span<std::uint64_t>) override { return Status::success(); }
  Status send(std::uint32_t to, std::span<const std::byte>) override { return check_other(to); }
  Status receive(std::uint32_t from, std::span<std::byte>) override { return check_other(from); }
  Result<std::unique_ptr<Transfer>> start_send(std::uint32_t to,
                                               std::span<const std::byte>) override {
    return check_other(to);
  }
  Result<std::unique_ptr<Transfer>> start_receive(std::uint32_t from,
                                                  std::span<std::byte>) override {
    return check_other(from);
  }
  Result<std::unique_ptr<Transfer>> start_all_max(std::span<std::uint64_t>) override;
  Result<std::vector<std::uint32_t>> nodes() override { return std::vector<std::uint32_t>{0}; }
  bool may_be_used_beside() const override { return true; }
};

}  // namespace perdure
