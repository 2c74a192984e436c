// SPDX-License-Identifier: BSD-3-Clause
#include "pool/array_entry.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "pmem/flush.hpp"
#include "pool/scalar_type.hpp"
#include "pool/slot_format.hpp"

namespace perdure {
namespace {

// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none, or with NUL.
// Overlong forms, surrogates and numbers above U+10FFFF are no characters.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return first == 0 ? 0 : 1;
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  std::uint32_t character = first & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    character = (character << 6) | (byte(i) & 0x3fU);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xd800 && character < 0xe000;
  if (first < 0xc0 || first > 0xf7 || character < least[bytes] || surrogate) return 0;
  return character > 0x10ffff ? 0 : bytes;
}

bool is_name(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace

std::size_t element_bytes(ArrayType type) {
  const ScalarType known = known_scalar_type(static_cast<std::uint32_t>(type));
  const bool is_of_scalars = known == ScalarType::none || known == ScalarType::text;
  return is_of_scalars ? 0 : element_bytes(known);
}

const char* type_name(ArrayType type) {
  return element_bytes(type) == 0 ? "?" : type_name(static_cast<ScalarType>(type));
}

const char* mode_name(ArrayMode mode) {
  switch (mode) {
    case ArrayMode::copy:
      return "copy";
    case ArrayMode::twin:
      return "twin";
    case ArrayMode::log:
      return "log";
    case ArrayMode::flush:
      return "flush";
  }
  return "?";
}

std::string ArrayShape::text() const {
  return sentence(type_name(type), "[", listed(extents), "] ", mode_name(mode),
                  (checksums ? "" : ", no checksums"));
}

Result<std::uint64_t> checked_bytes(const ArrayShape& shape) {
  const auto invalid = [](const std::string& what) { return Status(Code::invalid_argument, what); };
  if (shape.extents.empty() || shape.extents.size() > dimensions_max) {
    return invalid("an array has 1 to 8 dimensions, not " + std::to_string(shape.extents.size()));
  }
  std::uint64_t bytes = element_bytes(shape.type);
  if (bytes == 0) return invalid("unknown element type");
  for (const std::uint64_t extent : shape.extents) {
    if (bytes != 0 && extent > array_bytes_max / bytes) {
      return invalid("the array is larger than 2^48 bytes");
    }
    bytes *= extent;
  }
  if (shape.mode == ArrayMode::flush && shape.checksums) {
    return invalid("an array in flush mode is written in place, so it can't have checksums");
  }
  return bytes;
}

std::uint64_t ArrayEntry::end_offset(std::uint64_t block_bytes) const {
  if (!shape.checksums) return copy_offset(copies - 1) + std::max<std::uint64_t>(size_bytes, 1);
  const std::uint64_t table = 8 * block_count(size_bytes, block_bytes);
  return table_offset(copies - 1) + std::max<std::uint64_t>(table, 1);
}

bool ArrayEntry::same_places(const ArrayEntry& other) const {
  return name == other.name && part == other.part && shape.type == other.shape.type &&
         shape.mode == other.shape.mode && shape.checksums == other.shape.checksums &&
         spare_copies == other.spare_copies && first_offset == other.first_offset &&
         stride_bytes == other.stride_bytes && table_first_offset == other.table_first_offset &&
         table_stride_bytes == other.table_stride_bytes;
}

bool is_packed(ArrayMode mode, std::uint64_t size_bytes, std::uint64_t align_bytes) {
  const bool ours = mode == ArrayMode::copy || mode == ArrayMode::log;
  return ours && align_bytes > cache_line_bytes && size_bytes <= align_bytes / 2;
}

Status check_name(const std::string& name) {
  if (name.empty() || name.size() > name_bytes_max || !is_name(name)) {
    return Status(Code::invalid_argument, "the name ", quoted(name),
                  " must be UTF-8 of 1 to 255 bytes without NUL, and has ", name.size());
  }
  return Status::success();
}

std::string quoted(const std::string& name) {
  std::string text = "'";
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t bytes = character_bytes(std::string_view(name).substr(at));
    const auto first = static_cast<unsigned char>(name[at]);
    const auto last = static_cast<unsigned char>(name[at + (bytes == 2 ? 1 : 0)]);
    const bool control = first < 0x20 || first == 0x7f || (first == 0xc2 && last < 0xa0);
    if (bytes == 0 || control) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", bytes == 2 ? last : first);
      text += escape;
    } else {
      text.append(name, at, bytes);
    }
    at += std::max<std::size_t>(bytes, 1);
  }
  return text + "'";
}

}  // namespace perdure
