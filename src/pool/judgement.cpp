// SPDX-License-Identifier: BSD-3-Clause
#include "pool/judgement.hpp"

#include <algorithm>
#include <bit>

namespace perdure {
namespace {

constexpr std::uint32_t set_bits = 64;

std::string state_text(const SlotView& view) {
  if (!view.state) return "unreadable state word";
  const std::string number = std::to_string(view.state->version);
  switch (view.state->state) {
    case SlotState::open:
      return "open for version " + number;
    case SlotState::deleted:
      return "deleted version " + number;
    case SlotState::unused:
      return "unused";
    case SlotState::complete:
      break;
  }
  return "version " + number + (view.body ? "" : " (" + view.problem + ")");
}

std::string damage_text(const std::vector<SlotView>& slots) {
  std::string text;
  for (const SlotView& view : slots) text += (text.empty() ? "[" : ", [") + state_text(view) + "]";
  return "the slots hold " + text +
         ", which no crash leaves behind: the medium or the file was damaged; open with "
         "PERDURE_ALLOW_OLDER to accept an older version that is whole; `perdure pool check` says "
         "what is left";
}

// The state word of `slot` if it can be there.
const StateWord* state_in(const std::vector<SlotView>& slots, std::uint64_t slot) {
  const SlotView& view = slots[slot];
  if (!view.state || view.state->version % slots.size() != slot) return nullptr;
  return &*view.state;
}

bool complete(const std::vector<SlotView>& slots, std::uint64_t version) {
  const SlotView& view = slots[version % slots.size()];
  return view.state && view.state->state == SlotState::complete && view.state->version == version &&
         view.body && view.body->version == version && view.body->parent == parent_of(*view.state);
}

bool all_checkable(const Catalogue& catalogue) {
  return std::ranges::all_of(catalogue.arrays, [](const ArrayEntry& e) {
    return e.shape.checksums || e.shape.mode == ArrayMode::flush;
  });
}

// Complete slots, and open ones whose body still is the version that was there before.
void add_offers(const std::vector<SlotView>& slots, Judgement& judgement) {
  for (std::uint32_t slot = 0; slot < slots.size(); ++slot) {
    const StateWord* state = state_in(slots, slot);
    const auto& body = slots[slot].body;
    if (state == nullptr || !body) continue;
    const bool reopened = state->state == SlotState::open && body->version < state->version &&
                          body->version % slots.size() == slot;
    if (!reopened && !complete(slots, state->version)) continue;
    judgement.offers.push_back(
        {body->version, body->parent, body->incarnation, slot, reopened, all_checkable(*body)});
  }
  std::ranges::sort(judgement.offers,
                    [](const Offer& a, const Offer& b) { return a.version > b.version; });
}

void find_top(const std::vector<SlotView>& slots, Judgement& judgement, const StateWord** top) {
  *top = nullptr;
  for (std::uint64_t slot = 0; slot < slots.size(); ++slot) {
    const StateWord* state = state_in(slots, slot);
    if (state == nullptr || state->state == SlotState::unused) continue;
    if (*top == nullptr || state->version > (*top)->version) *top = state;
  }
  if (*top == nullptr) return;
  judgement.top = (*top)->version;
  judgement.top_complete = (*top)->state != SlotState::open;
}

// Weak: data of the version may have been stored over since it was completed. Any rank may have
// begun versions up to next_max, or stores of it put into others' copies; they are the copies that
// no version newer than next_max - slots names.
bool is_weak(std::uint64_t version, const Positions& positions, std::uint32_t slots) {
  return positions.unsure() || version + slots <= positions.next_max();
}

// What this rank goes on from was made from an older version: a restore gave it up.
bool is_abandoned(const Judgement& judgement, std::uint64_t version) {
  const Offer* offer = judgement.find(judgement.head);
  while (offer != nullptr && offer->parent > version) offer = judgement.find(offer->parent);
  return offer != nullptr && offer->version > version && offer->parent < version;
}

}  // namespace

std::uint64_t Judgement::top_parent() const {
  const Offer* offer = find(top);
  return offer == nullptr ? 0 : offer->parent;
}

const Offer* Judgement::find(std::uint64_t version) const {
  const auto found = std::ranges::find(offers, version, &Offer::version);
  return found == offers.end() ? nullptr : &*found;
}

Judgement judge_slots(const std::vector<SlotView>& slots) {
  Judgement judgement;
  const StateWord* top = nullptr;
  find_top(slots, judgement, &top);
  add_offers(slots, judgement);
  const bool open = top != nullptr && top->state == SlotState::open;
  // A version after the top is in the slot after it; it is there only if the top is complete.
  judgement.unsure =
      top == nullptr || (!open && state_in(slots, (top->version + 1) % slots.size()) == nullptr);
  if (top != nullptr) judgement.head = open ? parent_of(*top) : top->version;
  const bool whole =
      top != nullptr && complete(slots, judgement.head) && (!open || top->back < top->version);
  if (judgement.unsure || !whole) judgement.damage = damage_text(slots);
  return judgement;
}

Positions::Positions(const Judgement& judgement)
    : words_{judgement.top,
             ~judgement.next(),
             judgement.next(),
             ~judgement.head,
             0,
             judgement.unsure ? 1U : 0U} {
  if (judgement.damage.empty()) return;
  words_[1] = words_[3] = 0;  // says nothing of the minima
  words_[4] = 1;
}

bool Positions::lost() const {
  return damaged() || top_max() > next_min();
}

void Positions::add(const Positions& other) {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    words_[i] = std::max(words_[i], other.words_[i]);
  }
}

