// SPDX-License-Identifier: BSD-3-Clause
//
// Next version: what the version to come will hold. Its catalogue, and what of the program that is
// made of: the arrays that are open, the scalars that are bound, the files that are noted, and the
// boxes of arrays.
//
// Invariants
//   pool.X1  The catalogue has an entry for each of these. What the slots have no room for is
//       taken out again.
//   pool.X2  What the parent holds and the program has not opened, bound or erased stays in it.
//
// Threads: as the pool.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/status.hpp"
#include "pool/bound_scalars.hpp"
#include "pool/catalogue.hpp"
#include "pool/commit_under_way.hpp"
#include "pool/noted_files.hpp"
#include "pool/open_arrays.hpp"
#include "pool/retained.hpp"
#include "pool/said_boxes.hpp"
#include "pool/versioned_array.hpp"

namespace perdure {

class NextVersion {
 public:
  // Whether the slots have room for the catalogue as it is.
  using CheckRoom = std::function<Status()>;

  NextVersion() = default;
  NextVersion(const NextVersion&) = delete;
  NextVersion& operator=(const NextVersion&) = delete;

  // It is made from `parent`, and gets this number. Nothing is open.
  void begin(const Catalogue& parent, std::uint64_t version, std::uint64_t incarnation);

  const Catalogue& catalogue() const { return catalogue_; }
  std::uint64_t version() const { return catalogue_.version; }
  std::uint64_t parent() const { return catalogue_.parent; }
  std::uint64_t incarnation() const { return catalogue_.incarnation; }
  // Of scalar "iteration", or no_iteration.
  std::uint64_t iteration() const { return scalars_.iteration_of(catalogue_); }
  OpenArrays& arrays() { return arrays_; }
  const OpenArrays& arrays() const { return arrays_; }
  BoundScalars& scalars() { return scalars_; }
  const BoundScalars& scalars() const { return scalars_; }
  NotedFiles& files() { return files_; }
  const NotedFiles& files() const { return files_; }
  SaidBoxes& boxes() { return boxes_; }
  // The array is not open any more: pool.X3.
  void leave_box(const SaidBoxes::Key& key);
  const SaidBoxes& boxes() const { return boxes_; }

  // Scalars, files and the names of arrays that are not open are what they are now. `room`: where
  // there is none for the names, there are none, as they are for people alone.
  Status note(const CheckRoom& room);
  // The commit of it begins: it has its arrays and scalars, whatever is opened, closed or bound
  // from here on.
  VersionUnderWay begin_commit(const Retained& retained, std::uint32_t open_slot);
  // That version exists, its arrays have their new roles, and this is the one after it.
  void follow(const VersionUnderWay& version);
  // It does not exist, and this one is still made from `head`.
  void fail(const VersionUnderWay& version, const ArrayTable& head);

  // What is open and bound can take the contents of `target`.
  Status check_fits(const Catalogue& target) const;
  // It is made of `target`, and of what is open beside it; its number stays.
  void adopt(const Catalogue& target, const Retained& retained, std::uint64_t incarnation);
  // Of another number of ranks.
  void adopt_scalars(Catalogue held);

 private:
  void note_unopened(const CheckRoom& room);

  Catalogue catalogue_;  // restored entries, then those that came since
  OpenArrays arrays_{catalogue_.arrays};
  BoundScalars scalars_{catalogue_};
  NotedFiles files_{catalogue_};
  SaidBoxes boxes_{catalogue_};
};

}  // namespace perdure
