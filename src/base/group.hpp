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

#include "base/status.hpp"

namespace perdure {

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

  // Collective: a group of the ranks that named the same part, which is below 2^31, in the order of
  // their ranks here.
  virtual Result<std::unique_ptr<Group>> split(std::uint32_t part) = 0;

  // all_max() may be called in another thread while this one does something else with the message
  // library.
  virtual bool may_be_used_beside() const { return false; }

 protected:
  Status check_other(std::uint32_t rank) const;
};

// A group of one.
class SoloGroup : public Group {
 public:
  std::uint32_t rank() const override { return 0; }
  std::uint32_t ranks() const override { return 1; }
  Status all_max(std::span<std::uint64_t>) override { return Status::success(); }
  Status send(std::uint32_t to, std::span<const std::byte>) override { return check_other(to); }
  Status receive(std::uint32_t from, std::span<std::byte>) override { return check_other(from); }
  Result<std::unique_ptr<Group>> split(std::uint32_t part) override;
  bool may_be_used_beside() const override { return true; }
};

}  // namespace perdure
