// SPDX-License-Identifier: BSD-3-Clause
//
// Commit watch: says which ranks wait in a commit for which others.
//
// A commit is made by the ranks that come to it, and needs all ranks of the pool. If one never
// comes, the others wait in it, in the message library, and nothing would say so. So each rank
// counts the commits that it has come to in memory that all ranks of its machine share, and a
// thread, which looks a few times in a minute, compares the counts once its rank has waited for the
// patience. The lowest rank of the machine that waits speaks for all of it, once in a commit.
//
// The thread is started by the first commit that a rank could miss: MPI_Win_fence, to which all
// ranks of a window come anyway, is counted only. The other collective calls of a pool are watched
// as well, as ranks that are in calls of two pools meet nobody (agreement.hpp has those of one).
//
// Threads: the pool's caller, and one of its own, which reads. Failure: without shared memory there
// is no watch.
#pragma once

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

  bool endless() const { return said_after_ns == 0 && ended_after_ns == 0; }
};
// From PERDURE_COMMIT_PATIENCE and PERDURE_COMMIT_LIMIT, which may be null.
Result<CommitPatience> parse_commit_patience(const char* patience, const char* limit);
Result<CommitPatience> commit_patience_of_environment();

// What a rank shows the others of its machine. As large as two cache lines, so that no rank's
// commits disturb another's. Zeros are a fresh one.
struct alignas(128) CommitLine {
  std::atomic<std::uint64_t> commits;  // that the rank has come to
  std::atomic<std::uint64_t> waits;    // 1: it is in one
  std::atomic<std::uint64_t> rank;     // of the pool
};

// In order of ranks, in memory that goes with the last pointer to it.
struct CommitLines {
  std::shared_ptr<CommitLine> first;
  std::uint32_t count = 0;  // ranks of this machine
  std::uint32_t own = 0;
  std::uint32_t ranks = 1;  // of the pool
};

class CommitWatch {
 public:
  CommitWatch(std::string pool, const CommitPatience& patience, CommitLines lines);
  ~CommitWatch();
  CommitWatch(const CommitWatch&) = delete;
  CommitWatch& operator=(const CommitWatch&) = delete;

  enum class Call {
    commit,
    fence,  // no rank can stay away from it
    other,  // no commit, and may be slow: nobody is ended for it, nor guessed on another node
  };
  // This rank has come to a collective call, here described ("perdure_commit").
  void enter(std::string doing, Call call = Call::commit);
  void leave();

 private:
  void start();
  void work();
  // The sentence, if this rank is the one that says it and somebody is missing.
  std::optional<std::string> sentence(std::uint64_t waited_ns) const;
  CommitLine& line(std::uint32_t i) const { return lines_.first.get()[i]; }

  std::string pool_;
  CommitPatience patience_;
  CommitLines lines_;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::uint64_t since_ns_ = 0;  // 0: in no commit
  std::string doing_;
  Call call_ = Call::commit;
  bool said_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

// From enter() to leave(); a null watch does nothing.
class WatchedCommit {
 public:
  using Call = CommitWatch::Call;
  WatchedCommit(CommitWatch* watch, std::string doing, Call call = Call::commit) : watch_(watch) {
    if (watch_ != nullptr) watch_->enter(std::move(doing), call);
  }
  ~WatchedCommit() {
    if (watch_ != nullptr) watch_->leave();
  }
  WatchedCommit(const WatchedCommit&) = delete;
  WatchedCommit& operator=(const WatchedCommit&) = delete;

 private:
  CommitWatch* watch_;
};

}  // namespace perdure
