// SPDX-License-Identifier: BSD-3-Clause
//
// Redistribution: brings the arrays and scalars of old ranks into those of another number of ranks,
// by what the program says of each (rank_rule.hpp).
//
//   box      each rank reads the cells of old boxes that its own meets. Where old boxes overlap,
//            the lowest old rank's cells count. Cells that nobody had are zero, and are reported;
//            cells that somebody had and nobody has now are an error
//   rows     the rows of all old ranks, in their order, are handed out in the order of the new ones
//   same     all old ranks had the same bytes, which is checked
//   by hand  nothing is done
//
// Every rank knows the catalogues of all old ranks, so all come to the same list of old arrays, in
// the same order. Data go from the old files to the arrays in slices (stored_array.hpp).
//
// Threads: as the pool.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "base/status.hpp"
#include "pool/box_cells.hpp"
#include "pool/old_ranks.hpp"
#include "pool/rank_rule.hpp"
#include "pool/versioned_array.hpp"

namespace perdure {

// An array of this rank.
struct NewArray {
  VersionedArray* array = nullptr;
  RankRule rule = RankRule::none;
  const GlobalBox* box = nullptr;
};

// How a program says what is to become of an array, and what it calls it.
struct RankWords {
  const char* one;  // "array"
  const char* many;
  const char* rows;     // what is said when they are not as many as there were
  const char* say;      // how all that can be said is said
  const char* no_box;   // what can be said instead of a box
  const char* by_hand;  // what is said to read by hand
};
extern const RankWords words_of_arrays;

class Redistribution {
 public:
  using Warn = std::function<void(const std::string&)>;

  // Of all old arrays; or of those of `arrays` alone, where others have their own turn.
  enum class Of : std::uint8_t { all, these };
  Redistribution(const OldRanks& old, Group& group, std::map<std::string, NewArray> arrays,
                 Of which = Of::all, const RankWords& words = words_of_arrays);

  // [collective] All that can be wrong with what the ranks say. Stores nothing.
  Status plan();
  // The old version has contents for this array of `arrays`.
  bool fills(const std::string& name) const;
  // Stores them, within VersionedArray::start_filled(). Local. `warn` gets sentences.
  Status fill(const std::string& name, const Warn& warn) const;

 private:
  struct OldPart {
    std::uint32_t rank;
    ArrayEntry entry;
  };
  struct OldArray {
    std::string name;
    std::vector<OldPart> parts;  // of the ranks that have it
    RankRule rule = RankRule::none;
    std::vector<std::uint64_t> rows;  // of each new rank
    std::vector<CellBox> boxes;       // of the new ranks that have one
  };
  const NewArray* find(const std::string& name) const;
  const OldArray* find_old(const std::string& name) const;
  static Status copy(StoredArray& from, std::uint64_t first, std::uint64_t count,
                     VersionedArray& to, std::uint64_t to_first);
  Status check_said() const;
  Status agree_on_rules();
  Status check_types(const OldArray& array) const;
  Status plan_rows(OldArray& array);
  Status plan_boxes(OldArray& array);
  Status check_boxes(const OldArray& array) const;
  Status check_same(const OldArray& array) const;
  Status check_taken(const OldArray& array) const;
  Status compare(const OldArray& array, const OldPart& part) const;
  Status fill_rows(const OldArray& array, const NewArray& to) const;
  Status fill_box(const OldArray& array, const NewArray& to, const Warn& warn) const;
  Status fill_same(const OldArray& array, const NewArray& to) const;

  const OldRanks& old_;
  Group& group_;
  const RankWords& words_;
  std::map<std::string, NewArray> arrays_;
  std::vector<OldArray> old_arrays_;  // in the order of their names
};

// The rows of a new rank if it does not say how many it wants: even shares, of which the first
// `rows` mod `ranks` have one more.
std::uint64_t even_share(std::uint64_t rows, std::uint32_t rank, std::uint32_t ranks);
// The rows that all old ranks have of an array; 0 if none has it.
std::uint64_t rows_of(const OldRanks& old, const std::string& name);

// Code::rank_mismatch, with the remedy, names one that some old ranks have otherwise than others.
Status check_common_scalar(const OldRanks& old, const std::string& name, const char* remedy);
// The scalars of the old version that all old ranks have alike. Code::rank_mismatch names one that
// `is_bound` and that they have not.
Result<std::vector<ScalarEntry>> common_scalars(
    const OldRanks& old, const std::function<bool(const std::string&)>& is_bound);

}  // namespace perdure
