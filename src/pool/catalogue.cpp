// SPDX-License-Identifier: BSD-3-Clause
#include "pool/catalogue.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <string_view>

#include "base/checksum.hpp"
#include "pool/state_word.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t array_bytes_max = std::uint64_t{1} << 48;

Status damaged(const std::string& what) {
  return {Code::damaged, what};
}

std::size_t padded(std::size_t bytes) {
  return (bytes + 7) / 8 * 8;
}

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

template <typename Format>
std::byte* append(std::byte* at, const Format& format) {
  std::memcpy(at, &format, sizeof format);
  return at + sizeof format;
}

std::byte* append_bytes(std::byte* at, const void* bytes, std::size_t count) {
  std::memcpy(at, bytes, count);
  return at + padded(count);
}

ArrayFormat to_format(const ArrayEntry& entry) {
  ArrayFormat format{};
  format.name_bytes = static_cast<std::uint32_t>(entry.name.size());
  format.type = static_cast<std::uint32_t>(entry.shape.type);
  format.mode = static_cast<std::uint32_t>(entry.shape.mode);
  format.checksums = entry.shape.checksums ? 1 : 0;
  format.dimensions = static_cast<std::uint32_t>(entry.shape.extents.size());
  std::copy(entry.shape.extents.begin(), entry.shape.extents.end(), format.shape);
  format.first_offset = entry.first_offset;
  format.stride_bytes = entry.stride_bytes;
  format.table_first_offset = entry.table_first_offset;
  format.table_stride_bytes = entry.table_stride_bytes;
  format.table_checksum = entry.table_checksum;
  format.copy = entry.copy;
  format.part = entry.part;
  format.spare_copies = entry.spare_copies;
  return format;
}

// Takes structs, names and bytes off the front of a body; false, or an error, when it ends before.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> rest) : rest_(rest) {}

  template <typename Format>
  bool take(Format& format) {
    if (rest_.size() < sizeof format) return false;
    std::memcpy(&format, rest_.data(), sizeof format);
    rest_ = rest_.subspan(sizeof format);
    return true;
  }
  bool take_bytes(std::uint64_t count, std::span<const std::byte>& bytes) {
    if (count > rest_.size() || padded(count) > rest_.size()) return false;
    bytes = rest_.first(count);
    rest_ = rest_.subspan(padded(count));
    return true;
  }
  Result<std::string> take_name(std::uint32_t count) {
    std::span<const std::byte> bytes;
    if (!take_bytes(count, bytes)) return damaged("a name is cut off");
    std::string name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!check_name(name).ok()) return damaged("a name is not UTF-8 of 1 to 255 bytes");
    return name;
  }

 private:
  std::span<const std::byte> rest_;
};

bool inside(std::uint64_t offset, std::uint64_t size, std::uint64_t begin, std::uint64_t end) {
  return offset >= begin && offset <= end && size <= end - offset;
}

// Numbers that a version can have.
bool is_lineage(const SlotBodyFormat& head) {
  if (head.version == 0) return head.parent == 0;
  return head.version <= version_max && head.parent < head.version &&
         head.version - 1 - head.parent <= back_max;
}

// `copies` places of `size` bytes, `stride` apart. The strides are bounded first, so that nothing
// here overflows.
bool places_inside(std::uint64_t first, std::uint64_t stride, std::uint64_t size,
                   std::uint32_t copies, std::uint64_t begin, std::uint64_t end) {
  if (copies > 1 && (stride < size || stride > 2 * array_bytes_max)) return false;
  return inside(first, (copies - 1) * stride + size, begin, end);
}

Status check_extents(const ArrayEntry& entry, std::uint64_t allocated_end,
                     const BodyBounds& bounds) {
  const std::uint64_t size = std::max<std::uint64_t>(entry.size_bytes, 1);
  const std::uint64_t table = 8 * block_count(entry.size_bytes, bounds.block_bytes);
  bool fits = places_inside(entry.first_offset, entry.stride_bytes, size, entry.copies,
                            bounds.data_offset, allocated_end);
  bool aligned = entry.first_offset % bounds.align_bytes == 0 &&
                 (entry.copies == 1 || entry.stride_bytes % bounds.align_bytes == 0);
  if (fits && entry.shape.checksums) {
    const std::uint64_t behind = entry.copy_offset(entry.copies - 1) + entry.size_bytes;
    fits = places_inside(entry.table_first_offset, entry.table_stride_bytes,
                         std::max<std::uint64_t>(table, 1), entry.copies, behind, allocated_end);
    aligned = aligned && entry.table_first_offset % 8 == 0 && entry.table_stride_bytes % 8 == 0;
  }
  if (!fits) return damaged("array " + quoted(entry.name) + " lies outside of the pool");
  if (!aligned) return damaged("array " + quoted(entry.name) + " is not aligned");
  return Status::success();
}

