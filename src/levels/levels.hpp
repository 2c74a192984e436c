// SPDX-License-Identifier: BSD-3-Clause
//
// Levels: keeps versions of a pool where they survive the loss of its node, beside the program.
//
//   every k-th version   is taken as an image, in the background, to a file of its own (level_file)
//   redundancy           ranks on other nodes keep what rebuilds it (redundancy.hpp)
//   drain                it is written to a directory on a parallel file system (drain.hpp)
//
// How a version is taken (numbers of commit.cpp)
//   after 4    if it is due and nothing is under way, a thread copies it: the pool is not stored to
//              there before release() (commit.cpp, pool.I10)
//   then       images of a failure group are exchanged, in slices of the program's own calls, or by
//              the thread where the message library allows it
//   in 3       of later commits each rank says the newest version that is whole here (image and
//              guard), and the newest whose drain has ended
//
// Invariants
//   levels.K1  What is under way follows from versions and agreed words only, so all ranks decide
//       alike: a version is taken if it is due and the one before is whole on all ranks. Otherwise
//       it is skipped and counted: nobody waits for a level, except for the last version of the
//       job.
//   levels.K2  The version that was last whole on all ranks keeps one image and one guard on every
//       rank until a newer one is whole on all ranks, which 3 of some commit says. So does one that
//       is being drained. Hence three files of each kind: one is always free. While a version that
//       was brought back gets its redundancy, what it was brought back from stays, and what can
//       bear more losses than that.
//   levels.K3  What a restore or a start gave up is never brought back. The nodes clear all images
//       and guards of newer versions that they have, of whatever rank, and rank 0 marks those that
//       were drained, before the ranks agree that they have the older one. If the job dies between,
//       the pool may go on from the older version while some are still there: choice.hpp,
//       levels.A2. start() clears them before the first commit; also those of a version that it
//       could not have, of which the nodes that it has not got may hold the rest.
//   levels.K4  When an exchange fails, there is no redundancy for the rest of the run: a message
//       that nobody waits for any more would be taken for one of the next. What was whole stays,
//       and so do the files that messages may still be read from.
//   levels.K5  A cached file that is committed with the pool is whole in every image of a version
//       that it belongs to: the ranks' images have it among them, up to its last byte, so that it
//       can be brought back whatever the file itself holds (cache/part_share.hpp). An image without
//       a file is one of a version to which the file did not belong, or at which the file has all
//       by itself. Hence, after a restart with parts of a file left behind, or from images that
//       have one, nothing is protected before the file is open again; and opening it is not done
//       before a version with it is whole, where there is redundancy. What this life protected
//       without it is protected again, as a newer image; only where this life committed the
//       version, and has taken it, the file is kept from the next version on that is due.
//
// Threads: the pool's caller, and one of its own. Failure: of a level is reported on stderr by one
// rank, and never fails a commit.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/group.hpp"
#include "base/status.hpp"
#include "levels/census.hpp"
#include "levels/drain.hpp"
#include "levels/leased_drains.hpp"
#include "levels/level_file.hpp"
#include "levels/redundancy.hpp"
#include "levels/settings.hpp"
#include "pool/image.hpp"
#include "pool/pool.hpp"
#include "pool/pool_directory.hpp"
#include "pool/version_taker.hpp"

namespace perdure {

// Counted since the pool was opened.
struct LevelCounters {
  std::uint64_t taken = 0;      // versions whose image was begun
  std::uint64_t skipped = 0;    // that were due while one was under way
  std::uint64_t whole = 0;      // that were whole on all ranks, with redundancy
  std::uint64_t waited_ns = 0;  // by the program: in release(), slices and close()
};

class Levels final : public VersionTaker {
 public:
  // [collective] Null if no level is asked for, and by default on one node. The group outlives it.
  // `more` are drains beside the one of the settings.
  static Result<std::unique_ptr<Levels>> create(Group& group, const std::string& directory,
                                                const LevelSettings& settings, Trust trust,
                                                std::vector<DrainTarget> more = {});
  ~Levels() override;

  // [collective] Opens the pool with the newest version that any level can give (restart.hpp). What
  // was done is said on stderr by rank 0.
  Result<std::unique_ptr<Pool>> open(const OpenOptions& options);
  // Ends what is under way, as far as patience goes. Before the pool is closed. Collective if the
  // other ranks close as well (`together`), and else local.
  void close(bool together = true);
  // Local: at the end of a process to which the other ranks may not come. What is drained here
  // arrives, as far as patience goes; of the rest a line says that it may not.
  void end_alone(std::chrono::milliseconds patience);

  // [collective] Waits, as far as patience goes, until every version that is under way has arrived:
  // on other nodes, and in the directories of the drains with its manifest. Returns the newest that
  // has arrived at all levels since the pool was opened; 0 if there is none. Code::busy if
  // something is still on its way; otherwise the failure of a level, once.
  Result<std::uint64_t> wait();
  // As far as this rank knows. Local.
  bool is_under_way() const;

  // The next version is due for every level: the job is about to end.
  void take_next() { take_next_ = true; }
  LevelCounters counters() const { return counters_; }
  // The newest version that is whole on all ranks, as the last commit found.
  const std::optional<VersionId>& whole() const { return whole_; }

