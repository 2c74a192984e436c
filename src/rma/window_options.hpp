// SPDX-License-Identifier: BSD-3-Clause
//
// Window options: the info keys of perdure_mpi.h as values. Pure, no MPI.
//
// Every key that begins with "perdure_" must be known and well formed; an unknown or malformed one
// is Code::invalid_argument, which names the key, the value and what is allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/key_values.hpp"
#include "base/status.hpp"
#include "perdure/perdure.h"
#include "pool/rank_rule.hpp"

namespace perdure {

enum class WindowMode : std::uint8_t { copy, log, twin, flush };
const char* mode_name(WindowMode mode);

// The synchronisation calls that may commit.
enum class Trigger : std::uint8_t { fence, wait, unlock, unlock_all, flush_all };
constexpr std::size_t trigger_count = 5;
const char* trigger_name(Trigger trigger);

// After how many calls of each kind a commit is made; 0: never.
struct CommitRule {
  std::uint64_t every[trigger_count] = {};
  std::uint64_t of(Trigger trigger) const { return every[static_cast<std::size_t>(trigger)]; }
};
Result<CommitRule> parse_commit_rule(const std::string& text);

enum class RestoreChoice : std::uint8_t { newest, version, discard };

// Where this rank's memory lies in a global array, in displacement units.
struct WindowBox {
  std::vector<std::uint64_t> own;  // of the memory, row by row
  std::vector<std::uint64_t> global;
  std::vector<std::uint64_t> first;
};
// "16x64 of 64x64 at 16,0".
Result<WindowBox> parse_window_box(const std::string& text);

// What concerns the pool, and so is said by the window that opens it; others may repeat it.
struct WindowPoolOptions {
  std::string path;
  std::string job;  // empty: the program's name
  std::string emulate;
  perdure_delay delay = PERDURE_DELAY_VIRTUAL;
  bool allow_older = false;
  bool any_ranks = false;  // the window that opens it says what another number of ranks is to do
  unsigned threads = 0;
  unsigned keep = 0;   // 0: one, or what the pool has
  std::string levels;  // as in perdure_options
  RestoreChoice restore = RestoreChoice::newest;
  std::uint64_t version = 0;  // for RestoreChoice::version
};

struct WindowOptions {
  std::string name;
  WindowMode mode = WindowMode::copy;
  CommitRule commit;
  bool asynchronous = false;
  std::optional<bool> checksums;
  RankRule ranks = RankRule::none;
  std::optional<WindowBox> box;
  bool delete_at_free = false;
  bool by_environment = false;  // named by us, for a program that knows nothing of it
  bool halves = true;           // twin: the program may ask for them (perdure_win_halves)
  WindowPoolOptions pool;
  KeyValues given;  // for MPI_Win_get_info
};

// From the keys of an MPI_Info; nothing if no key is Perdure's. `default_pool` may be empty.
Result<std::optional<WindowOptions>> parse_window_info(const KeyValues& keys,
                                                       const std::string& default_pool);

// What all ranks of a window must say alike, as keys and values for people: all but where the pool
// is and how it is reached from this node, the box, and names that are ours.
std::string said_by_all(const WindowOptions& options);

// From PERDURE_WINDOWS: "pool=DIR;commit=fence;mode=log". The name is left to the caller.
Result<WindowOptions> parse_window_environment(const std::string& text);

}  // namespace perdure