Result<ArrayEntry> parse_array(Reader& reader, std::uint64_t allocated_end,
                               const BodyBounds& bounds) {
  ArrayFormat format;
  if (!reader.take(format)) return damaged("the list of arrays is cut off");
  ArrayEntry entry;
  PERDURE_TRY_ASSIGN(auto name, reader.take_name(format.name_bytes));
  entry.name = std::move(name);
  const bool known = format.type >= 1 && format.type <= 6 && format.mode >= 1 && format.mode <= 4 &&
                     format.checksums <= 1 && format.dimensions >= 1 &&
                     format.dimensions <= dimensions_max && format.spare_copies <= 1;
  if (!known) return damaged("array " + quoted(entry.name) + " has an unknown type or mode");
  entry.part = format.part;
  entry.shape.type = static_cast<ArrayType>(format.type);
  entry.shape.mode = static_cast<ArrayMode>(format.mode);
  entry.shape.checksums = format.checksums == 1;
  entry.shape.extents.assign(format.shape, format.shape + format.dimensions);
  auto bytes = checked_bytes(entry.shape);
  if (!bytes.ok()) {
    return damaged("array " + quoted(entry.name) + ": " + bytes.status().message());
  }
  entry.size_bytes = bytes.value();
  entry.spare_copies = format.spare_copies;
  const std::uint32_t versions = bounds.copies + entry.spare_copies;
  entry.copies = entry.shape.mode == ArrayMode::flush ? 1 : versions;
  entry.copy = format.copy;
  if (entry.copy >= entry.copies) {
    return damaged("array " + quoted(entry.name) + " has no copy " + std::to_string(entry.copy));
  }
  entry.first_offset = format.first_offset;
  entry.stride_bytes = format.stride_bytes;
  entry.table_first_offset = format.table_first_offset;
  entry.table_stride_bytes = format.table_stride_bytes;
  entry.table_checksum = format.table_checksum;
  PERDURE_TRY(check_extents(entry, allocated_end, bounds));
  return entry;
}

Result<ScalarEntry> parse_scalar(Reader& reader) {
  ScalarFormat format;
  if (!reader.take(format)) return damaged("the list of scalars is cut off");
  PERDURE_TRY_ASSIGN(auto name, reader.take_name(format.name_bytes));
  std::span<const std::byte> bytes;
  const bool right = format.bytes >= 1 && format.bytes <= scalar_bytes_max;
  if (!right || !reader.take_bytes(format.bytes, bytes)) {
    return damaged("scalar " + quoted(name) + " has a wrong size");
  }
  return ScalarEntry{std::move(name), {bytes.begin(), bytes.end()}};
}

Result<SlotBodyFormat> parse_head(std::span<const std::byte> body, const BodyBounds& bounds) {
  SlotBodyFormat head;
  if (body.size() < sizeof head) return damaged("the slot is too small");
  std::memcpy(&head, body.data(), sizeof head);
  if (head.body_bytes < sizeof head || head.body_bytes > body.size()) {
    return damaged("the body's length can't be right");
  }
  if (head.checksum != crc64(body.data() + 8, head.body_bytes - 8)) {
    return damaged("the checksum is wrong");
  }
  if (!is_lineage(head)) {
    return damaged("version " + std::to_string(head.version) + " can't be made from version " +
                   std::to_string(head.parent));
  }
  if (head.allocated_end < bounds.data_offset || head.allocated_end > bounds.device_bytes) {
    return damaged("its extents end at byte " + std::to_string(head.allocated_end) +
                   " but the file has " + std::to_string(bounds.device_bytes) + ": truncated?");
  }
  return head;
}

// No two arrays, and no two scalars, of a version are the same.
Status check_names(const Catalogue& catalogue) {
  std::set<std::pair<std::string_view, std::uint32_t>> arrays;
  for (const ArrayEntry& entry : catalogue.arrays) {
    if (!arrays.emplace(entry.name, entry.part).second) {
      return damaged("array " + quoted(entry.name) + " is there twice");
    }
  }
  std::set<std::string_view> scalars;
  for (const ScalarEntry& entry : catalogue.scalars) {
    if (!scalars.insert(entry.name).second) {
      return damaged("scalar " + quoted(entry.name) + " is there twice");
    }
  }
  return Status::success();
}

}  // namespace

std::size_t element_bytes(ArrayType type) {
  switch (type) {
    case ArrayType::byte:
      return 1;
    case ArrayType::int32:
    case ArrayType::float32:
      return 4;
    case ArrayType::int64:
    case ArrayType::float64:
      return 8;
    case ArrayType::complex128:
      return 16;
  }
  return 0;
}

const char* type_name(ArrayType type) {
  switch (type) {
    case ArrayType::byte:
      return "byte";
    case ArrayType::int32:
      return "int32";
    case ArrayType::int64:
      return "int64";
    case ArrayType::float32:
      return "float32";
    case ArrayType::float64:
      return "float64";
    case ArrayType::complex128:
      return "complex128";
  }
  return "?";
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
  std::string text = std::string(type_name(type)) + "[";
  for (std::size_t i = 0; i < extents.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(extents[i]);
  }
  return text + "] " + mode_name(mode) + (checksums ? "" : ", no checksums");
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
  return name == other.name && part == other.part && shape == other.shape &&
         spare_copies == other.spare_copies && first_offset == other.first_offset &&
         stride_bytes == other.stride_bytes && table_first_offset == other.table_first_offset &&
         table_stride_bytes == other.table_stride_bytes;
}

