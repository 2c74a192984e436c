// SPDX-License-Identifier: BSD-3-Clause
//
// Open arrays: the arrays that the program has open, and the names of all that the next version
// holds.
//
// Invariants
//   pool.O1  An open array has an entry in the next version's table. `known` says whether some
//       version holds it; an entry that none holds goes when its array is closed.
//   pool.O3  The entry of an array that is not open is the head's. An open one's may be of another
//       size, which the next version is the first to have.
//   pool.O2  An array that is not marked takes part in each version. One that is marked takes part
//       when it was marked since the version before: it reports to woken_ then.
//
// Threads: as the pool.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/status.hpp"
#include "pool/array_table.hpp"
#include "pool/commit_under_way.hpp"
#include "pool/retained.hpp"
#include "pool/versioned_array.hpp"

namespace perdure {

class OpenArrays {
 public:
  struct OpenArray {
    std::unique_ptr<VersionedArray> array;
    ArrayId entry;  // in the next version's table
    bool known;     // some version held it when it was opened; otherwise it begins with zeros
  };
  using ByNumber = std::map<std::uint64_t, OpenArray>;  // in the order of opening
  using Key = std::pair<std::string, std::uint32_t>;    // name and part

  // The next version's table, which outlives this.
  explicit OpenArrays(ArrayTable& next) : next_(next) {}

  // After the table has become another one.
  void read_names();
  const ArrayId* find_entry(const Key& key) const;
  ArrayId insert_entry(ArrayEntry entry);
  void erase_entry(ArrayId id);
  // As it is from the next version on.
  void replace_entry(ArrayId id, const ArrayEntry& entry) {
    next_.replace(id, leaf_entry_of(entry));
  }
  // pool.O3, of an array that was closed; it goes if the head has none.
  void take_entry_of(const ArrayTable& head, ArrayId id);
  // The lowest part of `name` that the next version holds and that is not open.
  std::optional<std::uint32_t> first_closed_part(const std::string& name) const;
  // The arrays of the next version that are not open; whether they are others than at the last
  // call of it.
  const std::set<Key>& closed() const { return closed_; }
  bool closed_has_changed() { return std::exchange(closed_has_changed_, false); }

  bool is_open(const Key& key) const { return open_keys_.contains(key); }
  VersionedArray& add(OpenArray open);
  OpenArray* find(const VersionedArray& array);
  // It is open no more, and its entry stays. With `named`, which of its copies the slots name stays
  // known; before a restart it knows nothing of them.
  OpenArray take(const VersionedArray& array, bool named);
  ByNumber::iterator begin() { return open_.begin(); }
  ByNumber::iterator end() { return open_.end(); }
  ByNumber::const_iterator begin() const { return open_.begin(); }
  ByNumber::const_iterator end() const { return open_.end(); }
  std::size_t size() const { return open_.size(); }

  // What is open can take the contents of `target`.
  Status check_fits(const Catalogue& target) const;
  // The next version's table becomes `target`, with what is open beside it.
  void adopt(const ArrayTable& target, const Retained& retained);

  // Adds the arrays that take part in `version` (pool.O2); their working copies are chosen.
  void join(VersionUnderWay& version, const Retained& retained, std::uint32_t open_slot);
  // `version` exists, and the next version's table has become another meanwhile: it names the
  // copies that `version` names.
  void name_copies_of(const VersionUnderWay& version);
  // The commit that they took part in has ended.
  void drop_retired(const VersionUnderWay& version, const ArrayTable& head);

 private:
  struct HashOfKey {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::string>{}(key.first) + key.second * 0x9e3779b97f4a7c15U;
    }
  };

  void note_closed(const Key& key);
  void note_not_closed(const Key& key);

  ArrayTable& next_;
  std::unordered_map<Key, ArrayId, HashOfKey> entries_;  // of next_
  std::set<Key> closed_;                                 // of these, that are not open
  bool closed_has_changed_ = true;
  VersionedArray::Woken woken_;
  ByNumber open_;
  std::unordered_map<const VersionedArray*, std::uint64_t> numbers_;  // in open_
  std::unordered_set<Key, HashOfKey> open_keys_;
  std::uint64_t opened_ = 0;                          // so far
  std::map<std::uint64_t, OpenArray*> saved_always_;  // of open_, those that are not marked
};

}  // namespace perdure
