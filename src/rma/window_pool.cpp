// SPDX-License-Identifier: BSD-3-Clause
#include "rma/window_pool.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "base/agreement.hpp"
#include "base/checksum.hpp"
#include "base/commit_watch.hpp"
#include "capi/parked_pool.hpp"
#include "mpi/mpi_library.hpp"
#include "mpi/watch_commits.hpp"
#include "pool/open_pools.hpp"
#include "rma/mpi_calls.hpp"

namespace perdure {
namespace {

OpenPools<std::unique_ptr<WindowPool>>& open_pools() {
  // Those whose windows were not freed stay as they are when the process ends (process_end.hpp).
  static auto& pools = *new OpenPools<std::unique_ptr<WindowPool>>;
  return pools;
}

Status differs(const std::string& what) {
  return Status(Code::invalid_argument, "the pool was opened by another window with another ", what,
                "; say it on the first window of the pool only");
}

perdure_options options_from(const WindowPoolOptions& request) {
  perdure_options options{};
  options.job = request.job.empty() ? nullptr : request.job.c_str();
  options.emulate = request.emulate.empty() ? nullptr : request.emulate.c_str();
  options.delay = request.delay;
  options.copy_threads = request.threads;
  options.keep = request.keep;
  options.levels = request.levels.empty() ? nullptr : request.levels.c_str();
  if (request.restore == RestoreChoice::discard) options.flags |= PERDURE_DISCARD;
  if (request.allow_older) options.flags |= PERDURE_ALLOW_OLDER;
  if (request.any_ranks) options.flags |= PERDURE_ANY_RANKS;
  return options;
}

// What PERDURE_WINDOWS names is looked up once.
std::string directory_of(const WindowOptions& options) {
  if (!options.by_environment) return canonical(options.pool.path);
  static std::mutex mutex;
  static std::map<std::string, std::string> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [found, is_new] = known.try_emplace(options.pool.path);
  if (is_new) found->second = canonical(options.pool.path);
  return found->second;
}

bool has_all_ranks(MPI_Comm comm) {
  int comparison = MPI_UNEQUAL;
  PMPI_Comm_compare(comm, comm_world(), &comparison);
  return comparison == MPI_CONGRUENT || comparison == MPI_IDENT;
}

Status agree_to_join(Group& group, const Status& local, std::span<std::uint64_t> seen) {
  const CollectiveCall call(group, "the making of a window");
  return agree_max(group, local, seen);
}

bool is_held(const VersionedArray& array) {
  return array.committed() || array.part_of_version() != 0;
}

// By a version, on this rank: each has regions of its own.
bool is_held(const Window& window) {
  if (window.detached_held || (window.array != nullptr && is_held(*window.array))) return true;
  return std::ranges::any_of(window.attached,
                             [](const auto& each) { return is_held(*each.second); });
}

}  // namespace

Status WindowPool::check_same(const WindowOptions& options, MPI_Comm comm) const {
  if (!has_ranks_of(comm)) {
    return Status(Code::rank_mismatch, "the pool ", request_.path,
                  " belongs to a communicator with other ranks; give windows of each communicator "
                  "a pool of their own (perdure_pool)");
  }
  const WindowPoolOptions& request = options.pool;
  if (!request.job.empty() && request.job != request_.job) return differs("perdure_job");
  if (!request.emulate.empty() && request.emulate != request_.emulate)
    return differs("perdure_emulate");
  if (request.keep != 0 && request.keep != request_.keep) return differs("perdure_keep");
  if (!request.levels.empty() && request.levels != request_.levels)
    return differs("perdure_levels");
  if (request.threads != 0 && request.threads != request_.threads)
    return differs("perdure_threads");
  if (request.restore != RestoreChoice::newest &&
      (request.restore != request_.restore || request.version != request_.version)) {
    return differs("perdure_restore");
  }
  return Status::success();
}

// Without windows it is only for those that are made in the way of its first. Closing it is for its
// own ranks; others learn that they are not these.
bool WindowPool::is_kept_for(const WindowOptions& options, MPI_Comm comm) const {
  if (!windows_.empty() || !has_ranks_of(comm)) return true;
  return options.by_environment && check_same(options, comm).ok();
}

bool WindowPool::has_ranks_of(MPI_Comm comm) const {
  int comparison = MPI_UNEQUAL;
  PMPI_Comm_compare(group_->comm(), comm, &comparison);
  return comparison == MPI_CONGRUENT || comparison == MPI_IDENT;
}

// MPI's groups have its communicator; one without MPI is that of one rank.
std::function<void()> WindowPool::find_parked(const std::string& directory, Group& group) {
  const std::string path = canonical(directory);
  WindowPool* const known = open_pools().find(path);
  if (known == nullptr || !known->stays_ || !known->windows_.empty()) return nullptr;
  const auto* const with_mpi = dynamic_cast<const MpiGroup*>(&group);
  const bool same = with_mpi != nullptr ? known->has_ranks_of(with_mpi->comm())
                                        : group.ranks() == 1 && known->group_->ranks() == 1;
  if (!same) return nullptr;
  return [path, known] { open_pools().remove(path, known); };
}

Result<WindowPool*> WindowPool::find_on_all(const Status& local, const WindowOptions& options,
                                            MPI_Comm comm) {
  WindowPool* const known = local.ok() ? open_pools().find(directory_of(options)) : nullptr;
  const bool fits = known != nullptr && known->is_kept_for(options, comm) &&
                    known->check_same(options, comm).ok();
  constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::min();
  const std::string said = local.ok() ? said_by_all(options) : "";
  const auto sum = static_cast<std::int64_t>(crc64(said.data(), said.size()) >> 1U);
  // Whether a rank lacks the pool; and the largest and the smallest of what they say, of those that
  // say something.
  const std::array<std::int64_t, 3> own{fits ? 0 : 1, local.ok() ? sum : nothing,
                                        local.ok() ? -sum : nothing};
  std::array<std::int64_t, 3> all = own;
  // Nothing of MPI_COMM_WORLD: a program of Sessions may be without it.
  PMPI_Allreduce(own.data(), all.data(), 3, type_int64(), op_max(), comm);
  if (all[1] != nothing && all[1] != -all[2]) {
    PERDURE_TRY(local);
    return Status(Code::rank_mismatch, "the ranks ask for different windows in one call, this one ",
                  "for ", said, "; give all of them the same keys (perdure_box may differ)");
  }
  return all[0] == 0 ? known : nullptr;
}

Result<WindowPool*> WindowPool::join(const Status& local, const WindowOptions& options,
                                     MPI_Comm comm) {
  PERDURE_TRY_ASSIGN(auto group, MpiGroup::create(comm));
  const std::string path = local.ok() ? directory_of(options) : "";
  WindowPool* known = local.ok() ? open_pools().find(path) : nullptr;
  WindowPool* const left = known != nullptr && !known->is_kept_for(options, comm) ? known : nullptr;
  if (left != nullptr) known = nullptr;
  Status ready = local;
  if (ready.ok() && known != nullptr) ready = known->check_same(options, comm);
  CommitPatience patience;
  if (ready.ok()) {
    auto parsed = commit_patience_of_environment();
    ready = parsed.status();
    if (parsed.ok()) patience = parsed.value();
  }
  std::array<std::uint64_t, 2> seen = {known != nullptr ? 1U : 0U, known == nullptr ? 1U : 0U};
  PERDURE_TRY(agree_to_join(*group, ready, seen));
  if (seen[0] == 1 && seen[1] == 1) {
    return Status(Code::rank_mismatch, "the pool ", path,
                  " is open on some ranks of the communicator only: it belongs to other ranks");
  }
  if (left != nullptr) open_pools().remove(path, left);
  if (known == nullptr) {
    WindowOptions at_path = options;
    at_path.pool.path = path;
    PERDURE_TRY_ASSIGN(auto opened, open(at_path, std::move(group)));
    known = open_pools().add(path, std::move(opened));
    known->handle_->watch = watch_commits(known->group_->comm(), path, patience);
  }
  return known;
}

Result<std::unique_ptr<WindowPool>> WindowPool::open(const WindowOptions& options,
                                                     std::unique_ptr<MpiGroup> group) {
  std::unique_ptr<WindowPool> pool(new WindowPool(options.pool));
  pool->group_ = group.get();
  pool->stays_ = options.by_environment && has_all_ranks(group->comm());
  if (pool->stays_) set_parked_pools(find_parked);
  const perdure_options with = options_from(options.pool);
  perdure_pool* handle = nullptr;
  PERDURE_TRY(open_handle(std::move(group), options.pool.path.c_str(), &with, &handle));
  pool->handle_.reset(handle);
  handle->of_windows = true;
  if (options.pool.restore == RestoreChoice::version) {
    PERDURE_TRY(handle->pool->restore(options.pool.version));
    pool->restored_version_ = options.pool.version;
    return pool;
  }
  handle->pool->take_arrays_late();  // windows are made after it
  PERDURE_TRY_ASSIGN(pool->restored_version_, handle->pool->restart());
  return pool;
}

Status WindowPool::leave(WindowPool* pool) {
  if (!pool->windows_.empty()) return Status::success();
  const Status settled = pool->settle();
  pool->asynchronous_ = false;
  if (!pool->stays_ || !settled.ok()) open_pools().remove(pool->path(), pool);
  return settled;
}

Result<const ExposedPool*> WindowPool::exposed() {
  if (!exposed_) {
    PERDURE_TRY_ASSIGN(exposed_, look_at_pool(*group_, path(), pool().device().file()));
  }
  exposed_->changing = pool().is_changing();
  return &*exposed_;
}

WindowBoards WindowPool::take_boards() {
  WindowBoards boards;
  if (!boards_.empty()) {
    boards = std::move(boards_.back());
    boards_.pop_back();
    return boards;
  }
  boards.posts = PostBoard::create(group_->comm());
  if (boards.posts != nullptr) boards.target_locks = TargetLocks::create(group_->comm());
  return boards;
}

void WindowPool::give_back(WindowBoards boards) {
  if (boards.target_locks != nullptr) boards_.push_back(std::move(boards));
}

// With its last window gone, what was erased is forgotten by a version of its own.
Status WindowPool::settle() {
  if (!erased_) return Status::success();
  erased_ = false;
  return pool().commit().status();
}

void WindowPool::add(Window& window) {
  const std::lock_guard<std::mutex> lock(mutex_);
  windows_.push_back(&window);
  asynchronous_ = asynchronous_ || window.options.asynchronous;
}

Status WindowPool::agree_to_free(const Window& window) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string freeing = "MPI_Win_free of window '" + window.options.name + "'";
  const CollectiveCall call(*group_, freeing.c_str());
  std::uint64_t held = window.options.delete_at_free && is_held(window) ? 1 : 0;
  PERDURE_TRY(agree_max(*group_, Status::success(), {&held, 1}));
  erased_ = erased_ || held != 0;
  return Status::success();
}

