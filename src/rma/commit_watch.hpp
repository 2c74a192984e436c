// SPDX-License-Identifier: BSD-3-Clause
//
// Commit watch: says which ranks wait in a commit of windows for which others.
//
// A commit by MPI_Win_wait, _unlock or the like is made by the ranks that make this call, and needs
// all ranks of the pool. If one never comes, the others wait in it, in the message library, and
// nothing would say so. So each rank counts the commits that it has come to in memory that all
// ranks of its machine share, and a thread, which looks a few times in a minute, compares the
// counts once its rank has waited for the patience. The lowest rank of the machine that waits
// speaks for all of it, once in a commit.
//
// Threads: the pool's caller, and one of its own, which reads. Failure: without shared memory there
// is no watch.
#pragma once

#include <mpi.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/status.hpp"

namespace perdure {

struct CommitPatience {
  std::uint64_t said_after_ns = 30'000'000'000;  // 0: never
  std::uint64_t ended_after_ns = 0;              // the process; 0: never
};
// From PERDURE_COMMIT_PATIENCE and PERDURE_COMMIT_LIMIT, which may be null.
Result<CommitPatience> parse_commit_patience(const char* patience, const char* limit);

class CommitWatch {
 public:
  // Collective over `comm`. Null if there is nothing to watch for, or no memory to share.
  static std::unique_ptr<CommitWatch> create(MPI_Comm comm, const std::string& pool,
                                             const CommitPatience& patience);
  ~CommitWatch();  // collective unless MPI is finalized
  CommitWatch(const CommitWatch&) = delete;
  CommitWatch& operator=(const CommitWatch&) = delete;

  // This rank has come to a commit, by `call` of `window`.
  void enter(const char* call, const std::string& window);
  void leave();

 private:
  struct Line;  // of one rank

  CommitWatch(std::string pool, const CommitPatience& patience)
      : pool_(std::move(pool)), patience_(patience) {}
  bool share(MPI_Comm comm);
  void work();
  // The sentence, if this rank is the one that says it and somebody is missing.
  std::optional<std::string> sentence(std::uint64_t waited_ns) const;

  std::string pool_;
  CommitPatience patience_;
  MPI_Win win_{};
  std::uint32_t ranks_ = 1;  // of the pool
  std::uint32_t lines_ = 0;  // ranks of this machine
  std::uint32_t own_ = 0;    // line
  Line* line_ = nullptr;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::uint64_t since_ns_ = 0;  // 0: in no commit
  std::string doing_;
  bool said_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace perdure
