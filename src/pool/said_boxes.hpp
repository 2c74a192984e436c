// SPDX-License-Identifier: BSD-3-Clause
//
// Said boxes: where the program says that its open arrays lie in global ones, and what the next
// version notes of that.
//
// Invariant
//   pool.X3  The next version's note of an array that is not open is that of what it holds of the
//       array: of the version under way, if the array takes part in that, or of its parent. Of one
//       that it does not hold it notes nothing.
//
// Threads: as the pool.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/status.hpp"
#include "pool/catalogue.hpp"
#include "pool/versioned_array.hpp"

namespace perdure {

class SaidBoxes {
 public:
  using Key = GlobalBoxes::key_type;
  // Of the next version, which outlives this.
  explicit SaidBoxes(Catalogue& next) : next_(next) {}

  // Null: the program has said none.
  const GlobalBox* of(const VersionedArray& array) const;
  // Code::invalid_argument, or what `room` says of the note: then it has none.
  Status say(const VersionedArray& array, GlobalBox box, const std::function<Status()>& room);
  // It has another size, or is erased.
  void forget(const Key& key);
  // It is closed, and what the next version holds of it is not what the program has said since.
  void leave(const Key& key);
  // As the next version notes it now; and as it was then, whatever was said since.
  std::optional<GlobalBox> noted(const Key& key) const;
  void undo(const Key& key, const std::optional<GlobalBox>& before);

  // Its scalars become the next version's, beside what is said of open arrays.
  void adopt(Catalogue& parent);
  // A version with the notes of now is under way; it exists, and is the parent; it does not.
  void begin_commit();
  void follow() { of_parent_.clear(); }
  void fail();

 private:
  using Notes = std::map<Key, std::optional<GlobalBox>>;
  void put(const Key& key, const GlobalBox* box);

  Catalogue& next_;
  GlobalBoxes said_;
  Notes before_;     // of each that was changed since the last version began, or was the parent
  Notes of_parent_;  // of each that the version under way notes otherwise
};

}  // namespace perdure
