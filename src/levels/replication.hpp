// SPDX-License-Identifier: BSD-3-Clause
//
// Replication: on this rank, the version that is being taken: its image, and what the failure group
// keeps of it.
//
//   copying     a thread copies it from the pool, which is not stored to there before release()
//   copied      the image is whole
//   exchanging  images of the failure group are exchanged, in slices of the program's own calls, or
//               by the thread where the message library allows it
//   whole       image and guard are; without a failure group the image
//   failed      of which failure() says why
//
// When an exchange fails, there is no redundancy for the rest of the run, on all ranks alike
// (levels.hpp, levels.K1): a message that nobody waits for any more would be taken for one of the
// next. What was whole stays, and so do the files that messages may still be read from.
//
// Threads: the pool's caller, and one of its own. Failure: kept; of stop() a sentence on stderr.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/status.hpp"
#include "levels/own_files.hpp"
#include "levels/own_node.hpp"
#include "levels/redundancy.hpp"
#include "levels/settings.hpp"
#include "pool/image.hpp"

namespace perdure {

class Replication {
 public:
  enum class Phase { idle, copying, copied, exchanging, whole, failed };

  explicit Replication(const OwnNode& node) : node_(node) {}
  ~Replication();
  Replication(const Replication&) = delete;
  Replication& operator=(const Replication&) = delete;

  // [collective] This rank's failure group, as the settings say; where none was asked for and none
  // can be, a sentence says so.
  Status choose_group(const LevelSettings& settings);
  // None: images are not given to other ranks.
  const std::vector<std::uint32_t>& members() const { return members_; }
  std::uint32_t losses() const { return scheme_.losses(); }
  void leave_group() { members_.clear(); }

  void start_thread();
  // Nothing is under way. `image` says why there is none of this version.
  void take(SealedHeader header, Result<Image> image, LevelFile* to, LevelFile* guard);
  Phase phase() const;
  // Of the newest that failed, until the next one is taken.
  const Status& failure() const { return failure_; }
  // VersionTaker::release().
  void release(std::uint64_t version);
  // For a short time.
  void slice();
  // Until nothing is on its way on this rank, or patience is over.
  void finish(std::uint64_t patience_ns);
  // After finish(): what is still not whole has failed, so that levels.K1 follows on all ranks.
  void give_up(std::uint64_t patience_ns);
  // Whatever the phase is, it is over: another rank may have failed while this one still copies.
  void end();
  // levels.K1, after end() or give_up(): the files stay as they are.
  void abandon();
  // The same, and there is no redundancy any more. A failure is reported by the rank that has it.
  void stop(const std::string& why);
  // Why there is no redundancy any longer, once.
  Status take_stop() { return std::exchange(stopped_, Status::success()); }
  // levels.K1.
  bool reads_files_for_good() const { return !abandoned_.empty(); }
  // That the program waited in release(), slice() and finish().
  std::uint64_t waited_ns() const { return waited_ns_; }

 private:
  struct UnderWay {
    SealedHeader header;  // of the image
    LevelFile* image = nullptr;
    LevelFile* guard = nullptr;
    std::uint64_t guard_bytes = 0;  // that it will have, as far as this rank knows; 0: no guard
    std::optional<Image> contents;
    std::unique_ptr<Exchange> exchange;
  };
  void set_phase(Phase phase, const Status& failure = Status::success());
  void work();
  Status copy();
  bool advance(std::uint64_t bytes);

  const OwnNode& node_;
  std::vector<std::uint32_t> members_;
  Scheme scheme_;                // of as many as there are members
  std::uint64_t sliced_ns_ = 0;  // when the last slice ended
  std::uint64_t waited_ns_ = 0;
  std::vector<std::unique_ptr<Exchange>> abandoned_;  // levels.K1
  Status stopped_;

  std::mutex exchange_mutex_;  // of what advances the exchange; before mutex_
  mutable std::mutex mutex_;   // of phase_, failure_ and stopping_
  std::condition_variable changed_;
  Phase phase_ = Phase::idle;
  Status failure_;
  bool stopping_ = false;
  UnderWay under_way_;  // the thread's while it copies, and while it exchanges
  std::thread thread_;
};

}  // namespace perdure
