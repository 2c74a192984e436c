// SPDX-License-Identifier: BSD-3-Clause
//
// Participation: whether an array takes part in the next version, and which of the participants of
// the last version it was.
//
// One that is marked, and was not since the last version, is idle: the next version names the
// committed copy, as that one did (open_arrays.hpp, pool.O2).
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace perdure {

class VersionedArray;

class Participation {
 public:
  // Those that are idle no more, by its number.
  using Woken = std::map<std::uint64_t, VersionedArray*>;

  bool is_idle() const { return idle_; }
  void rest() { idle_ = true; }
  void wake(VersionedArray& array);
  // `list`, which outlives the array, gets it when it is idle no more.
  void report_to(Woken& list, std::uint64_t number) {
    woken_ = &list;
    number_ = number;
  }
  // It is open no more: what wakes it then (a commit that fails) concerns nobody.
  void report_to_nobody() { woken_ = nullptr; }

  void take_part(std::uint64_t version, std::size_t place) {
    version_ = version;
    place_ = place;
  }
  std::uint64_t version() const { return version_; }
  std::size_t place() const { return place_; }

 private:
  bool idle_ = false;
  Woken* woken_ = nullptr;
  std::uint64_t number_ = 0;  // in woken_
  std::uint64_t version_ = 0;
  std::size_t place_ = 0;
};

}  // namespace perdure
