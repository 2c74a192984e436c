// SPDX-License-Identifier: BSD-3-Clause
//
// What the handles of perdure.h refer to.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/fork_guard.hpp"
#include "base/group.hpp"
#include "base/status.hpp"
#include "perdure/perdure.h"
#include "pool/pool.hpp"
#include "pool/pool_directory.hpp"

namespace perdure {
class CommitWatch;  // base/commit_watch.hpp
class ObjectSet;    // ipv/object_set.hpp
class PoolEnergy;   // pool_energy.hpp
class Levels;       // levels/levels.hpp
}  // namespace perdure

// The pool hands out arrays by address; they live as long as it does.
struct perdure_array {
  perdure::VersionedArray* array = nullptr;
  perdure_pool* pool = nullptr;
  std::size_t element_bytes = 0;
};

struct perdure_pool {
  perdure_pool();
  ~perdure_pool();
  perdure::ForkGuard fork;
  mutable std::atomic<bool> in_call = false;    // of a thread
  std::unique_ptr<perdure::Group> group;        // outlives the pool
  std::shared_ptr<perdure::PoolEnergy> energy;  // outlives it too; null: nothing is asked for
  std::unique_ptr<perdure::Pool> pool;
  std::unique_ptr<perdure::Levels> levels;  // read the pool; null: there are none
  std::unique_ptr<perdure::CommitWatch>
      watch;  // null: nobody waits for others, or it is not asked for
  std::vector<std::unique_ptr<perdure_array>> arrays;
  bool of_windows = false;                // closed with its last window, not by perdure_close()
  bool stop_watched = false;              // rank 0 looks whether the job is to end
  bool closes_alone = false;              // the other ranks do something else
  perdure::ObjectSet* objects = nullptr;  // in-place versioning makes its versions
};

namespace perdure {

// Keeps the sentence for perdure_last_error() and returns the code.
int report(const Status& status);

// Runs `body`, which returns a Status; no exception leaves it.
template <typename Body>
int guarded(const Body& body) noexcept {
  try {
    return report(body());
  } catch (const std::bad_alloc&) {
    return report(Status(Code::no_space, "out of memory"));
  } catch (const std::exception& error) {
    return report(Status(Code::io_error, "unexpected: ", error.what()));
  }
}

// A call into a pool: refused in a forked child, and while another thread is in one. Two threads
// that take turns are not found out, and need not be.
class PoolCall {
 public:
  explicit PoolCall(const perdure_pool* pool);
  ~PoolCall() {
    if (status_.ok() && pool_ != nullptr) pool_->in_call.store(false, std::memory_order_release);
  }
  PoolCall(const PoolCall&) = delete;
  PoolCall& operator=(const PoolCall&) = delete;

  const Status& status() const { return status_; }
  // The pool is about to be deleted.
  void forget() { pool_ = nullptr; }

 private:
  const perdure_pool* pool_;
  Status status_;
};

// guarded(), of a call into a pool.
template <typename Body>
int guarded_on(const perdure_pool* pool, const Body& body) noexcept {
  return guarded([&]() -> Status {
    const PoolCall call(pool);
    PERDURE_TRY(call.status());
    return body();
  });
}

// Collective, before the pool is deleted in any case: ends an unfinished commit. If other ranks are
// in other calls, these fail, and the commit is dropped.
Status close_with_others(perdure_pool& pool);

// Nothing of the pool runs beside the program when it returns.
void quiesce(const perdure_pool* pool);
// The call would make, restore or leave a version without the knowledge of the pool's objects.
Status check_no_objects(const perdure_pool* pool);

// perdure_options with its defaults and the environment filled in.
Result<OpenOptions> open_options(const perdure_options* options);

// Opens a pool for a group and makes the handle.
Status open_handle(std::unique_ptr<Group> group, const char* path, const perdure_options* options,
                   perdure_pool** pool);

}  // namespace perdure
