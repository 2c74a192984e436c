#include "object/catalogue.hpp"

#include <algorithm>
#include <cstring>

#include "base/checksum.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t array_bytes_max = std::uint64_t{1} << 48;

Status damaged(const std::string& what) {
  return {Code::damaged, what};
}

std::size_t padded(std::size_t bytes) {
  return (bytes + 7) / 8 * 8;
}

template <typename Format>
std::byte* append(std::byte* at, const Format& format) {
  std::memcpy(at, &format, sizeof format);
  return at + sizeof format;
}

ArrayFormat to_format(const ArrayEntry& entry) {
  ArrayFormat format{};
  std::memcpy(format.name, entry.name.data(), entry.name.size());
  format.type = static_cast<std::uint32_t>(entry.shape.type);
  format.mode = static_cast<std::uint32_t>(entry.shape.mode);
  format.checksums = entry.shape.checksums ? 1 : 0;
  format.dimensions = static_cast<std::uint32_t>(entry.shape.extents.size());
  std::copy(entry.shape.extents.begin(), entry.shape.extents.end(), format.shape);
  std::copy(entry.half_offset.begin(), entry.half_offset.end(), format.half_offset);
  std::copy(entry.table_offset.begin(), entry.table_offset.end(), format.table_offset);
  format.table_checksum = entry.table_checksum;
  format.half = entry.half;
  return format;
}

Result<std::string> parse_name(const char (&name)[name_bytes]) {
  if (name[name_bytes - 1] != '\0') return damaged("a name has no end");
  std::string text(name);
  if (!check_name(text).ok()) return damaged("a name is not printable");
  return text;
}

bool inside(std::uint64_t offset, std::uint64_t size, std::uint64_t begin, std::uint64_t end) {
  return offset >= begin && offset <= end && size <= end - offset;
}

Status check_extents(const ArrayEntry& entry, std::uint64_t allocated_end,
                     const BodyBounds& bounds) {
  const std::uint64_t table =
      entry.shape.checksums ? 8 * block_count(entry.size_bytes, bounds.block_bytes) : 0;
  for (std::size_t half = 0; half < 2; ++half) {
    const bool fits =
        inside(entry.half_offset[half], entry.size_bytes, bounds.data_offset, allocated_end) &&
        (table == 0 || inside(entry.table_offset[half], table, bounds.data_offset, allocated_end));
    if (!fits) return damaged("array '" + entry.name + "' lies outside of the pool");
  }
  return Status::success();
}

Result<ArrayEntry> parse_array(const std::byte* at, std::uint64_t allocated_end,
                               const BodyBounds& bounds) {
  ArrayFormat format;
  std::memcpy(&format, at, sizeof format);
  ArrayEntry entry;
  auto name = parse_name(format.name);
  if (!name.ok()) return name.status();
  entry.name = name.take();
  const bool known = format.type >= 1 && format.type <= 6 && format.mode >= 1 && format.mode <= 3 &&
                     format.checksums <= 1 && format.half <= 1 && format.dimensions >= 1 &&
                     format.dimensions <= dimensions_max;
  if (!known) return damaged("array '" + entry.name + "' has an unknown type or mode");
  entry.shape.type = static_cast<ArrayType>(format.type);
  entry.shape.mode = static_cast<ArrayMode>(format.mode);
  entry.shape.checksums = format.checksums == 1;
  entry.shape.extents.assign(format.shape, format.shape + format.dimensions);
  auto bytes = checked_bytes(entry.shape);
  if (!bytes.ok()) return damaged("array '" + entry.name + "': " + bytes.status().message());
  entry.size_bytes = bytes.value();
  std::copy(format.half_offset, format.half_offset + 2, entry.half_offset.begin());
  std::copy(format.table_offset, format.table_offset + 2, entry.table_offset.begin());
  entry.table_checksum = format.table_checksum;
  entry.half = static_cast<std::uint32_t>(format.half);
  PERDURE_TRY(check_extents(entry, allocated_end, bounds));
  return entry;
}

