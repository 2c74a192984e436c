// SPDX-License-Identifier: BSD-3-Clause
//
// Ledger: the plain list of what a rank has done to its pool, with which crash images of scripts
// are compared. It knows nothing of slots, copies or checksums.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace perdure {

// What a version holds; arrays that it lacks are absent.
struct Contents {
  std::map<std::string, std::vector<std::uint64_t>> arrays;
  std::uint64_t iteration = 0;
  bool operator==(const Contents&) const = default;
};

// What a rank knows at one moment of what a crash may lead back to.
struct Knowledge {
  std::set<std::uint64_t> heads;           // one of these comes back
  std::set<std::uint64_t> must;            // these can be restored,
  std::set<std::uint64_t> may;             // and none but these
  std::map<std::uint64_t, Contents> held;  // by version
  std::uint64_t flushed_min = 0;           // array in flush mode: words are not older than this
  std::uint64_t flushed_max = 0;           // nor newer than this
};

class Ledger {
 public:
  explicit Ledger(std::uint32_t slots) : slots_(slots) {}

  void begin_commit(const Contents& contents) { begin_version(pending_.value_or(contents)); }
  void end_commit();
  void begin_staged();
  void end_staged(const Contents& contents);
  void begin_restore(std::uint64_t version) { now_.heads = {head_, version}; }
  void end_restore(std::uint64_t version);
  void begin_delete(std::uint64_t version) { now_.must.erase(version); }
  void end_delete(std::uint64_t version);
  void write_flushed(std::uint64_t word) { now_.flushed_max = word; }
  void end_flush() { now_.flushed_min = now_.flushed_max; }

  const Knowledge& now() const { return now_; }
  std::uint64_t next() const { return next_; }

 private:
  void begin_version(const Contents& contents);
  void settle();

  std::uint32_t slots_;
  std::uint64_t head_ = 0;
  std::uint64_t next_ = 1;
  std::set<std::uint64_t> kept_;
  std::optional<Contents> pending_;
  Knowledge now_{{0}, {}, {}, {{0, {}}}, 0, 0};
};

// What both know of a crash that met both: neither can be wrong.
Knowledge joined(const Knowledge& one, const Knowledge& other);

}  // namespace perdure
