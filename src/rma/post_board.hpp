// SPDX-License-Identifier: BSD-3-Clause
//
// Post board: which ranks of a window's node have posted exposure epochs for which.
//
// MPI_Win_start may return before the target has called MPI_Win_post, and MPI tells nobody whether
// it has. Whoever is to copy to a target's memory by itself must know. So each rank counts in
// shared memory its posts for each other rank, and its own starts; the n-th start for a target
// belongs to the target's n-th post for this rank.
//
// Threads: post() and start() are called as MPI's calls are; is_posted() from any thread in
// between. Failure: without shared memory there is no board.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace perdure {

class PostBoard {
 public:
  static constexpr std::uint32_t ranks_max = 512;  // a MiB

  // Collective over the ranks of `comm`, which are of one machine. Null if it can't be had, on all
  // of them.
  static std::unique_ptr<PostBoard> create(MPI_Comm comm);
  ~PostBoard();
  PostBoard(const PostBoard&) = delete;
  PostBoard& operator=(const PostBoard&) = delete;

  // This rank has posted for the ranks of `group`; what it did to its memory before is done.
  void post(MPI_Group group);
  // Begins, and ends, an access epoch to the ranks of `group`.
  void start(MPI_Group group);
  void complete() { ++epoch_; }

  // Whether `target` is in the access epoch that is open, and has posted for it.
  bool is_posted(std::size_t target) const {
    return is_started(target) &&
           posts(target, own_).load(std::memory_order_acquire) >= starts_[target].number;
  }
  bool is_started(std::size_t target) const { return starts_[target].epoch == epoch_; }

 private:
  struct Start {
    std::uint32_t number = 0;  // of starts for that target
    std::uint64_t epoch = 0;   // of the last of them
  };

  PostBoard(std::shared_ptr<std::byte> memory, MPI_Group ranks, std::uint32_t own,
            std::uint32_t count)
      : memory_(std::move(memory)), ranks_(ranks), own_(own), starts_(count) {}
  std::vector<int> ranks_of(MPI_Group group) const;
  std::atomic<std::uint32_t>& posts(std::size_t by, std::size_t whom) const {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(memory_.get())[by * starts_.size() + whom];
  }

  std::shared_ptr<std::byte> memory_;  // a row of counts for each rank, which writes it
  MPI_Group ranks_;                    // of the window
  std::uint32_t own_;
  std::vector<Start> starts_;
  std::uint64_t epoch_ = 1;
};

}  // namespace perdure
