// SPDX-License-Identifier: BSD-3-Clause
#include "pool/box_note.hpp"

#include <algorithm>
#include <cstring>

#include "base/checksum.hpp"
#include "pool/box_note_format.hpp"

namespace perdure {
namespace {

constexpr const char* note_prefix = "perdure.box.";

std::string box_note_name(const std::string& name, std::uint32_t part) {
  return note_prefix + digits_of(crc64(&part, sizeof part, crc64(name.data(), name.size())));
}

// What the note says, if that can be.
void read_note(const ScalarEntry& scalar, GlobalBoxes& boxes) {
  BoxNoteFormat note{};
  if (scalar.bytes.size() < sizeof note) return;
  std::memcpy(&note, scalar.bytes.data(), sizeof note);
  if (note.version != box_note_version || note.dimensions == 0 ||
      note.dimensions > dimensions_max || scalar.bytes.size() != sizeof note + note.name_bytes) {
    return;
  }
  const char* const text = reinterpret_cast<const char*>(scalar.bytes.data()) + sizeof note;
  boxes[{std::string(text, note.name_bytes), note.part}] = {
      {note.global_shape, note.global_shape + note.dimensions},
      {note.first, note.first + note.dimensions}};
}

bool fits(const ArrayEntry& entry, const GlobalBox& box) {
  const auto& extents = entry.shape.extents;
  if (extents.size() != box.first.size()) return false;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::uint64_t end = box.global_shape[i];
    if (box.first[i] > end || extents[i] > end - box.first[i]) return false;
  }
  return true;
}

}  // namespace

bool is_box_note_name(const std::string& name) {
  return name.starts_with(note_prefix);
}

bool put_box(Catalogue& catalogue, const std::string& name, std::uint32_t part,
             const GlobalBox* box) {
  const auto is_note = [](const ScalarEntry& each) { return is_box_note_name(each.name); };
  if (box == nullptr && std::ranges::none_of(catalogue.scalars, is_note)) return false;
  const std::string known = box_note_name(name, part);
  auto found = std::ranges::find(catalogue.scalars, known, &ScalarEntry::name);
  const bool is_new = found == catalogue.scalars.end();
  if (is_new && box == nullptr) return false;
  if (is_new) found = catalogue.scalars.insert(found, {known, {}});
  BoxNoteFormat note{box_note_version, 0, part, static_cast<std::uint32_t>(name.size()), {}, {}};
  if (box != nullptr) {
    note.dimensions = static_cast<std::uint32_t>(box->first.size());
    std::ranges::copy(box->global_shape, note.global_shape);
    std::ranges::copy(box->first, note.first);
  }
  found->bytes.resize(sizeof note + name.size());
  std::memcpy(found->bytes.data(), &note, sizeof note);
  std::memcpy(found->bytes.data() + sizeof note, name.data(), name.size());
  return is_new;
}

std::optional<GlobalBox> find_box(const Catalogue& catalogue, const std::string& name,
                                  std::uint32_t part) {
  const std::string known = box_note_name(name, part);
  const auto found = std::ranges::find(catalogue.scalars, known, &ScalarEntry::name);
  if (found == catalogue.scalars.end()) return std::nullopt;
  GlobalBoxes boxes;
  read_note(*found, boxes);
  const auto box = boxes.find({name, part});
  return box == boxes.end() ? std::nullopt : std::optional(box->second);
}

GlobalBoxes boxes_of(const Catalogue& catalogue) {
  GlobalBoxes boxes;
  for (const ScalarEntry& scalar : catalogue.scalars) {
    if (is_box_note_name(scalar.name)) read_note(scalar, boxes);
  }
  std::erase_if(boxes, [&](const auto& each) {
    const auto entry = catalogue.find_array(each.first.first, each.first.second);
    return !entry || !fits(*entry, each.second);
  });
  return boxes;
}

}  // namespace perdure
