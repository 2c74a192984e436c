// SPDX-License-Identifier: BSD-3-Clause
//
// Window pool: a pool whose windows commit together, and the pools that are open in this process.
//
// A pool is opened and restarted by its first window and closed with its last one. Its windows have
// the same ranks in the same order. The pool of all ranks that PERDURE_WINDOWS names stays open: a
// program that makes windows again and again would open it each time, which takes twenty times as
// long as a window. A window of these ranks that names it, or asks for other options, closes it
// first, and so does perdure_open() of it (capi/parked_pool.hpp).
//
// A commit and one-sided operations. A rank's contents may be taken when (a) all operations of the
// epoch have arrived, and (b) none of the next epoch can arrive before the contents are taken.
//   fence     (a) by MPI_Win_fence itself; (b) as the agreement of the commit comes after the copy,
//             and no rank returns from it, to begin the next epoch, before all have made theirs
//   wait      (a) by MPI_Win_wait; (b) as with fence: nobody may start before this rank posts
//   passive   (a) each rank completes its own operations, then all agree; (b) as with fence
// So a commit adds one collective to an active-target call, the agreement that makes a version, and
// two to a passive-target one, whose end says nothing about the other ranks.
//
// Threads: collective calls of one pool are serialised by it. Failure: see Pool.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/commit_watch.hpp"
#include "capi/pool_handle.hpp"
#include "mpi/mpi_group.hpp"
#include "rma/window.hpp"
#include "rma/window_options.hpp"

namespace perdure {

class WindowPool {
 public:
  // Collective over `comm`. Finds the open pool of options' path, or opens and restarts it. If a
  // rank fails, or failed before (`local`), all do.
  static Result<WindowPool*> join(const Status& local, const WindowOptions& options, MPI_Comm comm);
  // Collective over `comm`, in one exchange: the open pool, if join() would find it on all ranks;
  // otherwise null. Code::rank_mismatch on all ranks that did not fail before, if they are to make
  // windows of different kinds: what each would call next has no partner.
  static Result<WindowPool*> find_on_all(const Status& local, const WindowOptions& options,
                                         MPI_Comm comm);
  // Collective. Closes the pool when no window is left, unless it stays for the program's next one.
  static Status leave(WindowPool* pool);

  MpiGroup& group() { return *group_; }
  Pool& pool() { return *handle_->pool; }
  perdure_pool* handle() { return handle_.get(); }
  const std::string& path() const { return request_.path; }
  std::uint64_t restored_version() const { return restored_version_; }
  // Collective the first time.
  Result<const ExposedPool*> exposed();

  // Collective if there are none: those of a window before, or new ones. Where each post of that
  // window had its start, as MPI requires, the counts go on from where they are.
  WindowBoards take_boards();
  void give_back(WindowBoards boards);

  void add(Window& window);
  // Collective, before it is removed: all ranks are about to free this window.
  Status agree_to_free(const Window& window);
  // Collective, where MPI ends: no rank has an operation under way. Whoever makes another call
  // meanwhile gets an error, and nobody waits for this rank any more (agreement.hpp, base.M5).
  Result<bool> agree_to_end(const Window& window);
  // Collective. Keeps or erases what the pool holds of the window.
  Status remove(Window& window);
  // Local. A region of a dynamic window is no part of the next version.
  Status detach(Window& window, VersionedArray& array);

  // Collective; `doing` is for people. `quiesce`: complete the operations of passive-target epochs
  // first, on all ranks.
  Result<std::uint64_t> commit(bool quiesce, std::string doing,
                               WatchedCommit::Call call = WatchedCommit::Call::commit);

 private:
  explicit WindowPool(WindowPoolOptions request) : request_(std::move(request)) {}
  static Result<std::unique_ptr<WindowPool>> open(const WindowOptions& options,
                                                  std::unique_ptr<MpiGroup> group);
  Status check_same(const WindowOptions& options, MPI_Comm comm) const;
  bool has_ranks_of(MPI_Comm comm) const;
  bool is_kept_for(const WindowOptions& options, MPI_Comm comm) const;
  static std::function<void()> find_parked(const std::string& directory, Group& group);
  Status complete_operations();
  Status check_quiet() const;
  Status settle();
  Result<std::uint64_t> commit_locked(bool quiesce);

  WindowPoolOptions request_;
  std::unique_ptr<perdure_pool> handle_;
  MpiGroup* group_ = nullptr;  // owned by handle_
  std::uint64_t restored_version_ = 0;
  std::vector<Window*> windows_;
  std::optional<ExposedPool> exposed_;
  std::vector<WindowBoards> boards_;  // that no window has, in the same order on all ranks
  bool stays_ = false;                // open when it has no windows, until the program ends
  bool asynchronous_ = false;
  bool erased_ = false;  // something that no version has forgotten yet, of any rank
  std::mutex mutex_;
};

}  // namespace perdure
