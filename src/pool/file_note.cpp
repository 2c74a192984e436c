// SPDX-License-Identifier: BSD-3-Clause
#include "pool/file_note.hpp"

#include <cstring>

#include "base/checksum.hpp"
#include "base/files.hpp"
#include "pool/file_note_format.hpp"

namespace perdure {
namespace {

constexpr const char* note_prefix = "perdure.file.";

}  // namespace

std::string FileNote::full_path() const {
  return (place == "/" ? "" : place) + "/" + split_path(path).name;
}

std::string file_note_digits(const std::string& path) {
  return digits_of(crc64(path.data(), path.size()));
}

std::string file_note_name(const std::string& path) {
  return note_prefix + file_note_digits(path);
}

bool is_file_note_name(const std::string& name) {
  return name.starts_with(note_prefix);
}

std::vector<std::byte> file_note_bytes(const FileNote& note) {
  const FileNoteFormat head{file_note_version,
                            static_cast<std::uint32_t>(note.path.size()),
                            static_cast<std::uint32_t>(note.place.size()),
                            0,
                            note.bytes,
                            note.checksum};
  std::vector<std::byte> bytes(sizeof head + note.path.size() + note.place.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, note.path.data(), note.path.size());
  std::memcpy(bytes.data() + sizeof head + note.path.size(), note.place.data(), note.place.size());
  return bytes;
}

std::optional<FileNote> file_note_of(std::span<const std::byte> bytes) {
  FileNoteFormat head{};
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  const bool known = head.version == file_note_version && head.path_bytes != 0 &&
                     head.path_bytes <= file_path_bytes_max &&
                     head.place_bytes <= file_path_bytes_max;
  if (!known || bytes.size() != sizeof head + head.path_bytes + head.place_bytes) {
    return std::nullopt;
  }
  const char* const text = reinterpret_cast<const char*>(bytes.data()) + sizeof head;
  return FileNote{std::string(text, head.path_bytes),
                  std::string(text + head.path_bytes, head.place_bytes), head.bytes, head.checksum};
}

std::vector<FileNote> file_notes_of(const Catalogue& catalogue) {
  std::vector<FileNote> notes;
  for (const ScalarEntry& scalar : catalogue.scalars) {
    if (!is_file_note_name(scalar.name)) continue;
    if (auto note = file_note_of(scalar.bytes)) notes.push_back(std::move(*note));
  }
  return notes;
}

Result<std::optional<FileNote>> find_file_note(const Catalogue& catalogue,
                                               const std::string& path) {
  const ScalarEntry* const entry = catalogue.find_scalar(file_note_name(path));
  if (entry == nullptr) return std::optional<FileNote>();
  auto note = file_note_of(entry->bytes);
  if (note && note->path == path) return note;
  return Status(Code::damaged, "version ", catalogue.version, " has no note of ", quoted(path),
                " in its scalar ", entry->name, ", but something else");
}

}  // namespace perdure