Result<bool> WindowPool::agree_to_end(const Window& window) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const CollectiveCall call(*group_, "MPI_Finalize", CollectiveCall::Kind::last);
  std::uint64_t busy = window.locks != 0 || window.pending ? 1 : 0;
  PERDURE_TRY(agree_max(*group_, Status::success(), {&busy, 1}));
  return busy == 0;
}

Status WindowPool::remove(Window& window) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const CollectiveCall call(*group_, "MPI_Win_free");
  std::erase(windows_, &window);
  Status status;
  if (pool().commit_pending()) status = pool().commit_wait().status();
  const bool erase = window.options.delete_at_free;
  if (window.array != nullptr) {
    if (Status closed = pool().close_array(window.array, erase); !closed.ok()) status = closed;
  }
  for (const auto& [base, array] : window.attached) {
    if (Status closed = pool().close_array(array, erase); !closed.ok()) status = closed;
  }
  return status;
}

Status WindowPool::detach(Window& window, VersionedArray& array) {
  const std::lock_guard<std::mutex> lock(mutex_);
  window.detached_held = window.detached_held || is_held(array);
  return pool().close_array(&array, true);
}

// Of this rank, in passive-target epochs: they may go on, but nothing is under way.
Status WindowPool::complete_operations() {
  for (Window* window : windows_) {
    if (window->locks.load() == 0) continue;
    int error = WindowCalls::Win_flush_all::real(window->handle);
    if (error == MPI_SUCCESS) error = WindowCalls::Win_sync::real(window->handle);
    if (error != MPI_SUCCESS) return mpi_status("MPI_Win_flush_all", error);
    window->pending = false;
  }
  return Status::success();
}

