// SPDX-License-Identifier: BSD-3-Clause
//
// Run page: what a rank reports to the launcher (`perdure run`) while it runs, and the rehearsed
// failure that the launcher may ask for.
//
// The launcher sets PERDURE_RUN_DIR to a directory of its own; each rank maps the file
// page-NNNNN there (4096 bytes) and stores this struct into it. Single fields are atomic; the
// struct as a whole is not. A file of that name that is no run page stays as it is. Where there is
// no page, one line on stderr says why, and nothing fails.
//
// A rank whose pool is refused for a reason that no restart can repair says which, so that the
// launcher does not start the job again to hear the same.
//
// Where the ranks are on several nodes the launcher sets PERDURE_RUN_SHARED too, a directory that
// all nodes see. Each rank leaves its page there when it closes its pool, and rank 0 when it
// restarts, so that the launcher knows of ranks that never closed. Commits do not touch it.
//
// The launcher asks for the end of the job by a file `stop` in both directories. Rank 0 looks for
// it, and renames the one that it found to `stopping`.
//
// PERDURE_KILL="rank=R,iteration=N,point=P" makes rank R send itself SIGKILL in the commit whose
// scalar "iteration" is at least N (the version's number, if there is no such scalar), at point P:
//   copy    half of the arrays are copied or flushed    data    all is stored, nothing is durable
//   slot    data and slot are durable, the state        state   the version is durable on this
//           word is not stored                                  rank, perhaps not on others
//   agreed  it is durable on all ranks
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/file_handle.hpp"
#include "base/status.hpp"

namespace perdure {

constexpr std::uint64_t run_page_magic = 0x314e555244524550U;  // "PERDRUN1"
constexpr std::size_t run_page_bytes = 4096;
constexpr std::size_t refusal_bytes = 1024;
constexpr std::uint64_t no_iteration = ~std::uint64_t{0};

// A process whose page says anything but closed is missed by the launcher when it is gone.
enum class RunPhase : std::uint32_t {
  opening = 0,
  restarting = 1,
  computing = 2,
  committing = 3,
  closed = 4,
  refused = 5  // until the program opens a pool after all
};

// Little-endian, fixed offsets; the launcher reads it with struct.unpack("<QIIIIQQQQQQQQQQ1024s").
struct RunPageFormat {
  std::atomic<std::uint64_t> magic;
  std::atomic<std::uint32_t> pid;
  std::atomic<std::uint32_t> rank;
  std::atomic<std::uint32_t> ranks;
  std::atomic<std::uint32_t> phase;              // RunPhase
  std::atomic<std::uint64_t> version;            // newest committed
  std::atomic<std::uint64_t> iteration;          // scalar "iteration" at that commit
  std::atomic<std::uint64_t> commits;            // in this process
  std::atomic<std::uint64_t> commit_ns_last;     // blocking time of the newest commit
  std::atomic<std::uint64_t> commit_ns_total;    // of all commits of this process
  std::atomic<std::uint64_t> commit_bytes_last;  // copied or flushed by the newest commit
  std::atomic<std::uint64_t> commit_bytes_total;
  std::atomic<std::uint64_t> model_ns_total;    // added by an emulated device (virtual clock)
  std::atomic<std::uint64_t> restored_version;  // by perdure_restart, 0 for a fresh start
  std::atomic<std::uint64_t> restart_ns;        // of perdure_restart
  char refusal[refusal_bytes];                  // the sentence, if the phase is `refused`
};
static_assert(sizeof(RunPageFormat) == 8 + 4 * 4 + 10 * 8 + refusal_bytes);
static_assert(offsetof(RunPageFormat, version) == 24);

enum class KillPoint : std::uint32_t { none, copy, data, slot, state, agreed };

struct CommitFacts {
  std::uint64_t version = 0;
  std::uint64_t iteration = no_iteration;
  std::uint64_t commit_ns = 0;  // that the application waited
  std::uint64_t bytes = 0;      // copied or flushed
  std::uint64_t model_ns = 0;   // since the pool was opened
};

// A page that loses its name (a cleaner removed it) is said once on stderr: `perdure run` reads it
// no more, and the job goes on.
//
// One per pool; the first pool of a process owns the page, later ones are silent.
class RunPage {
 public:
  RunPage(std::uint32_t rank, std::uint32_t ranks);
  ~RunPage();
  RunPage(const RunPage&) = delete;
  RunPage& operator=(const RunPage&) = delete;

  // Reports a pool that was refused before there was a page of it.
  static void report_refusal(std::uint32_t rank, std::uint32_t ranks, const Status& why);

  void set_phase(RunPhase phase);
  // If it is of a kind that the next start meets again; otherwise nothing.
  void set_refused(const Status& why);
  // The pool is closed; the destructor says so too.
  void end();
  void set_restored(std::uint64_t version, std::uint64_t iteration, std::uint64_t restart_ns);
  void set_committed(const CommitFacts& facts);

  // Whether the launcher may ask for the end, and whether it has. Local; true only on rank 0. It
  // looks at most once a second, and knows from then on.
  bool may_be_stopped() const { return !stop_directory_.empty(); }
  bool stop_asked();

  // Dies here if the rehearsed failure is due.
  void rehearse(KillPoint point, std::uint64_t version, std::uint64_t iteration) const;

 private:
  void open_page(const std::string& directory, std::uint32_t rank);
  void leave_page() const;
  void check_page();

  RunPageFormat* page_ = nullptr;
  std::unique_ptr<RunPageFormat> own_page_;  // of a rank that is not on the launcher's node
  std::string shared_;                       // PERDURE_RUN_SHARED
  std::string stop_directory_;
  bool stop_asked_ = false;
  std::uint64_t looked_ns_ = 0;
  FileHandle file_;  // while the page has a name
  KillPoint kill_point_ = KillPoint::none;
  std::uint64_t kill_iteration_ = 0;
};

}  // namespace perdure
