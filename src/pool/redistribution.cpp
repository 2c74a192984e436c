// SPDX-License-Identifier: BSD-3-Clause
#include "pool/redistribution.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "base/agreement.hpp"
#include "base/assert.hpp"
#include "pool/box_note.hpp"
#include "pool/file_note.hpp"

namespace perdure {
namespace {

constexpr std::size_t words_at_once = 64;

// [collective] Maxima of as many words as there are.
Status agree_all(Group& group, std::span<std::uint64_t> words) {
  for (std::size_t at = 0; at < words.size(); at += words_at_once) {
    const std::size_t count = std::min(words_at_once, words.size() - at);
    PERDURE_TRY(agree_max(group, Status::success(), words.subspan(at, count)));
  }
  return Status::success();
}

CellBox cells_of(const std::vector<std::uint64_t>& extents, const GlobalBox& box) {
  return {box.first, extents};
}

std::uint64_t row_bytes(const ArrayShape& shape) {
  std::uint64_t bytes = element_bytes(shape.type);
  for (std::size_t i = 1; i < shape.extents.size(); ++i) bytes *= shape.extents[i];
  return bytes;
}

// All extents but the first.
bool same_rows(const ArrayShape& one, const ArrayShape& other) {
  return one.extents.size() == other.extents.size() &&
         std::equal(one.extents.begin() + 1, one.extents.end(), other.extents.begin() + 1);
}

Status other_shape(const std::string& name, std::uint32_t old_rank, const ArrayShape& old,
                   const char* than) {
  return Status(Code::shape_mismatch, "array ", quoted(name), " of old rank ", old_rank, " is ",
                old.text(), ", which does not fit ", than);
}

}  // namespace

const RankWords words_of_arrays{
    "array",
    "arrays",
    "; perdure_array_open() without a shape gives even shares",
    "say PERDURE_ROWS, PERDURE_SAME or PERDURE_BY_HAND in its options, or where it lies by "
    "perdure_array_box(); of an object of in-place versioning by perdure_ipv_ranks()",
    "PERDURE_ROWS, PERDURE_SAME or PERDURE_BY_HAND",
    "PERDURE_BY_HAND"};

std::uint64_t even_share(std::uint64_t rows, std::uint32_t rank, std::uint32_t ranks) {
  return rows / ranks + (rank < rows % ranks ? 1 : 0);
}

std::uint64_t rows_of(const OldRanks& old, const std::string& name) {
  std::uint64_t rows = 0;
  for (std::uint32_t rank = 0; rank < old.ranks(); ++rank) {
    const auto entry = old.catalogue(rank).find_array(name);
    if (entry) rows += entry->shape.extents.front();
  }
  return rows;
}

Redistribution::Redistribution(const OldRanks& old, Group& group,
                               std::map<std::string, NewArray> arrays, Of which,
                               const RankWords& words)
    : old_(old), group_(group), words_(words), arrays_(std::move(arrays)) {
  for (auto& [name, array] : arrays_) {
    if (array.rule == RankRule::none && array.box != nullptr) array.rule = RankRule::box;
  }
  std::map<std::string, OldArray> found;
  for (std::uint32_t rank = 0; rank < old.ranks(); ++rank) {
    for (const ArrayEntry& entry : old.catalogue(rank).arrays) {
      if (which == Of::these && !arrays_.contains(entry.name)) continue;
      OldArray& array = found[entry.name];
      array.name = entry.name;
      array.parts.push_back({rank, entry});
    }
  }
  for (auto& [name, array] : found) old_arrays_.push_back(std::move(array));
}

const NewArray* Redistribution::find(const std::string& name) const {
  const auto found = arrays_.find(name);
  return found == arrays_.end() ? nullptr : &found->second;
}

// Of the arrays that this rank has opened.
Status Redistribution::check_said() const {
  std::vector<std::string> silent;
  for (const OldArray& array : old_arrays_) {
    const NewArray* const mine = find(array.name);
    if (mine != nullptr && mine->rule == RankRule::none) silent.push_back(quoted(array.name));
  }
  if (silent.empty()) return Status::success();
  return Status(Code::rank_mismatch, "the pool was made by ", old_.ranks(), " ranks, this job has ",
                group_.ranks(), ", and nothing is said of how to divide ",
                silent.size() == 1 ? words_.one : words_.many, " ", listed(silent), ": ",
                words_.say);
}

// An array that no rank opens would be lost; one that some ranks open is said by them.
Status Redistribution::agree_on_rules() {
  std::vector<std::uint64_t> words;
  for (const OldArray& array : old_arrays_) {
    const NewArray* const mine = find(array.name);
    const auto rule = mine == nullptr ? 0 : static_cast<std::uint64_t>(mine->rule);
    words.push_back(rule);
    words.push_back(mine == nullptr ? 0 : ~rule);
  }
  PERDURE_TRY(agree_all(group_, words));
  std::vector<std::string> unopened;
  for (std::size_t i = 0; i < old_arrays_.size(); ++i) {
    OldArray& array = old_arrays_[i];
    array.rule = static_cast<RankRule>(words[2 * i]);
    if (array.rule == RankRule::none) {
      unopened.push_back(quoted(array.name));
    } else if (words[2 * i] != ~words[2 * i + 1]) {
      return Status(Code::rank_mismatch, "the ranks say different things of array ",
                    quoted(array.name), ": ", rule_name(static_cast<RankRule>(~words[2 * i + 1])),
                    " and ", rule_name(array.rule));
    }
  }
  if (unopened.empty()) return Status::success();
  return Status(Code::rank_mismatch, "the pool was made by ", old_.ranks(), " ranks, this job has ",
                group_.ranks(), ", and no rank has opened ",
                unopened.size() == 1 ? "array " : "arrays ", listed(unopened),
                " before the restart: open them, and ", words_.say);
}

Status Redistribution::check_types(const OldArray& array) const {
  const NewArray* const mine = find(array.name);
  if (mine == nullptr || array.rule == RankRule::by_hand) return Status::success();
  const ArrayShape& shape = mine->array->entry().shape;
  for (const OldPart& part : array.parts) {
    const ArrayShape& old = part.entry.shape;
    if (old.type == shape.type && old.extents.size() == shape.extents.size()) continue;
    return other_shape(array.name, part.rank, old, shape.text().c_str());
  }
  return Status::success();
}

// [collective]
Status Redistribution::plan_rows(OldArray& array) {
  const NewArray* const mine = find(array.name);
  array.rows.assign(group_.ranks(), 0);
  if (mine != nullptr) {
    array.rows[group_.rank()] = mine->array->entry().shape.extents.front();
  }
  PERDURE_TRY(agree_all(group_, array.rows));
  std::uint64_t wanted = 0;
  for (const std::uint64_t rows : array.rows) wanted += rows;
  const std::uint64_t held = rows_of(old_, array.name);
  if (wanted != held) {
    return Status(Code::shape_mismatch, "the ranks ask for ", wanted, " rows of array ",
                  quoted(array.name), " in all, and the pool has ", held, words_.rows);
  }
  const ArrayShape& first = array.parts.front().entry.shape;
  for (const OldPart& part : array.parts) {
    if (same_rows(part.entry.shape, first)) continue;
    return other_shape(array.name, part.rank, part.entry.shape, "the rows of the other ranks");
  }
  if (mine != nullptr && !same_rows(mine->array->entry().shape, first)) {
    return other_shape(array.name, array.parts.front().rank, first,
                       mine->array->entry().shape.text().c_str());
  }
  return Status::success();
}

// [collective] The boxes of all new ranks.
Status Redistribution::plan_boxes(OldArray& array) {
  const NewArray* const mine = find(array.name);
  const std::size_t dimensions = array.parts.front().entry.shape.extents.size();
  const std::size_t each = 1 + 2 * dimensions;
  std::vector<std::uint64_t> words(each * group_.ranks());
  const bool fits =
      mine != nullptr && mine->box != nullptr && mine->box->first.size() == dimensions;
  if (fits) {
    std::uint64_t* const at = &words[each * group_.rank()];
    at[0] = 1;
    std::ranges::copy(mine->box->first, at + 1);
    std::ranges::copy(mine->array->entry().shape.extents, at + 1 + dimensions);
  }
  PERDURE_TRY(agree_all(group_, words));
  for (std::size_t at = 0; at < words.size(); at += each) {
    if (words[at] == 0) continue;
    const auto first = words.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    const auto middle = first + static_cast<std::ptrdiff_t>(dimensions);
    const auto end = middle + static_cast<std::ptrdiff_t>(dimensions);
    array.boxes.push_back({{first, middle}, {middle, end}});
  }
  PERDURE_TRY(check_boxes(array));
  return check_taken(array);
}

Status Redistribution::check_boxes(const OldArray& array) const {
  const NewArray* const mine = find(array.name);
  const GlobalBox* global = mine == nullptr ? nullptr : mine->box;
  for (const OldPart& part : array.parts) {
    const GlobalBox* const box = old_.box(part.rank, array.name);
    if (box == nullptr) {
      return Status(Code::rank_mismatch, "old rank ", part.rank,
                    " did not say where its part of array ", quoted(array.name),
                    " lies, so boxes can't divide it: say ", words_.no_box);
    }
    if (global == nullptr) global = box;
    if (box->global_shape == global->global_shape) continue;
    return Status(Code::shape_mismatch, "old rank ", part.rank, " had a part of array ",
                  quoted(array.name), " as one of [", listed(box->global_shape),
                  "] cells, not of [", listed(global->global_shape), "]");
  }
  return Status::success();
}

// No cell gets lost. Each rank looks at some of the old ones.
Status Redistribution::check_taken(const OldArray& array) const {
  for (const OldPart& part : array.parts) {
    if (part.rank % group_.ranks() != group_.rank()) continue;
    const GlobalBox* const box = old_.box(part.rank, array.name);
    const std::uint64_t lost =
        uncovered_cells(cells_of(part.entry.shape.extents, *box), array.boxes);
    if (lost == 0) continue;
    return Status(Code::shape_mismatch, lost, " cells that old rank ", part.rank, " had of array ",
                  quoted(array.name),
                  " are in no rank's box now: make the boxes cover them, or say ", words_.by_hand);
  }
  return Status::success();
}

// Each rank compares some of the old ones with the first one.
Status Redistribution::check_same(const OldArray& array) const {
  const OldPart& first = array.parts.front();
  if (array.parts.size() != old_.ranks()) {
    return Status(Code::rank_mismatch, "array ", quoted(array.name), " is not the same on all old ",
                  "ranks: only ", array.parts.size(), " of ", old_.ranks(), " have it");
  }
  const NewArray* const mine = find(array.name);
  if (mine != nullptr && mine->array->entry().shape.extents != first.entry.shape.extents) {
    return other_shape(array.name, first.rank, first.entry.shape,
                       mine->array->entry().shape.text().c_str());
  }
  for (const OldPart& part : array.parts) {
    if (part.rank == first.rank || part.rank % group_.ranks() != group_.rank()) continue;
    PERDURE_TRY(compare(array, part));
  }
  return Status::success();
}

Status Redistribution::compare(const OldArray& array, const OldPart& part) const {
  const OldPart& first = array.parts.front();
  Status differs(Code::rank_mismatch, "array ", quoted(array.name),
                 " is not the same on all old ranks: ", first.rank, " and ", part.rank,
                 " differ; say ", words_.by_hand, ", and read what is wanted");
  const bool alike = part.entry.shape.type == first.entry.shape.type &&
                     part.entry.shape.extents == first.entry.shape.extents;
  if (!alike) return differs;
  PERDURE_TRY_ASSIGN(auto one, old_.open_array(first.rank, first.entry));
  PERDURE_TRY_ASSIGN(auto other, old_.open_array(part.rank, part.entry));
  std::vector<std::byte> bytes(2 * StoredArray::slice_bytes);
  std::byte* const its = bytes.data() + StoredArray::slice_bytes;
  for (std::uint64_t at = 0; at < one.size_bytes(); at += StoredArray::slice_bytes) {
    const std::uint64_t count = std::min(StoredArray::slice_bytes, one.size_bytes() - at);
    PERDURE_TRY(one.read(at, count, bytes.data()));
    PERDURE_TRY(other.read(at, count, its));
    if (std::memcmp(bytes.data(), its, count) != 0) return differs;
  }
  return Status::success();
}

Status Redistribution::plan() {
  PERDURE_TRY(agree(group_, check_said()));
  PERDURE_TRY(agree(group_, agree_on_rules()));
  for (OldArray& array : old_arrays_) {
    PERDURE_TRY(agree(group_, check_types(array)));
    Status local;
    if (array.rule == RankRule::rows) local = plan_rows(array);
    if (array.rule == RankRule::box) local = plan_boxes(array);
    if (array.rule == RankRule::same) local = check_same(array);
    PERDURE_TRY(agree(group_, local));
  }
  return Status::success();
}

// To the buffer, or to the copy that is the array's memory.
Status Redistribution::copy(StoredArray& from, std::uint64_t first, std::uint64_t count,
                            VersionedArray& to, std::uint64_t to_first) {
  if (to.first_buffer() != nullptr) return from.read(first, count, to.first_buffer() + to_first);
  const bool by_kernel =
      from.file() >= 0 && to.copy_first(to_first, from.file(), from.offset() + first, count);
  if (by_kernel) return Status::success();
  return from.read_pieces(first, count, [&](std::span<const std::byte> piece) {
    to.store_first(to_first, piece);
    to_first += piece.size();
  });
}

Status Redistribution::fill_rows(const OldArray& array, const NewArray& to) const {
  const std::uint64_t bytes = row_bytes(to.array->entry().shape);
  std::uint64_t first = 0;
  for (std::uint32_t rank = 0; rank < group_.rank(); ++rank) first += array.rows[rank];
  const std::uint64_t end = first + array.rows[group_.rank()];
  std::uint64_t begin = 0;  // of the old rank's rows
  for (const OldPart& part : array.parts) {
    const std::uint64_t its_end = begin + part.entry.shape.extents.front();
    const std::uint64_t from = std::max(first, begin);
    const std::uint64_t until = std::min(end, its_end);
    if (from < until) {
      PERDURE_TRY_ASSIGN(auto stored, old_.open_array(part.rank, part.entry));
      PERDURE_TRY(copy(stored, (from - begin) * bytes, (until - from) * bytes, *to.array,
                       (from - first) * bytes));
    }
    begin = its_end;
  }
  return Status::success();
}

// The lowest rank's cells come last, and stay.
Status Redistribution::fill_box(const OldArray& array, const NewArray& to, const Warn& warn) const {
  const std::uint64_t bytes = element_bytes(to.array->entry().shape.type);
  const CellBox mine = cells_of(to.array->entry().shape.extents, *to.box);
  const auto box_of = [&](const OldPart& part) {
    return cells_of(part.entry.shape.extents, *old_.box(part.rank, array.name));
  };
  std::vector<CellBox> all;
  all.reserve(array.parts.size());
  for (const OldPart& part : array.parts) all.push_back(box_of(part));
  const std::uint64_t missing = uncovered_cells(mine, all);
  if (missing != 0) {
    to.array->clear_first();
    warn(sentence(missing, " cells of ", words_.one, " ", quoted(array.name), " of rank ",
                  group_.rank(), " were in no old rank's box, and are zero"));
  }
  for (auto part = array.parts.rbegin(); part != array.parts.rend(); ++part) {
    const CellBox its = box_of(*part);
    if (!shared_cells(its, mine)) continue;
    PERDURE_TRY_ASSIGN(auto stored, old_.open_array(part->rank, part->entry));
    CellRuns runs(its, mine);
    while (const auto run = runs.next()) {
      PERDURE_TRY(copy(stored, run->from * bytes, run->count * bytes, *to.array, run->to * bytes));
    }
  }
  return Status::success();
}

Status Redistribution::fill_same(const OldArray& array, const NewArray& to) const {
  const OldPart& part = array.parts[group_.rank() % array.parts.size()];
  PERDURE_TRY_ASSIGN(auto stored, old_.open_array(part.rank, part.entry));
  return copy(stored, 0, stored.size_bytes(), *to.array, 0);
}

const Redistribution::OldArray* Redistribution::find_old(const std::string& name) const {
  const auto found = std::ranges::lower_bound(old_arrays_, name, {}, &OldArray::name);
  return found == old_arrays_.end() || found->name != name ? nullptr : &*found;
}

bool Redistribution::fills(const std::string& name) const {
  const OldArray* const array = find_old(name);
  return array != nullptr && array->rule != RankRule::by_hand && find(name) != nullptr;
}

Status Redistribution::fill(const std::string& name, const Warn& warn) const {
  PERDURE_ASSERT(fills(name));
  const OldArray& array = *find_old(name);
  const NewArray& to = *find(name);
  if (array.rule == RankRule::rows) return fill_rows(array, to);
  if (array.rule == RankRule::same) return fill_same(array, to);
  return fill_box(array, to, warn);
}

namespace {

// The first old rank that has it otherwise than rank 0; none: all have it alike.
std::optional<std::uint32_t> other_rank(const OldRanks& old, const std::string& name) {
  const ScalarEntry* const first = old.catalogue(0).find_scalar(name);
  for (std::uint32_t rank = 1; rank < old.ranks(); ++rank) {
    const ScalarEntry* const its = old.catalogue(rank).find_scalar(name);
    const bool alike = (first == nullptr) == (its == nullptr) &&
                       (its == nullptr || (its->bytes == first->bytes && its->type == first->type));
    if (!alike) return rank;
  }
  return std::nullopt;
}

}  // namespace

Status check_common_scalar(const OldRanks& old, const std::string& name, const char* remedy) {
  const auto other = other_rank(old, name);
  if (!other) return Status::success();
  return Status(Code::rank_mismatch, "scalar ", quoted(name),
                " is not the same on all old ranks: 0 and ", *other, " differ; ", remedy,
                ", and read the old ones by perdure_read()");
}

Result<std::vector<ScalarEntry>> common_scalars(
    const OldRanks& old, const std::function<bool(const std::string&)>& is_bound) {
  std::set<std::string> names;
  for (std::uint32_t rank = 0; rank < old.ranks(); ++rank) {
    for (const ScalarEntry& each : old.catalogue(rank).scalars) {
      if (!is_box_note_name(each.name) && !is_file_note_name(each.name)) names.insert(each.name);
    }
  }
  std::vector<ScalarEntry> common;
  for (const std::string& name : names) {
    if (!other_rank(old, name)) {
      common.push_back(*old.catalogue(0).find_scalar(name));
    } else if (is_bound(name) && !name.starts_with("perdure.")) {  // Perdure's own are notes
      PERDURE_TRY(check_common_scalar(
          old, name, "bind it after perdure_restart(), where it begins as the program has it"));
    }
  }
  return common;
}

}  // namespace perdure