Result<ScalarEntry> parse_scalar(std::span<const std::byte> rest) {
  ScalarFormat format;
  if (rest.size() < sizeof format) return damaged("the list of scalars is cut off");
  std::memcpy(&format, rest.data(), sizeof format);
  auto name = parse_name(format.name);
  if (!name.ok()) return name.status();
  if (format.bytes == 0 || format.bytes > scalar_bytes_max ||
      padded(format.bytes) > rest.size() - sizeof format) {
    return damaged("scalar '" + name.value() + "' has a wrong size");
  }
  const std::byte* begin = rest.data() + sizeof format;
  return ScalarEntry{name.take(), {begin, begin + format.bytes}};
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
  if (head.allocated_end < bounds.data_offset || head.allocated_end > bounds.device_bytes) {
    return damaged("its extents end at byte " + std::to_string(head.allocated_end) +
                   " but the file has " + std::to_string(bounds.device_bytes) + ": truncated?");
  }
  return head;
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
    if (extent == 0) return invalid("an extent of the shape is 0");
    if (extent > array_bytes_max / bytes) return invalid("the array is larger than 2^48 bytes");
    bytes *= extent;
  }
  return bytes;
}

const ArrayEntry* Catalogue::find_array(const std::string& name) const {
  const auto same = [&name](const ArrayEntry& entry) { return entry.name == name; };
  const auto found = std::find_if(arrays.begin(), arrays.end(), same);
  return found == arrays.end() ? nullptr : &*found;
}

const ScalarEntry* Catalogue::find_scalar(const std::string& name) const {
  const auto same = [&name](const ScalarEntry& entry) { return entry.name == name; };
  const auto found = std::find_if(scalars.begin(), scalars.end(), same);
  return found == scalars.end() ? nullptr : &*found;
}

std::size_t body_bytes(const Catalogue& catalogue) {
  std::size_t bytes = sizeof(SlotBodyFormat) + catalogue.arrays.size() * sizeof(ArrayFormat);
  for (const ScalarEntry& scalar : catalogue.scalars) {
    bytes += sizeof(ScalarFormat) + padded(scalar.bytes.size());
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
  head.incarnation = catalogue.incarnation;
  head.committed_ns = catalogue.committed_ns;
  head.allocated_end = catalogue.allocated_end;
  head.arrays = static_cast<std::uint32_t>(catalogue.arrays.size());
  head.scalars = static_cast<std::uint32_t>(catalogue.scalars.size());
  std::byte* at = append(body.data(), head);
  for (const ArrayEntry& entry : catalogue.arrays) at = append(at, to_format(entry));
  for (const ScalarEntry& scalar : catalogue.scalars) {
    ScalarFormat format{};
    std::memcpy(format.name, scalar.name.data(), scalar.name.size());
    format.bytes = scalar.bytes.size();
    at = append(at, format);
    std::memcpy(at, scalar.bytes.data(), scalar.bytes.size());
    at += padded(scalar.bytes.size());
  }
  const std::uint64_t checksum = crc64(body.data() + 8, bytes - 8);
  std::memcpy(body.data(), &checksum, sizeof checksum);
}

Result<Catalogue> parse_body(std::span<const std::byte> body, const BodyBounds& bounds) {
  auto head = parse_head(body, bounds);
  if (!head.ok()) return head.status();
  const SlotBodyFormat& h = head.value();
  Catalogue catalogue{h.version, h.incarnation, h.committed_ns, h.allocated_end, {}, {}};
  std::span<const std::byte> rest = body.subspan(sizeof h, h.body_bytes - sizeof h);
  if (h.arrays > rest.size() / sizeof(ArrayFormat)) return damaged("the list of arrays is cut off");
  for (std::uint32_t i = 0; i < h.arrays; ++i) {
    auto entry = parse_array(rest.data(), h.allocated_end, bounds);
    if (!entry.ok()) return entry.status();
    catalogue.arrays.push_back(entry.take());
    rest = rest.subspan(sizeof(ArrayFormat));
  }
  for (std::uint32_t i = 0; i < h.scalars; ++i) {
    auto scalar = parse_scalar(rest);
    if (!scalar.ok()) return scalar.status();
    rest = rest.subspan(sizeof(ScalarFormat) + padded(scalar.value().bytes.size()));
    catalogue.scalars.push_back(scalar.take());
  }
  return catalogue;
}

Status check_name(const std::string& name) {
  const auto printable = [](char c) { return c > ' ' && c < 127 && c != '/'; };
  if (name.empty() || name.size() >= name_bytes ||
      !std::all_of(name.begin(), name.end(), printable)) {
    return {Code::invalid_argument,
            "the name '" + name + "' must be 1 to 63 printable ASCII characters without '/'"};
  }
  return Status::success();
}

}  // namespace perdure
