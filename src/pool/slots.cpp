// SPDX-License-Identifier: BSD-3-Clause
#include "pool/slots.hpp"

#include <algorithm>
#include <cstring>

#include "pmem/media_guard.hpp"
#include "pmem/region_format.hpp"

namespace perdure {
namespace {

// Whether recovery may choose what the slot holds: judgement.hpp says when it does.
bool may_be_chosen(const SlotView& view, std::size_t slot, std::size_t count) {
  if (!view.state || !view.body || view.body->version % count != slot) return false;
  const std::uint64_t version = view.state->version;
  if (view.state->state == SlotState::complete) return view.body->version == version;
  return view.state->state == SlotState::open && view.body->version < version;
}

}  // namespace

Slots::Slots(Device& device, const Region& region)
    : device_(device), region_(region), scratch_(region.geometry.slot_bytes) {}

std::uint64_t Slots::body_bytes_max() const {
  return region_.geometry.slot_bytes - sizeof(SlotStateFormat);
}

BodyBounds Slots::bounds() const {
  return {region_.data_offset, device_.size_bytes(), region_.geometry.block_bytes,
          region_.geometry.slots, region_.geometry.align_bytes};
}

SlotView Slots::read(std::uint32_t slot) const {
  PageReader trees(device_, bounds());
  return read_with(slot, trees);
}

SlotView Slots::read_with(std::uint32_t slot, TreeSource& trees) const {
  SlotView view;
  const std::byte* at = device_.base() + offset_of(slot);
  if (first_unreadable(at, region_.geometry.slot_bytes)) {
    view.problem = "it can't be read: the medium is damaged there, or the file was cut";
    return view;
  }
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  view.state = decode_state(word);
  auto body = parse_body({at + sizeof(SlotStateFormat), body_bytes_max()}, bounds(), &trees);
  if (body.ok()) {
    view.body = body.take();
  } else {
    view.problem = body.status().message();
  }
  return view;
}

std::vector<SlotView> Slots::read_all() const {
  std::vector<SlotView> views;
  PageReader trees(device_, bounds());
  for (std::uint32_t slot = 0; slot < count(); ++slot) views.push_back(read_with(slot, trees));
  drop_overlapping(views);
  return views;
}

// No pool has versions whose arrays overlap: their slots were kept together (commit.cpp, pool.I1).
// Of those that do, the newest is believed.
void Slots::drop_overlapping(std::vector<SlotView>& views) const {
  std::vector<SlotView*> candidates;
  for (std::size_t slot = 0; slot < views.size(); ++slot) {
    if (may_be_chosen(views[slot], slot, views.size())) candidates.push_back(&views[slot]);
  }
  std::vector<const Catalogue*> apart;
  for (const SlotView* view : candidates) apart.push_back(&*view->body);
  if (check_apart(apart, region_.geometry.block_bytes).ok()) return;
  apart.clear();
  std::ranges::sort(candidates, [](const SlotView* a, const SlotView* b) {
    return a->body->version > b->body->version;
  });
  for (SlotView* view : candidates) {
    apart.push_back(&*view->body);
    const Status checked = check_apart(apart, region_.geometry.block_bytes);
    if (checked.ok()) continue;
    apart.pop_back();
    view->body.reset();
    view->problem = checked.message() + ", in this version and a newer one";
  }
}

Status Slots::store_body(const Catalogue& catalogue, CataloguePages* pages) {
  PagePointerFormat root{};
  const bool tree = !has_room_for_arrays(catalogue);
  const std::size_t bytes = tree ? body_bytes_with_tree(catalogue) : body_bytes(catalogue);
  if (bytes > body_bytes_max() || (tree && pages == nullptr)) {
    return Status(Code::no_space, "the scalars of a version take ", bytes,
                  " bytes, the pool's slots hold ", body_bytes_max(),
                  ": use fewer or smaller ones");
  }
  if (tree) {
    PERDURE_TRY_ASSIGN(root, pages->store(catalogue.arrays));
  }
  build_body(catalogue, scratch_, tree ? &root : nullptr);
  const std::uint64_t offset = offset_of(slot_of(catalogue.version)) + sizeof(SlotStateFormat);
  device_.store(offset, scratch_.data(), bytes);
  device_.flush(offset, bytes);
  return Status::success();
}

void Slots::store_state(const StateWord& word) {
  const std::uint64_t offset = offset_of(slot_of(word.version));
  device_.store_word(offset, encode_state(word));
  device_.flush(offset, sizeof(std::uint64_t));
}

}  // namespace perdure
