// SPDX-License-Identifier: BSD-3-Clause
#include "pool/kept_versions.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/agreement.hpp"
#include "pmem/flush.hpp"

namespace perdure {

KeptVersions::KeptVersions(Device& device, const Region& region)
    : device_(device), region_(region), slots_(device, region), retained_(region.geometry) {}

Status KeptVersions::choose(Group& group, bool allow_older) {
  PERDURE_TRY_ASSIGN(chosen_, choose_version(group, slots_, allow_older));
  head_incarnation_ = chosen_.catalogue.incarnation;
  note_found();
  hold_extents();
  return Status::success();
}

// All that recovery could still choose counts before the restart. A version that some rank lacks is
// none of these, on any rank: settling will delete it (recover.cpp), and whether it is still here
// must not matter to which copies are the working ones (array_copies.hpp, pool.A1).
void KeptVersions::note_found() {
  for (std::uint32_t slot = 0; slot < chosen_.slots.size(); ++slot) {
    const SlotView& view = chosen_.slots[slot];
    if (!view.state || slots_.slot_of(view.state->version) != slot) continue;
    const StateWord& state = *view.state;
    const bool complete =
        state.state == SlotState::complete && view.body && view.body->version == state.version;
    if (state.state == SlotState::deleted) {
      retained_.drop(state.version, parent_of(state));
    } else if (complete && chosen_.choice.lacking.contains(state.version)) {
      retained_.drop(state.version, view.body->parent);
    } else if (complete) {
      retained_.note(*view.body);
    }
  }
  retained_.note(chosen_.catalogue);
}

// What the versions name is in use, and known.
void KeptVersions::hold_extents() {
  const Geometry& geometry = region_.geometry;
  const std::uint64_t grain = std::min<std::uint64_t>(geometry.align_bytes, cache_line_bytes);
  std::vector<Extent> used;
  std::vector<ArrayEntry*> entries;
  std::unordered_set<const ArrayNode*> seen;
  const auto visit = [&](ArrayNode& node) {
    if (!seen.insert(&node).second) return false;
    if (node.page != 0) used.push_back({node.page, node.page + catalogue_page_bytes});
    for (const LeafEntry& at : node.entries) {
      if (!at || at.shared->entry.hold) continue;
      const std::uint64_t end = align_up(at.shared->entry.end_offset(geometry.block_bytes), grain);
      used.push_back({at.shared->entry.first_offset, end});
      entries.push_back(&at.shared->entry);
    }
    return true;
  };
  for (const ArrayTable* table : retained_.tables()) table->for_each_new_node(visit);
  space_ = std::make_shared<FreeSpace>(region_.data_offset, std::move(used));
  // An array's versions in one extent may be of several sizes.
  std::unordered_map<std::uint64_t, Extent> extents;
  for (const ArrayEntry* entry : entries) {
    const std::uint64_t end = align_up(entry->end_offset(geometry.block_bytes), grain);
    Extent& extent =
        extents.try_emplace(entry->first_offset, entry->first_offset, end).first->second;
    extent.end = std::max(extent.end, end);
  }
  std::unordered_map<std::uint64_t, std::shared_ptr<ExtentHold>> holds;
  for (ArrayEntry* entry : entries) {
    std::shared_ptr<ExtentHold>& hold = holds[entry->first_offset];
    if (!hold) hold = std::make_shared<ExtentHold>(space_, extents.at(entry->first_offset));
    entry->hold = hold;
  }
  pages_ = std::make_unique<CataloguePages>(device_, space_);
  for (const ArrayTable* table : retained_.tables()) pages_->adopt(*table);
  retained_.tell_all();
}

Status KeptVersions::settle(Group& group, const std::function<Status()>& when_newest) {
  PERDURE_TRY(finish_recovery(device_, slots_, group, chosen_, when_newest));
  next_is_open_ = true;
  retained_.forget(retained_.slot_of(chosen_.choice.next));
  chosen_.slots.clear();
  chosen_.catalogue.arrays = {};  // what they name is kept only as long as it is retained
  return Status::success();
}

Status KeptVersions::open_next(const Catalogue& next) {
  if (next_is_open_) return Status::success();
  PERDURE_TRY(open_slot(device_, slots_, next.version, next.parent));
  retained_.forget(retained_.slot_of(next.version));
  next_is_open_ = true;
  return Status::success();
}

Status KeptVersions::reopen_next(const Catalogue& next, const Catalogue& head) {
  const Status opened = open_slot(device_, slots_, next.version, next.parent);
  retained_.forget(retained_.slot_of(next.version));
  retained_.tell_all();
  next_is_open_ = opened.ok();
  head_incarnation_ = head.incarnation;
  return opened;
}

Status KeptVersions::remove(Group& group, std::uint64_t version) {
  const std::uint64_t parent = retained_.parent_of(version);
  PERDURE_TRY(agree(group, delete_slot(device_, slots_, version, parent)));
  retained_.drop(version, parent);
  return Status::success();
}

CommitResult KeptVersions::commit(CommitParties parties, const Catalogue& next,
                                  const Status& data) {
  CommitResult result = commit_version(parties, next, data);
  pages_->settle(result.outcome == CommitOutcome::committed);
  return result;
}

void KeptVersions::note(const Catalogue& newest, bool next_is_open) {
  retained_.note(newest);
  next_is_open_ = next_is_open;
  if (next_is_open) retained_.forget(retained_.slot_of(newest.version + 1));
  head_incarnation_ = newest.incarnation;
}

Result<Catalogue> KeptVersions::read(std::uint64_t version) const {
  SlotView view = slots_.read(slots_.slot_of(version));
  if (view.body && view.body->version == version) return std::move(*view.body);
  return Status(Code::damaged, "version ", version,
                " can't be read: ", (view.body ? "its slot holds another one" : view.problem));
}

std::uint64_t KeptVersions::pages_for(const Catalogue& next) const {
  return slots_.count() * std::max(next.arrays.nodes(), retained_.nodes_max());
}

bool KeptVersions::has_room_for(const Catalogue& next) const {
  return slots_.has_room_for_arrays(next) || pages_->has(pages_for(next));
}

Status KeptVersions::make_room_for(const Catalogue& next) {
  return has_room_for(next) ? Status::success() : pages_->reserve(pages_for(next));
}

void KeptVersions::place(ArrayEntry& entry) {
  perdure::place(entry, space_, region_.geometry);
  retained_.tell_none(*entry.hold);
}

std::uint64_t KeptVersions::allocated_end() const {
  return std::min(space_->end(), device_.size_bytes());
}

}  // namespace perdure
