// SPDX-License-Identifier: BSD-3-Clause
//
// options.hpp: what calls of perdure.hpp are given, and what they fail with. Included by it.
#ifndef PERDURE_OPTIONS_HPP
#define PERDURE_OPTIONS_HPP

#if __cplusplus < 201709L  // what GCC 10 says of its C++20
#error "perdure.hpp needs C++20: compile with -std=c++20, or include perdure/perdure.h instead"
#else

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "perdure/perdure.h"

namespace perdure {
// Keeps these classes apart, for the linker, from those inside the library.
inline namespace interface {

// What a call of perdure.h failed with; what() is the sentence of perdure_last_error().
class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  int code() const noexcept { return code_; }  // a PERDURE_E code
  // The fixed text for the code.
  const char* meaning() const noexcept { return perdure_strerror(code_); }

 private:
  int code_;
};

// Throws Error unless `code`, from a call of this thread, is PERDURE_OK.
inline void check(int code) {
  if (code != PERDURE_OK) throw Error(code, perdure_last_error());
}

inline const char* library_version() noexcept {
  return perdure_library_version();  // "0.1.0"
}

enum class Mode {
  copy = PERDURE_COPY,
  twin = PERDURE_TWIN,
  log = PERDURE_LOG,
  flush = PERDURE_FLUSH
};

// How the time of emulated memory passes: see perdure.h.
enum class Delay : int {
  virtual_clock = PERDURE_DELAY_VIRTUAL,
  wait = PERDURE_DELAY_WAIT,
  drain = PERDURE_DELAY_DRAIN
};

// What an array is to the ranks together, for Options::any_ranks: see enum perdure_ranks. With none
// its box counts.
enum class Ranks : int {
  none = 0,
  rows = PERDURE_ROWS,
  same = PERDURE_SAME,
  by_hand = PERDURE_BY_HAND
};

// Extents in elements, 1 to 8 of them, row-major.
using Shape = std::vector<std::uint64_t>;

// How to open a pool: Pool("heat", {.must_exist = true}).
struct Options {
  bool must_exist = false;   // PERDURE_E_NOT_FOUND instead of making a pool
  bool discard = false;      // throw away what an existing pool of this job holds
  bool allow_older = false;  // if the newest version is damaged, restore the older one
  bool any_job = false;      // accept a pool of another job name, or made in another directory
  bool any_owner = false;    // accept what another user owns or may write to
  bool any_ranks = false;    // accept a pool that another number of ranks made
  std::string job = {};      // name of the job; empty: the program's name
  std::string emulate = {};  // one of `perdure devices`; empty: $PERDURE_EMULATE
  Delay delay = Delay::virtual_clock;  // how the time of emulated memory passes
  unsigned copy_threads = 1;           // threads that copy and flush
  unsigned keep = 0;                   // versions that can be restored; 0: as the pool has it, or 1

  std::string levels = {};  // what is kept beyond the pool, as in perdure.h; empty: $PERDURE_LEVELS

  // The same for perdure.h; points into this object.
  perdure_options to_c() const noexcept {
    perdure_options options{};
    if (must_exist) options.flags |= PERDURE_MUST_EXIST;
    if (discard) options.flags |= PERDURE_DISCARD;
    if (allow_older) options.flags |= PERDURE_ALLOW_OLDER;
    if (any_job) options.flags |= PERDURE_ANY_JOB;
    if (any_owner) options.flags |= PERDURE_ANY_OWNER;
    if (any_ranks) options.flags |= PERDURE_ANY_RANKS;
    options.job = job.empty() ? nullptr : job.c_str();
    options.emulate = emulate.empty() ? nullptr : emulate.c_str();
    options.delay = static_cast<int>(delay);
    options.copy_threads = copy_threads;
    options.keep = keep;
    options.levels = levels.empty() ? nullptr : levels.c_str();
    return options;
  }
};

// How to open an array: pool.array<double>("u", {n}, Mode::log, {.marks = true}).
template <typename T>
struct ArrayOptions {
  std::optional<bool> checksums = {};      // of every block; default: yes for copy and log
  bool marks = false;                      // log: the application calls mark()
  bool compare = false;                    // log: changed blocks are found by comparing
  std::span<T> buffer = {};                // copy, log: the application's own, as in perdure.h
  Ranks ranks = Ranks::none;               // how another number of ranks divides it
  const perdure_device* device = nullptr;  // how `buffer` is reached, as in perdure.h
};

}  // namespace interface
}  // namespace perdure
#endif
#endif
