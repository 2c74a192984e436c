// SPDX-License-Identifier: BSD-3-Clause
//
// Levels: keeps versions of a pool where they survive the loss of its node, beside the program.
//
//   every k-th version   is taken as an image, in the background, to a file of its own (own_files)
//   redundancy           ranks on other nodes keep what rebuilds it (replication.hpp)
//   drain                it is written to a directory on a parallel file system (drains.hpp)
//   what joined it       is in the images (joined_files.hpp)
//
// This class has what all ranks agree on: which version is due, under way, and whole.
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
//   levels.K3  What a restore or a start gave up is never brought back. The nodes clear all images
//       and guards of newer versions that they have, of whatever rank, and rank 0 marks those that
//       were drained, before the ranks agree that they have the older one. If the job dies between,
//       the pool may go on from the older version while some are still there: nothing takes its
//       place (choice.hpp). start() clears them before the first commit; also those of a version
//       that it could not have, of which the nodes that it has not got may hold the rest. Those,
//       when they are back, don't count (recovery_plan.hpp).
//
// Threads: the pool's caller, and one of its own. Failure: of a level is reported on stderr by one
// rank, and never fails a commit.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "base/status.hpp"
#include "levels/census.hpp"
#include "levels/drains.hpp"
#include "levels/joined_files.hpp"
#include "levels/own_files.hpp"
#include "levels/own_node.hpp"
#include "levels/replication.hpp"
#include "levels/settings.hpp"
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

// The incarnations of images: two images of one id would be taken for one another.
class ImageIncarnations {
 public:
  // How often a version that the pool holds can be protected anew, each time with one file more
  // (joined_files.hpp, levels.K5).
  static constexpr std::uint64_t protections_max = 16;
  // Of an image of a version that the pool holds, so that it counts as newer than what was given up
  // before, also on a node that is away, and than images of the version that this life, whose
  // incarnation is `own`, took before. 0: there is none left.
  std::uint64_t free_for(const Catalogue& catalogue, std::uint64_t own) const;
  void note_taken(VersionId id) { taken_last_ = id; }
  void note_protected(VersionId id) { protected_as_ = id.incarnation; }

 private:
  std::optional<VersionId> taken_last_;
  std::uint64_t protected_as_ = 0;  // of the image that protected a version last
};

class Levels final : public VersionTaker {
 public:
  // [collective] Null if no level is asked for, and by default on one node. The group outlives it.
  // `more` are drains beside the one of the settings.
  static Result<std::unique_ptr<Levels>> create(Group& group, const std::string& directory,
                                                const LevelSettings& settings, Trust trust,
                                                std::vector<DrainTarget> more = {});

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
  LevelCounters counters() const;
  // The newest version that is whole on all ranks, as the last commit found.
  const std::optional<VersionId>& whole() const { return agreed_.whole; }

  std::string whole_elsewhere() const override { return whole_elsewhere_; }
  void release(std::uint64_t version) override { replication_.release(version); }
  Status changed(const Catalogue& newest) override;
  std::span<std::uint64_t> words() override;
  void committed(const Catalogue& catalogue) override;
  Status restoring(const Catalogue& target, std::uint64_t incarnation) override;
  Status restored(const Catalogue& target) override;
  Result<bool> admit(const std::string& name, const std::string& obstacle) override;
  Status joined(Companion& companion, const Catalogue& newest) override;
  void leaving(Companion& companion) override;
  Result<std::optional<HeldShare>> held(const std::string& name, std::uint64_t version) override {
    return joined_.held(node_.directory, name, version);
  }
  void progress() override {
    if (agreed_.taking) replication_.slice();
  }

 private:
  using Phase = Replication::Phase;
  // levels.K1: the same on all ranks.
  struct Agreed {
    std::optional<VersionId> whole;   // the newest that is, on all of them
    std::optional<VersionId> source;  // that the pool was, or would be, brought back from
    std::optional<VersionId> taking;  // that is under way,
    bool to_all = false;              // and due for every level
  };

  Levels(const OwnNode& node, const LevelSettings& settings, std::vector<DrainTarget> more)
      : node_(node), settings_(settings), drains_(node_, settings_, std::move(more)) {}
  bool has_none() const { return replication_.members().empty() && !drains_.any(); }
  Status start(Pool& pool);
  Status start_files();
  Status find_whole();
  Status give_up_newer(std::uint64_t held);
  Status protect(const Catalogue& catalogue, std::uint64_t incarnation);
  Status find_expected(const Census& census);
  Status keep_sources();
  bool whole_has(const std::string& name) const;
  std::uint64_t free_incarnation(const Catalogue& catalogue) const;
  bool due(std::uint64_t version) const;
  void take(const Catalogue& catalogue, bool to_all);
  void end_taking(bool whole);
  void finish_together();
  void end_what_is_under_way();
  void note_agreed_words();
  void stop_redundancy(const std::string& why);
  Status new_failure();
  Status still_under_way() const;
  bool agree_at_the_end(std::uint64_t start_ns);

  OwnNode node_;
  LevelSettings settings_;
  Pool* pool_ = nullptr;
  OwnFiles files_{node_};
  Drains drains_;
  Replication replication_{node_};
  JoinedFiles joined_;
  bool active_ = false;  // versions are taken
  Agreed agreed_;
  ImageIncarnations incarnations_;
  std::string whole_elsewhere_;
  bool take_next_ = false;
  std::uint64_t words_[3] = {};
  LevelCounters counters_;
};

}  // namespace perdure
