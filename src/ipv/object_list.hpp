// SPDX-License-Identifier: BSD-3-Clause
//
// Object list: the objects of the process's set, also for those who come at any time: a thread that
// faults in one of them, and one that frees memory.
//
// Threads: one at a time, except find() and holding(), which may be beside each other, and what is
// said to be for any thread. Faults are of any thread: an object gets those of its addresses from
// publish() to withdraw().
#pragma once

#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "ipv/object.hpp"

namespace perdure {

class ObjectList {
 public:
  static constexpr std::size_t objects_max = 64;
  using Objects = std::vector<std::unique_ptr<InPlaceObject>>;
  // Where objects lie, [low, high); 0 and 0: nowhere.
  struct Bounds {
    std::uintptr_t low = 0;
    std::uintptr_t high = 0;
  };

  ObjectList();

  const Objects& all() const { return objects_; }
  void add(std::unique_ptr<InPlaceObject> object) { objects_.push_back(std::move(object)); }
  // `object`, which was started, takes a place. Threads that free memory, or fault, may be with
  // what was there, which stays until clear().
  void replace(std::size_t place, std::unique_ptr<InPlaceObject> object);
  std::size_t place_of(const InPlaceObject& object) const;

  void publish();
  void withdraw();  // all have left
  void clear();

  // Bounds and find() are for published objects: after one has got another size or place.
  void find_bounds();
  const Bounds& bounds() const { return bounds_; }
  InPlaceObject* find(std::uintptr_t address) const;     // nullptr: none
  InPlaceObject* holding(std::uintptr_t address) const;  // published or not
  InPlaceObject* named(const std::string& name) const;

  // Any thread. Objects that have a byte in [begin, end) end.
  Status end_within(std::uintptr_t begin, std::uintptr_t end, Going how);
  // Any thread. Whether an object that has not ended has a byte there.
  bool reaches_into(std::uintptr_t begin, std::uintptr_t end) const;

 private:
  mutable std::shared_mutex mutex_;  // objects_, where one takes the place of another
  Objects objects_;
  Objects replaced_;
  Bounds bounds_;
};

}  // namespace perdure