Status WindowPool::check_quiet() const {
  for (const Window* window : windows_) {
    bool pending = window->pending;
    for (const auto& half : window->halves) pending = pending || half->pending;
    if (!pending) continue;
    return Status(Code::wrong_state, "window '", window->options.name,
                  "' has operations under way; complete them (MPI_Win_fence, _complete, _flush_all "
                  "or _unlock) before a commit");
  }
  return Status::success();
}

Result<std::uint64_t> WindowPool::commit(bool quiesce, std::string doing,
                                         WatchedCommit::Call call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const WatchedCommit watched(handle_->watch.get(), std::move(doing), call);
  return commit_locked(quiesce);
}

Result<std::uint64_t> WindowPool::commit_locked(bool quiesce) {
  const CollectiveCall call(*group_, quiesce ? "perdure_win_commit, or an unlock that commits"
                                             : "the commit of MPI_Win_fence or MPI_Win_wait");
  if (quiesce) {
    Status quiet = complete_operations();
    if (quiet.ok()) quiet = check_quiet();
    PERDURE_TRY(agree(*group_, quiet));  // and all ranks have completed theirs
  }
  const Status ready = check_quiet();
  return asynchronous_ ? pool().commit_staged(ready) : pool().commit(ready);
}

}  // namespace perdure