bool VersionSet::contains(std::uint64_t version) const {
  if (version >= base || base - version > set_bits) return true;
  return (bits >> (base - 1 - version) & 1) != 0;
}

VersionSet lacking_versions(const Judgement& judgement, const Positions& positions,
                            std::uint32_t slots) {
  const bool lost = positions.lost();
  VersionSet lacking{lost ? positions.next_max() : positions.next_min(), 0};
  for (std::uint32_t i = 0; i < set_bits; ++i) {
    const std::uint64_t version = lacking.base - 1 - i;
    const Offer* offer = i < lacking.base ? judgement.find(version) : nullptr;
    bool held = offer != nullptr && !offer->reopened && version % slots != lacking.base % slots;
    if (lost && offer != nullptr) {
      // The next version may have to skip a number: back must hold i + 1.
      held = i < back_max && (offer->checkable || !is_weak(version, positions, slots)) &&
             !is_abandoned(judgement, version);
    }
    if (!held) lacking.bits |= std::uint64_t{1} << i;
  }
  return lacking;
}

namespace {

Result<Choice> choose_any(const Positions& positions, const VersionSet& lacking,
                          std::uint32_t slots, bool allow_older) {
  Choice choice;
  choice.lacking = lacking;
  choice.next = lacking.base;
  if (!positions.lost()) {
    choice.version = positions.head_min();
    return choice;
  }
  choice.fell_back = true;
  const auto newest = static_cast<std::uint32_t>(std::countr_one(lacking.bits));
  if (newest == set_bits) {
    return Status(Code::damaged,
                  "no version is whole on all ranks; `perdure pool check` says what is left on "
                  "each");
  }
  choice.version = lacking.base - 1 - newest;
  if (!allow_older) {
    return Status(
        Code::damaged, "some rank lost version ", lacking.base - 1,
        " or can't tell whether it had it; only version ", choice.version,
        " is left: a file is stale or damaged. Open with PERDURE_ALLOW_OLDER to go back to it");
  }
  choice.weak = is_weak(choice.version, positions, slots);
  if (choice.next % slots == choice.version % slots) ++choice.next;
  for (std::uint32_t i = 0; i < set_bits && i < lacking.base; ++i) {
    const std::uint64_t version = lacking.base - 1 - i;
    const bool kept = version == choice.version || (!is_weak(version, positions, slots) &&
                                                    version % slots != choice.next % slots);
    if (!kept) choice.lacking.bits |= std::uint64_t{1} << i;
  }
  return choice;
}

}  // namespace

Result<Choice> choose(const Positions& positions, const VersionSet& lacking, std::uint32_t slots,
                      bool allow_older) {
  auto choice = choose_any(positions, lacking, slots, allow_older);
  if (!choice.ok() || choice.value().next <= version_max) return choice;
  return Status(Code::damaged, "the slots name version ", version_max,
                ", after which there is no number: they were damaged, or the file was not written "
                "by Perdure");
}

Status check_choice(const Judgement& judgement, const Choice& choice) {
  if (!choice.possible()) {
    return Status(Code::damaged, "the ranks agree on version ", choice.version,
                  " but not all have it, this one holds ",
                  listed(judgement.offers, &Offer::version, " and "),
                  ": a file is from another time, or damaged");
  }
  const bool abandoned =
      !choice.fell_back && judgement.top_complete && judgement.top == choice.next;
  if (abandoned && judgement.top_parent() != choice.version) {
    return Status(Code::damaged, "this rank completed version ", judgement.top,
                  ", made from version ", judgement.top_parent(),
                  ", but the ranks agree on version ", choice.version,
                  ": a file is from another time");
  }
  return Status::success();
}

std::optional<StateWord> word_without_version(const std::vector<SlotView>& slots,
                                              std::uint32_t slot, const Choice& choice) {
  const std::uint64_t count = slots.size();
  if (slot == choice.next % count || slot == choice.version % count) return std::nullopt;
  const StateWord* state = state_in(slots, slot);
  if (state != nullptr && state->version < choice.next) {
    const bool stays =
        state->state == SlotState::deleted || state->state == SlotState::unused ||
        (state->state == SlotState::complete && !choice.lacking.contains(state->version));
    if (stays) return std::nullopt;
    return StateWord{SlotState::deleted, state->version, state->back};
  }
  // The newest number that fits the slot; nobody asks for it.
  const std::uint64_t behind = (choice.next + count - slot - 1) % count + 1;
  if (behind > choice.next) return StateWord{SlotState::unused, slot};
  return StateWord{SlotState::deleted, choice.next - behind};
}

}  // namespace perdure
