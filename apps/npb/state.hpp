// SPDX-License-Identifier: BSD-3-Clause
//
// State: what a program carries from one iteration to the next, and how it survives a crash.
//
//   none    it does not
//   disk    after each iteration, one of two files takes all of it, and is synced: a checkpoint on
//           a block device; a directory of tmpfs is the block device of emulated NVM
//   flush   after each iteration it is copied, by ordinary stores, to the pool, and flushed there;
//           PERDURE_FLUSH names the instruction
//   ipv     in-place versioning (perdure_ipv.h), or the tier of it that the options name; tier copy
//           is the checkpoint that bypasses the caches
//
// Objects and scalars keep their addresses. They are named after they have their initial contents,
// all before restore(). An object begins at a page and has its last page to itself (array.hpp).
//
// Threads: one. Failure: std::runtime_error, with what the library says. All functions but object
// and scalar are collective over the ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "job/checkpoint_files.hpp"
#include "job/emulation.hpp"
#include "npb/carried.hpp"

namespace CLI {
class App;
}

struct perdure_pool;
struct perdure_array;

namespace npb {

enum class Protection { none, disk, flush, ipv };

struct StateOptions {
  Protection protection = Protection::none;
  std::string pool;  // directory; of the pool, or of the files
  int tier = 0;      // perdure_ipv_tier
  job::Emulation emulation;
  unsigned threads = 1;  // that copy and flush
  bool discard = false;  // begin anew
  std::string report;    // ipv: perdure_ipv_options.report
};

class State {
 public:
  explicit State(const StateOptions& options);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void object(const Carried& array);
  template <typename T>
  void scalar(const std::string& name, T& value) {
    scalars_.push_back({name, &value, sizeof value});
  }

  // The iterations that are done; 0: there is no version, and contents are as they were.
  std::uint64_t restore();
  // `iteration` is done. From the first call on, each costs what persist_s() adds up.
  void persist(std::uint64_t iteration);
  // After the last iteration: what is under way becomes durable.
  void wait();
  void close();

  double persist_s() const { return persist_s_; }
  double copy_s() const { return copy_s_; }             // of it; flush: the copy, before its flush
  std::uint64_t bytes() const;                          // of objects, on this rank
  std::uint64_t model_ns() const { return model_ns_; }  // of an emulated device

 private:
  struct Member {
    std::string name;
    void* first;
    std::size_t bytes;
  };
  void open_pool();
  std::uint64_t restore_files();
  job::CheckpointFiles files() const;
  std::vector<job::CheckpointFiles::Piece> pieces() const;

  StateOptions options_;
  std::vector<Member> objects_;
  std::vector<Member> scalars_;
  std::uint64_t iteration_ = 0;
  double persist_s_ = 0;
  double copy_s_ = 0;
  std::uint64_t model_ns_ = 0;
  perdure_pool* pool_ = nullptr;
  bool versioned_ = false;              // perdure_ipv_open succeeded
  std::vector<perdure_array*> arrays_;  // flush
};

const char* name_of(Protection protection);

// --protect, --pool and the others.
void add_state_options(CLI::App& app, StateOptions& options);

}  // namespace npb