const ArrayEntry* Catalogue::find_array(const std::string& name, std::uint32_t part) const {
  const auto same = [&](const ArrayEntry& entry) {
    return entry.part == part && entry.name == name;
  };
  const auto found = std::find_if(arrays.begin(), arrays.end(), same);
  return found == arrays.end() ? nullptr : &*found;
}

const ScalarEntry* Catalogue::find_scalar(const std::string& name) const {
  const auto same = [&name](const ScalarEntry& entry) { return entry.name == name; };
  const auto found = std::find_if(scalars.begin(), scalars.end(), same);
  return found == scalars.end() ? nullptr : &*found;
}

std::size_t body_bytes(const Catalogue& catalogue) {
  std::size_t bytes = sizeof(SlotBodyFormat);
  for (const ArrayEntry& entry : catalogue.arrays) {
    bytes += sizeof(ArrayFormat) + padded(entry.name.size());
  }
  for (const ScalarEntry& scalar : catalogue.scalars) {
    bytes += sizeof(ScalarFormat) + padded(scalar.name.size()) + padded(scalar.bytes.size());
  }
  return bytes;
}

void build_body(const Catalogue& catalogue, std::span<std::byte> body) {
  const std::size_t bytes = body_bytes(catalogue);
  PERDURE_ASSERT(bytes <= body.size());
  std::fill_n(body.begin(), bytes, std::byte{0});
  SlotBodyFormat head{};
  head.body_bytes = bytes;
  head.version = catalogue.version;
  head.parent = catalogue.parent;
  head.incarnation = catalogue.incarnation;
  head.committed_ns = catalogue.committed_ns;
  head.allocated_end = catalogue.allocated_end;
  head.arrays = static_cast<std::uint32_t>(catalogue.arrays.size());
  head.scalars = static_cast<std::uint32_t>(catalogue.scalars.size());
  std::byte* at = append(body.data(), head);
  for (const ArrayEntry& entry : catalogue.arrays) {
    at = append_bytes(append(at, to_format(entry)), entry.name.data(), entry.name.size());
  }
  for (const ScalarEntry& scalar : catalogue.scalars) {
    ScalarFormat format{};
    format.bytes = scalar.bytes.size();
    format.name_bytes = static_cast<std::uint32_t>(scalar.name.size());
    at = append_bytes(append(at, format), scalar.name.data(), scalar.name.size());
    at = append_bytes(at, scalar.bytes.data(), scalar.bytes.size());
  }
  const std::uint64_t checksum = crc64(body.data() + 8, bytes - 8);
  std::memcpy(body.data(), &checksum, sizeof checksum);
}

Result<Catalogue> parse_body(std::span<const std::byte> body, const BodyBounds& bounds) {
  PERDURE_TRY_ASSIGN(auto head, parse_head(body, bounds));
  const SlotBodyFormat& h = head;
  Catalogue catalogue{h.version, h.parent, h.incarnation, h.committed_ns, h.allocated_end, {}, {}};
  Reader reader(body.subspan(sizeof h, h.body_bytes - sizeof h));
  for (std::uint32_t i = 0; i < h.arrays; ++i) {
    PERDURE_TRY_ASSIGN(auto entry, parse_array(reader, h.allocated_end, bounds));
    catalogue.arrays.push_back(std::move(entry));
  }
  for (std::uint32_t i = 0; i < h.scalars; ++i) {
    PERDURE_TRY_ASSIGN(auto scalar, parse_scalar(reader));
    catalogue.scalars.push_back(std::move(scalar));
  }
  PERDURE_TRY(check_names(catalogue));
  const Catalogue* const alone[] = {&catalogue};
  PERDURE_TRY(check_apart(alone, bounds.block_bytes));
  return catalogue;
}

Status check_apart(std::span<const Catalogue* const> versions, std::uint64_t block_bytes) {
  std::vector<const ArrayEntry*> entries;
  for (const Catalogue* version : versions) {
    for (const ArrayEntry& entry : version->arrays) entries.push_back(&entry);
  }
  std::sort(entries.begin(), entries.end(), [](const ArrayEntry* a, const ArrayEntry* b) {
    return a->first_offset < b->first_offset;
  });
  for (std::size_t i = 1; i < entries.size(); ++i) {
    const ArrayEntry& before = *entries[i - 1];
    const ArrayEntry& entry = *entries[i];
    if (before.end_offset(block_bytes) <= entry.first_offset || entry.same_places(before)) continue;
    return damaged("the arrays " + quoted(before.name) + " and " + quoted(entry.name) +
                   " have bytes in common");
  }
  return Status::success();
}

Status check_name(const std::string& name) {
  if (name.empty() || name.size() > name_bytes_max || !is_name(name)) {
    return {Code::invalid_argument, "the name " + quoted(name) +
                                        " must be UTF-8 of 1 to 255 bytes without NUL, and has " +
                                        std::to_string(name.size())};
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
