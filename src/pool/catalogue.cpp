// SPDX-License-Identifier: BSD-3-Clause
#include "pool/catalogue.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "base/checksum.hpp"
#include "pmem/flush.hpp"
#include "pool/block_checksum.hpp"
#include "pool/state_word.hpp"

namespace perdure {
namespace {

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

std::byte* append_bytes(std::byte* at, const void* bytes, std::size_t count) {
  std::memcpy(at, bytes, count);
  return at + padded(count);
}

ArrayFormat to_format(const ArrayEntry& entry) {
  ArrayFormat format{};
  format.name_bytes = static_cast<std::uint32_t>(entry.name.size());
  format.type = static_cast<std::uint32_t>(entry.shape.type);
  format.mode = static_cast<std::uint32_t>(entry.shape.mode);
  format.checksums = entry.shape.checksums ? static_cast<std::uint32_t>(entry.checksum) : 0;
  format.dimensions = static_cast<std::uint32_t>(entry.shape.extents.size());
  std::ranges::copy(entry.shape.extents, format.shape);
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
  // Whether what follows is an array, and not the zeros that end a leaf.
  bool has_array() const {
    std::uint32_t type = 0;
    if (rest_.size() < sizeof(ArrayFormat)) return false;
    std::memcpy(&type, rest_.data(), sizeof type);
    return type != 0;
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
  const std::uint64_t align = is_packed(entry.shape.mode, entry.size_bytes, bounds.align_bytes)
                                  ? std::min<std::uint64_t>(bounds.align_bytes, cache_line_bytes)
                                  : bounds.align_bytes;
  bool aligned =
      entry.first_offset % align == 0 && (entry.copies == 1 || entry.stride_bytes % align == 0);
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
  const bool known = element_bytes(static_cast<ArrayType>(format.type)) != 0 && format.mode >= 1 &&
                     format.mode <= 4 && format.checksums <= data_checksum_newest &&
                     format.dimensions >= 1 && format.dimensions <= dimensions_max &&
                     format.spare_copies <= 1;
  if (!known) return damaged("array " + quoted(entry.name) + " has an unknown type or mode");
  entry.part = format.part;
  entry.shape.type = static_cast<ArrayType>(format.type);
  entry.shape.mode = static_cast<ArrayMode>(format.mode);
  entry.shape.checksums = format.checksums != 0;
  if (entry.shape.checksums) entry.checksum = static_cast<DataChecksum>(format.checksums);
  if (is_of_pages(entry.checksum) && !has_pages(bounds.block_bytes)) {
    return damaged("array " + quoted(entry.name) + " has checksums of pages, and blocks without");
  }
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
  return ScalarEntry{std::move(name), {bytes.begin(), bytes.end()}, known_scalar_type(format.type)};
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
    return damaged(sentence("version ", head.version, " can't be made from version ", head.parent));
  }
  if (head.allocated_end < bounds.data_offset || head.allocated_end > bounds.device_bytes) {
    return damaged("its extents end at byte " + std::to_string(head.allocated_end) +
                   " but the file has " + std::to_string(bounds.device_bytes) + ": truncated?");
  }
  return head;
}

struct ArrayName {
  std::string_view name;
  std::uint32_t part;
  bool operator==(const ArrayName&) const = default;
};
struct HashOfArrayName {
  std::size_t operator()(const ArrayName& key) const {
    return std::hash<std::string_view>{}(key.name) + key.part * 0x9e3779b97f4a7c15U;
  }
};

// No two arrays, and no two scalars, of a version are the same.
Status check_names(const Catalogue& catalogue) {
  std::unordered_set<ArrayName, HashOfArrayName> arrays;
  for (auto at = catalogue.arrays.begin(); at != catalogue.arrays.end(); ++at) {
    const ArrayEntry& entry = at.shared();  // whose name stays where it is
    if (!arrays.insert({entry.name, entry.part}).second) {
      return damaged("array " + quoted(entry.name) + " is there twice");
    }
  }
  std::unordered_set<std::string_view> scalars;
  for (const ScalarEntry& entry : catalogue.scalars) {
    if (!scalars.insert(entry.name).second) {
      return damaged("scalar " + quoted(entry.name) + " is there twice");
    }
  }
  return Status::success();
}

std::size_t scalar_bytes(const Catalogue& catalogue) {
  std::size_t bytes = 0;
  for (const ScalarEntry& scalar : catalogue.scalars) {
    bytes += sizeof(ScalarFormat) + padded(scalar.name.size()) + padded(scalar.bytes.size());
  }
  return bytes;
}

std::byte* append_array(std::byte* at, const LeafEntry& entry) {
  const std::string& name = entry.shared->entry.name;
  ArrayFormat format = to_format(entry.shared->entry);
  format.copy = entry.copy;
  format.table_checksum = entry.table_checksum;
  return append_bytes(append(at, format), name.data(), name.size());
}

Status parse_arrays(Reader& reader, const SlotBodyFormat& head, const BodyBounds& bounds,
                    TreeSource* trees, ArrayTable& arrays) {
  if (head.depth == 0) {
    for (std::uint32_t i = 0; i < head.arrays; ++i) {
      PERDURE_TRY_ASSIGN(auto entry, parse_array(reader, head.allocated_end, bounds));
      arrays.append(std::move(entry));
    }
    return Status::success();
  }
  PagePointerFormat root;
  if (!reader.take(root)) return damaged("the root of its arrays is cut off");
  if (trees == nullptr || head.depth > catalogue_depth_max) {
    return damaged("a tree of depth " + std::to_string(head.depth) + " can't be here");
  }
  PERDURE_TRY_ASSIGN(arrays, trees->read(root, head.depth));
  if (arrays.size() == head.arrays) return Status::success();
  return damaged(sentence("its tree has ", arrays.size(), " arrays, not ", head.arrays));
}

// Bytes of the file that something has.
struct Taken {
  std::uint64_t begin;
  std::uint64_t end;
  const ArrayEntry* array;  // null: a page of the catalogue
};

std::string text_of(const Taken& place) {
  return place.array != nullptr ? "array " + quoted(place.array->name)
                                : "the catalogue's page at byte " + std::to_string(place.begin);
}

// What versions share is there once.
std::vector<Taken> taken_by(std::span<const Catalogue* const> versions, std::uint64_t block_bytes) {
  std::vector<Taken> taken;
  std::unordered_set<const ArrayNode*> seen;
  const auto add = [&](ArrayNode& node) {
    if (!seen.insert(&node).second) return false;
    if (node.page != 0) taken.push_back({node.page, node.page + catalogue_page_bytes, nullptr});
    for (const LeafEntry& at : node.entries) {
      if (!at) continue;
      const ArrayEntry& entry = at.shared->entry;
      taken.push_back({entry.first_offset, entry.end_offset(block_bytes), &entry});
    }
    return true;
  };
  for (const Catalogue* version : versions) version->arrays.for_each_new_node(add);
  return taken;
}

}  // namespace

std::optional<ArrayEntry> Catalogue::find_array(const std::string& name, std::uint32_t part) const {
  for (auto at = arrays.begin(); at != arrays.end(); ++at) {
    if (at.shared().part == part && at.shared().name == name) return *at;
  }
  return std::nullopt;
}

const ScalarEntry* Catalogue::find_scalar(const std::string& name) const {
  const auto same = [&name](const ScalarEntry& entry) { return entry.name == name; };
  const auto found = std::ranges::find_if(scalars, same);
  return found == scalars.end() ? nullptr : &*found;
}

std::size_t body_bytes(const Catalogue& catalogue) {
  return sizeof(SlotBodyFormat) + catalogue.arrays.record_bytes() + scalar_bytes(catalogue);
}

std::size_t body_bytes_with_tree(const Catalogue& catalogue) {
  return sizeof(SlotBodyFormat) + sizeof(PagePointerFormat) + scalar_bytes(catalogue);
}

void build_body(const Catalogue& catalogue, std::span<std::byte> body,
                const PagePointerFormat* root) {
  const std::size_t bytes =
      root == nullptr ? body_bytes(catalogue) : body_bytes_with_tree(catalogue);
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
  head.scalars = static_cast<std::uint16_t>(catalogue.scalars.size());
  std::byte* at = body.data() + sizeof head;
  if (root != nullptr) {
    head.depth = static_cast<std::uint16_t>(catalogue.arrays.depth());
    at = append(at, *root);
  } else {
    for (auto array = catalogue.arrays.begin(); array != catalogue.arrays.end(); ++array) {
      at = append_array(at, array.leaf_entry());
    }
  }
  append(body.data(), head);
  for (const ScalarEntry& scalar : catalogue.scalars) {
    ScalarFormat format{};
    format.bytes = scalar.bytes.size();
    format.name_bytes = static_cast<std::uint32_t>(scalar.name.size());
    format.type = static_cast<std::uint32_t>(scalar.type);
    at = append_bytes(append(at, format), scalar.name.data(), scalar.name.size());
    at = append_bytes(at, scalar.bytes.data(), scalar.bytes.size());
  }
  const std::uint64_t checksum = crc64(body.data() + 8, bytes - 8);
  std::memcpy(body.data(), &checksum, sizeof checksum);
}

void build_page(const ArrayNode& node, CataloguePage& page) {
  page.fill(std::byte{0});
  std::byte* at = page.data();
  for (const LeafEntry& entry : node.entries) {
    if (entry) at = append_array(at, entry);
  }
  for (const Shared<ArrayNode>& child : node.children) {
    at = append(
        at, child ? PagePointerFormat{child->page, child->page_checksum} : PagePointerFormat{0, 0});
  }
}

Result<Catalogue> parse_body(std::span<const std::byte> body, const BodyBounds& bounds,
                             TreeSource* trees) {
  PERDURE_TRY_ASSIGN(auto head, parse_head(body, bounds));
  const SlotBodyFormat& h = head;
  Catalogue catalogue{h.version, h.parent, h.incarnation, h.committed_ns, h.allocated_end, {}, {}};
  Reader reader(body.subspan(sizeof h, h.body_bytes - sizeof h));
  PERDURE_TRY(parse_arrays(reader, h, bounds, trees, catalogue.arrays));
  for (std::uint32_t i = 0; i < h.scalars; ++i) {
    PERDURE_TRY_ASSIGN(auto scalar, parse_scalar(reader));
    catalogue.scalars.push_back(std::move(scalar));
  }
  PERDURE_TRY(check_names(catalogue));
  const Catalogue* const alone[] = {&catalogue};
  PERDURE_TRY(check_apart(alone, bounds.block_bytes));
  return catalogue;
}

Result<std::vector<ArrayEntry>> parse_leaf(std::span<const std::byte> page,
                                           const BodyBounds& bounds) {
  std::vector<ArrayEntry> entries;
  Reader reader(page);
  while (entries.size() < leaf_arrays_max && reader.has_array()) {
    PERDURE_TRY_ASSIGN(auto entry, parse_array(reader, bounds.device_bytes, bounds));
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) return damaged("there is no array in it");
  return entries;
}

std::array<PagePointerFormat, fan_out> parse_branch(std::span<const std::byte> page) {
  std::array<PagePointerFormat, fan_out> pointers;
  static_assert(sizeof pointers == catalogue_page_bytes);
  std::memcpy(pointers.data(), page.data(), sizeof pointers);
  return pointers;
}

Status check_apart(std::span<const Catalogue* const> versions, std::uint64_t block_bytes) {
  std::vector<Taken> taken = taken_by(versions, block_bytes);
  std::ranges::sort(taken, {}, &Taken::begin);
  std::size_t last = 0;  // of those so far, the one that ends last
  for (std::size_t i = 1; i < taken.size(); ++i) {
    const Taken& before = taken[last];
    const Taken& place = taken[i];
    const bool arrays = before.array != nullptr && place.array != nullptr;
    const bool apart = before.end <= place.begin;
    if (!apart && !(arrays && place.array->same_places(*before.array))) {
      return damaged(text_of(before) + " and " + text_of(place) + " have bytes in common");
    }
    if (place.end > before.end) last = i;
  }
  return Status::success();
}

}  // namespace perdure
