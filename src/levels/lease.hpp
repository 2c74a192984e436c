// SPDX-License-Identifier: BSD-3-Clause
//
// Lease: which run may drain to a level. Two runs of one job that drain to the same directory
// without knowing of each other (the script was sent twice; the job was requeued while its first
// copy still runs, cut off from the batch system) would take each other's versions for their own.
//
//   LEVEL/POOL/lease-N   of the N-th run: its job, lineage and holder, a counter, if it is held
//
// N is the fence number. The holder is the run whose lease has the highest number. It counts its
// file's counter up (a beat), and says at its end that the lease is no longer held.
//
//   take   1  the newest lease is read; its holder must be gone:
//               it gave the lease back, or
//               it is a process of this machine that has ended, or
//               its pool is the one that this run has opened, whose files it had locked, or
//               its counter stands still for its patience, by the clock of this run
//          2  versions are looked at, and one is chosen, if the nodes need one: the lineage that
//             will be made of it is written down
//          3  lease-(N+1) is published: renamed over nothing. Whoever finds that somebody else has
//             that number, or that there is a higher one, has lost, and is refused. If there was
//             no version, it is of the lineage of lease-N until a pool is made. If the nodes
//             have no pool, 2 is done again: the holder before may have published meanwhile
//   drain  4  before node files and manifests are written each writer looks for a lease above its
//             own. If there is one, the run is fenced off: it publishes nothing any more and says
//             so; its pool and its other levels go on
//
// Why that suffices: of all runs that take a number one gets it, without a lock, which network file
// systems may lack (levels.L2). Two runs that are both alive can both drain only if each holds the
// highest number in its own eyes, which ends at the later one's publication, or if one was taken
// for gone that is not. Then both have pools of their own, because the files of a pool are locked:
// the later one has new ones, made of drained versions, and a lineage of its own, whose history was
// decided in 3 (lineage.hpp, levels.Y2). All that is shared is the directory, where their versions
// have different places and neither removes the other's (manifest.hpp, levels.M2): what a run that
// was taken for dead has made stays, and what it publishes between 4 and its rename is no part of
// the new history. If the next run goes on from nodes, what appears is of its own lineage, whole,
// and of a lower incarnation than all that it makes. Whichever starts again on its nodes keeps what
// it acknowledged beyond the other's origin (choice.hpp, levels.A6). Nodes of which one has files
// of that lineage have nothing beyond: who began it had that one, and gave up what was there.
// tests/spin/lease.pml has two runs, kills, runs that are cut off, halves of a job that both go on,
// and nodes that come back with what was given up.
//
// A holder that can't write its beats for its patience may lose the lease, which 4 shows.
//
// Threads: one calls; a lease has a thread of its own, which writes beats. Failure: a beat that
// can't be written is tried again. Code::busy names who holds the lease, and what to do.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/files.hpp"
#include "base/status.hpp"
#include "levels/level_file.hpp"

namespace perdure {

// The process that writes the beats.
struct LeaseHolder {
  std::string host;
  std::string batch_job;  // the batch system's; empty: none is known
  std::string boot_id;
  std::uint64_t pid_space = 0;
  std::uint64_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::uint64_t since_ns = 0;
};

struct LeaseRecord {
  std::uint64_t number = 0;
  JobRecord job;  // without a place
  LeaseHolder holder;
  std::uint64_t beats = 0;
  std::chrono::milliseconds patience{0};
  bool held = false;
  // "job 'heat' (ID) on host n12, process 4711, batch job '17', since 2026-11-28 04:12:33 UTC".
  std::string text() const;
};

// None: there is no lease. Code::damaged, newer_format.
Result<std::optional<LeaseRecord>> newest_lease(const std::string& place);

// Success if the holder is gone, which may take its patience to see.
Status wait_until_gone(const std::string& place, const LeaseRecord& record);

// Success unless there is a lease above `number`: what step 4 asks.
Status check_lease(const std::string& place, std::uint64_t number);

// Code::foreign if the lease is of a job of another name.
Status check_name(const std::string& place, const LeaseRecord& record, const std::string& job_name);

// For a job that drained without a run (`perdure pool drain`): a lease that nobody holds, if there
// is none or if that of an older job is not held either.
Status note_job(const std::string& place, const JobRecord& job);

class Lease {
 public:
  // Step 3, of the number after `above`. `fenced` is called once, by the lease's thread, when a
  // beat finds that another run has taken the level.
  static Result<std::unique_ptr<Lease>> take(const std::string& place, const JobRecord& job,
                                             std::uint64_t above,
                                             std::chrono::milliseconds patience,
                                             std::function<void(const Status&)> fenced);
  // As give_back(), with a patience of a second.
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  std::uint64_t number() const;
  // What the pool of this run turned out to be. Code::busy if the run was fenced off meanwhile.
  Status set_job(const JobRecord& job);
  // Ends the beats and says so; a writer that is stuck is left alone after `patience`.
  void give_back(std::chrono::milliseconds patience);

 private:
  struct Shared;
  explicit Lease(std::shared_ptr<Shared> shared);
  static void beat(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace perdure