  std::string whole_elsewhere() const override { return whole_elsewhere_; }
  void release(std::uint64_t version) override;
  Status changed(const Catalogue& newest) override;
  std::span<std::uint64_t> words() override;
  void committed(const Catalogue& catalogue) override;
  Status restoring(const Catalogue& target, std::uint64_t incarnation) override;
  Status restored(const Catalogue& target) override;
  Result<bool> admit(const std::string& name, const std::string& obstacle) override;
  Status joined(Companion& companion, const Catalogue& newest) override;
  void leaving(Companion& companion) override;
  Result<std::optional<HeldShare>> held(const std::string& name, std::uint64_t version) override;
  void progress() override {
    if (taking_) slice();
  }

 private:
  enum class Phase { idle, copying, copied, exchanging, whole, failed };
  // A level that versions are drained to; the thread that drains is in the lowest rank of a node.
  struct Drain {
    DrainTarget target;
    std::unique_ptr<NodeDrain> node = nullptr;
    std::uint64_t started = 0;   // versions
    std::uint64_t reported = 0;  // failures
  };
  // The version that is being taken.
  struct UnderWay {
    VersionId id;
    LevelFile* image = nullptr;
    LevelFile* guard = nullptr;
    std::uint64_t guard_bytes = 0;  // that it will have, as far as this rank knows; 0: no guard
    std::optional<Image> contents;
    std::unique_ptr<Exchange> exchange;
  };

  Levels(Group& group, std::string directory, const LevelSettings& settings, Trust trust);
  Status take_leases();
  const LeasedDrain& lease_of(const Drain& drain) const;
  void start_drains();
  bool drains_ended() const;
  void drain_next();
  void stop_drains(std::uint64_t start_ns, std::uint64_t patience_ns);
  Status wait_for_drains(std::uint64_t start_ns);
  Status new_failure();
  std::uint64_t drained() const;
  Status still_under_way() const;
  void agree_at_the_end(std::uint64_t start_ns);
  void drain_last(std::uint64_t start_ns);
  Status choose_groups();
  Status start(Pool& pool);
  Status start_files();
  Status open_files();
  Status remove_of_others() const;
  Status find_whole();
  Status give_up_newer(std::uint64_t held);
  Status abandon_drained(VersionId held, std::uint64_t incarnation_max) const;
  std::uint64_t free_incarnation(const Catalogue& catalogue) const;
  Status protect(const Catalogue& catalogue, std::uint64_t incarnation);
  Status find_expected(const Census& census);
  Status keep_sources();
  bool whole_has(const std::string& name) const;
  bool due(std::uint64_t version) const;
  LevelFile* free_file(std::vector<LevelFile>& files) const;
  void take(const Catalogue& catalogue);
  void end_taking(bool whole);
  void note_agreed_words();
  void finish_under_way();
  void stop_redundancy(const std::string& why);
  void work();
  Status copy();
  bool advance(std::uint64_t bytes);
  void slice();
  void say(const std::string& sentence) const;
  Phase phase() const;
  void set_phase(Phase phase, const Status& failure = Status::success());

  Group& group_;
  std::string directory_;
  LevelSettings settings_;
  Trust trust_;
  std::vector<std::uint32_t> nodes_;
  std::vector<std::uint32_t> members_;  // of this rank's failure group; empty: no redundancy
  std::uint32_t losses_ = 1;
  bool beside_ = false;  // the thread exchanges
  JobRecord job_;
  Pool* pool_ = nullptr;
  bool active_ = false;            // versions are taken
  std::vector<LevelFile> images_;  // of this rank
  std::vector<LevelFile> guards_;
  std::optional<VersionId> whole_;   // on all ranks
  std::optional<VersionId> source_;  // that the pool was, or would be, brought back from
  std::set<std::string> expected_;   // levels.K5: files of the restart's version, until they join
  bool unprotected_ = false;         // levels.K5: it is to be protected when they have
  std::vector<Companion*> companions_;
  std::optional<VersionId> behind_;  // the images that the pool was made of (BringBack)
  std::optional<LevelFile> held_;    // this rank's of them, once it was asked for
  std::optional<VersionId> taking_;  // of all ranks
  std::optional<VersionId> taken_last_;
  std::uint64_t protected_as_ = 0;  // incarnation of the image that protected a version last
  std::vector<Drain> drains_;
  std::optional<LeasedDrains> leased_;
  std::string whole_elsewhere_;
  std::optional<VersionId> draining_;  // of all ranks
  bool take_next_ = false;
  bool take_last_ = false;               // the version under way is due for every level
  std::optional<VersionId> drain_next_;  // as soon as nothing else is drained
  std::uint64_t sliced_ns_ = 0;          // when the last slice ended
  std::uint64_t words_[3] = {};
  std::vector<std::unique_ptr<Exchange>> abandoned_;  // levels.K4
  LevelCounters counters_;

  std::mutex exchange_mutex_;  // of what advances the exchange; before mutex_
  mutable std::mutex mutex_;   // of phase_, failure_ and stopping_
  std::condition_variable changed_;
  Phase phase_ = Phase::idle;  // of under_way_ on this rank
  UnderWay under_way_;         // the thread's while it copies, and while it exchanges
  Status failure_;
  Status stopped_;  // why there is no redundancy any longer
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace perdure
