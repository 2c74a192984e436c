// SPDX-License-Identifier: BSD-3-Clause
//
// Pools and arrays of perdure.h, as Python holds them.
//
// Invariants
//   - The library has the address of an array's buffer or of a scalar only while the pool is open,
//     and PoolState keeps them for so long.
//   - Arrays and memory may outlive the pool: after close() their calls throw PERDURE_E_STATE.
//   - A pool of several ranks that nobody closed stays open until the process ends, as after a
//     crash: closing it is collective, and nobody knows when the other ranks would.
//
// Threads: what the calls of perdure.h take is without the interpreter's lock; all else with it.
// Failure: Failure is thrown.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/calls.hpp"
#include "api/memory.hpp"
#include "pool/store_guard.hpp"

namespace perdure::python {

struct ArrayState {
  perdure_array* handle = nullptr;  // null: it was removed
  std::string name;
  std::size_t size_bytes = 0;
  bool lent = false;                                     // the buffer is the program's
  std::shared_ptr<SharedMemory> buffer;                  // copy and log: its contents
  std::map<void*, std::shared_ptr<SharedMemory>> views;  // twin and flush: by place in the pool
  bool guards_views = false;                             // twin, with PERDURE_CHECK
  std::map<void*, std::unique_ptr<StoreGuard>> guards;   // of the views
};

// What the library has addresses of.
struct LentMemory {
  std::vector<std::unique_ptr<ArrayState>> arrays;
  std::vector<std::shared_ptr<SharedMemory>> scalars;
};

class PoolState {
 public:
  enum class Kind { solo, ranks, windows };

  PoolState(const Calls& calls, perdure_pool* handle, std::string path, Kind kind);
  ~PoolState();
  PoolState(const PoolState&) = delete;
  PoolState& operator=(const PoolState&) = delete;

  const Calls& calls() const { return *calls_; }
  const std::string& path() const { return path_; }
  bool is_open() const { return handle_ != nullptr; }
  bool is_of_one_process() const { return kind_ == Kind::solo; }
  bool is_of_windows() const { return kind_ == Kind::windows; }
  perdure_pool* handle() const;  // throws when the pool is closed

  void close();
  ArrayState* open_array(const std::string& name, int type, const std::vector<std::uint64_t>& shape,
                         int mode, unsigned flags, int ranks, std::shared_ptr<SharedMemory> buffer,
                         std::size_t size_bytes, const perdure_device* device);
  // Other extents; `buffer`: the program's, or null. What it had is copied to one of ours.
  void resize_array(ArrayState& state, const std::vector<std::uint64_t>& shape,
                    std::shared_ptr<SharedMemory> buffer, std::size_t size_bytes);
  // Another version, in which these arrays have other extents, with buffers of ours.
  struct Resized {
    ArrayState* state;
    std::vector<std::uint64_t> shape;
    std::size_t size_bytes;
  };
  void restore(std::uint64_t version, const std::vector<Resized>& resized);
  void remove_array(ArrayState& state);
  std::shared_ptr<SharedMemory> bind_scalar(const std::string& name, std::string_view first,
                                            int type);
  // After each call that gives copies other roles: only the working ones may be stored to, and none
  // while a commit saves them.
  void guard_views();
  void set_saving(bool saving);

 private:
  bool closes_quietly();
  // Those of one array, or of all: null.
  void detach_views(const ArrayState* of);
  void set_size(ArrayState& state, const std::vector<std::uint64_t>& shape,
                std::shared_ptr<SharedMemory> buffer, std::size_t size_bytes);

  const Calls* calls_;
  perdure_pool* handle_;
  std::string path_;
  Kind kind_;
  bool saving_ = false;  // a commit was begun
  std::unique_ptr<LentMemory> lent_ = std::make_unique<LentMemory>();
};

void bind_pool(nanobind::module_& api);
void bind_windows(nanobind::module_& api);

}  // namespace perdure::python
