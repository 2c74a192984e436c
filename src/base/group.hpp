// Group: the ranks that act together. The one thing `object` needs from a message library, so
// that the commit protocol runs alone, under MPI (mpi/mpi_group.hpp), and between threads in tests.
//
// Threads: called only from the thread that calls the pool, and from another one in its place if
// may_be_used_beside(). Failure: all_max fails when the
// message library does; a peer that died is the launcher's to notice.
#pragma once

#include <cstdint>
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

  // all_max() may be called in another thread while this one does something else with the message
  // library.
  virtual bool may_be_used_beside() const { return false; }
};

// A group of one.
class SoloGroup final : public Group {
 public:
  std::uint32_t rank() const override { return 0; }
  std::uint32_t ranks() const override { return 1; }
  Status all_max(std::span<std::uint64_t>) override { return Status::success(); }
  bool may_be_used_beside() const override { return true; }
};

}  // namespace perdure
