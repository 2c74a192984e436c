#include "object/slots.hpp"

#include <algorithm>
#include <cstring>

#include "pmem/media_guard.hpp"
#include "pmem/region_format.hpp"

namespace perdure {
namespace {

std::string state_text(const SlotView& view) {
  if (!view.state) return "unreadable state word";
  const std::string number = std::to_string(view.state->version);
  if (view.state->state == SlotState::open) return "open for version " + number;
  return "version " + number + (view.body ? "" : " (" + view.problem + ")");
}

bool complete(const SlotView& view, std::uint32_t slot) {
  return view.state && view.state->state == SlotState::complete && view.body &&
         view.body->version == view.state->version && view.body->version % 2 == slot;
}

bool open(const SlotView& view, std::uint32_t slot) {
  return view.state && view.state->state == SlotState::open && view.state->version % 2 == slot;
}

Offer offer_of(const SlotView& view, std::uint32_t slot, bool weak) {
  return {view.body->version, view.body->incarnation, slot, weak};
}

bool all_arrays_have_checksums(const Catalogue& catalogue) {
  return std::all_of(catalogue.arrays.begin(), catalogue.arrays.end(),
                     [](const ArrayEntry& entry) { return entry.shape.checksums; });
}

// An open slot whose body still is the version before the newest one.
bool can_offer_older(const SlotView& view, std::uint32_t slot) {
  return open(view, slot) && view.body && view.body->version % 2 == slot &&
         view.body->version < view.state->version && all_arrays_have_checksums(*view.body);
}

Status damage_status(const std::array<SlotView, 2>& slots) {
  return {Code::damaged, "the slots hold [" + state_text(slots[0]) + "] and [" +
                             state_text(slots[1]) +
                             "], which no crash leaves behind: the medium or the file was damaged; "
                             "open with PERDURE_ALLOW_OLDER to accept an older version that is "
                             "whole, or PERDURE_DISCARD to start anew"};
}

Result<Judgement> judge_damaged(const std::array<SlotView, 2>& slots) {
  Judgement judgement;
  judgement.damage = damage_status(slots).message();
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    const SlotView& view = slots[slot];
    const bool whole = complete(view, slot) && all_arrays_have_checksums(*view.body);
    if (whole || can_offer_older(view, slot)) {
      judgement.offers.push_back(offer_of(view, slot, true));
    }
  }
  if (judgement.offers.empty()) return damage_status(slots);
  std::sort(judgement.offers.begin(), judgement.offers.end(),
            [](const Offer& a, const Offer& b) { return a.version > b.version; });
  return judgement;
}

}  // namespace

Slots::Slots(Device& device, const Region& region)
    : device_(device), region_(region), scratch_(region.geometry.slot_bytes) {}

std::uint64_t Slots::offset_of(std::uint32_t slot) const {
  return region_.slot_offset + slot * region_.geometry.slot_bytes;
}

std::uint64_t Slots::body_bytes_max() const {
  return region_.geometry.slot_bytes - sizeof(SlotStateFormat);
}

SlotView Slots::read(std::uint32_t slot) const {
  SlotView view;
  const std::byte* at = device_.base() + offset_of(slot);
  if (first_unreadable(at, region_.geometry.slot_bytes)) {
    view.problem = "it can't be read: the medium is damaged there, or the file was cut";
    return view;
  }
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  view.state = decode_state(word);
  auto body = parse_body({at + sizeof(SlotStateFormat), body_bytes_max()},
                         {region_.data_offset, device_.size_bytes(), region_.geometry.block_bytes,
                          region_.geometry.slots});
  if (body.ok()) {
    view.body = body.take();
  } else {
    view.problem = body.status().message();
  }
  return view;
}

Status Slots::store_body(const Catalogue& catalogue) {
  const std::size_t bytes = body_bytes(catalogue);
  if (bytes > body_bytes_max()) {
    return {Code::no_space, "the names, shapes and scalars of a version take " +
                                std::to_string(bytes) + " bytes, the pool's slots hold " +
                                std::to_string(body_bytes_max()) +
                                ": use fewer arrays or smaller scalars"};
  }
  build_body(catalogue, scratch_);
  const std::uint64_t offset =
      offset_of(static_cast<std::uint32_t>(catalogue.version % 2)) + sizeof(SlotStateFormat);
  device_.store(offset, scratch_.data(), bytes);
  device_.flush(offset, bytes);
  return Status::success();
}

void Slots::store_state(const StateWord& word) {
  const std::uint64_t offset = offset_of(static_cast<std::uint32_t>(word.version % 2));
  device_.store_word(offset, encode_state(word));
  device_.flush(offset, sizeof(std::uint64_t));
}

Result<Judgement> judge_slots(const std::array<SlotView, 2>& slots, bool allow_older) {
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    const SlotView& mine = slots[slot];
    const SlotView& other = slots[1 - slot];
    if (!complete(mine, slot)) continue;
    const std::uint64_t version = mine.body->version;
    if (open(other, 1 - slot) && other.state->version == version + 1) {
      Judgement judgement{{offer_of(mine, slot, false)}, version, ""};
      if (allow_older && can_offer_older(other, 1 - slot)) {
        judgement.offers.push_back(offer_of(other, 1 - slot, true));
      }
      return judgement;
    }
    if (complete(other, 1 - slot) && other.body->version + 1 == version) {
      return Judgement{
          {offer_of(mine, slot, false), offer_of(other, 1 - slot, false)}, version - 1, ""};
    }
  }
  if (!allow_older) return damage_status(slots);
  return judge_damaged(slots);
}

}  // namespace perdure
