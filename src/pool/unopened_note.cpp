// SPDX-License-Identifier: BSD-3-Clause
#include "pool/unopened_note.hpp"

#include <algorithm>
#include <cstring>

#include "pool/unopened_note_format.hpp"

namespace perdure {
namespace {

constexpr const char* note_name = "perdure.unopened";

template <typename T>
void append(std::vector<std::byte>& bytes, const T& value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::vector<std::byte> note_of(const std::set<ArrayKey>& unopened) {
  std::vector<std::byte> bytes;
  append(bytes,
         UnopenedNoteFormat{unopened_note_version, static_cast<std::uint32_t>(unopened.size())});
  for (const auto& [name, part] : unopened) {
    if (bytes.size() + sizeof(UnopenedArrayFormat) + name.size() > unopened_note_bytes_max) break;
    append(bytes, UnopenedArrayFormat{part, static_cast<std::uint32_t>(name.size())});
    const auto* const first = reinterpret_cast<const std::byte*>(name.data());
    bytes.insert(bytes.end(), first, first + name.size());
  }
  return bytes;
}

}  // namespace

bool is_unopened_note_name(const std::string& name) {
  return name == note_name;
}

bool put_unopened(Catalogue& catalogue, const std::set<ArrayKey>& unopened) {
  auto found = std::ranges::find(catalogue.scalars, note_name, &ScalarEntry::name);
  const bool is_new = found == catalogue.scalars.end();
  if (is_new && unopened.empty()) return false;
  if (is_new) found = catalogue.scalars.insert(found, {note_name, {}});
  found->bytes = note_of(unopened);
  return is_new;
}

std::set<ArrayKey> unopened_of(const Catalogue& catalogue) {
  std::set<ArrayKey> unopened;
  const ScalarEntry* const note = catalogue.find_scalar(note_name);
  UnopenedNoteFormat head{};
  if (note == nullptr || note->bytes.size() < sizeof head) return unopened;
  std::memcpy(&head, note->bytes.data(), sizeof head);
  if (head.version != unopened_note_version) return unopened;
  for (std::size_t at = sizeof head; at < note->bytes.size();) {
    UnopenedArrayFormat array{};
    if (note->bytes.size() - at < sizeof array) break;
    std::memcpy(&array, note->bytes.data() + at, sizeof array);
    at += sizeof array;
    if (note->bytes.size() - at < array.name_bytes) break;
    const std::string name(reinterpret_cast<const char*>(note->bytes.data()) + at,
                           array.name_bytes);
    at += array.name_bytes;
    if (catalogue.find_array(name, array.part)) unopened.emplace(name, array.part);
  }
  return unopened;
}

}  // namespace perdure
