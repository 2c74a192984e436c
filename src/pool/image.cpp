// SPDX-License-Identifier: BSD-3-Clause
#include "pool/image.hpp"

#include <algorithm>
#include <cstring>

#include "pmem/file_device.hpp"
#include "pmem/region_format.hpp"
#include "pool/image_format.hpp"
#include "pool/slots.hpp"

namespace perdure {
namespace {

std::uint64_t padded(std::uint64_t bytes) {
  return align_up(bytes, image_align_bytes);
}

std::uint64_t table_bytes(const ArrayEntry& entry, std::uint64_t bytes_of_block) {
  return entry.shape.checksums ? 8 * block_count(entry.size_bytes, bytes_of_block) : 0;
}

template <typename T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

Status damaged(const std::string& what) {
  return Status(Code::damaged, "a version's image is damaged: ", what);
}

// Reads an image of `size_bytes` from its beginning, one padded item after the other, of which the
// first bytes are in `front`.
class ImageReader {
 public:
  ImageReader(std::span<const std::byte> front, std::uint64_t size_bytes)
      : front_(front), size_bytes_(size_bytes) {}

  std::uint64_t offset() const { return offset_; }
  // How many bytes of the image were taken, or should have been.
  std::uint64_t taken_bytes() const { return taken_bytes_; }
  Result<std::span<const std::byte>> take(std::uint64_t bytes) {
    const std::uint64_t begin = offset_;
    PERDURE_TRY(skip(bytes));
    taken_bytes_ = begin + bytes;
    if (taken_bytes_ > front_.size()) return damaged("its front is cut");
    return front_.subspan(begin, bytes);
  }
  Status skip(std::uint64_t bytes) {
    if (bytes > size_bytes_ - offset_) {
      return damaged("it ends at byte " + std::to_string(size_bytes_) + ", before " +
                     std::to_string(bytes) + " bytes from " + std::to_string(offset_) + " on");
    }
    offset_ = std::min<std::uint64_t>(offset_ + padded(bytes), size_bytes_);
    return Status::success();
  }
  template <typename T>
  Result<T> take() {
    PERDURE_TRY_ASSIGN(const auto bytes, take(sizeof(T)));
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

 private:
  std::span<const std::byte> front_;
  std::uint64_t size_bytes_;
  std::uint64_t offset_ = 0;
  std::uint64_t taken_bytes_ = 0;
};

Result<Geometry> read_head(const ImageHeadFormat& head) {
  const bool sane =
      head.magic == image_magic && head.slots >= 2 && head.slots <= slots_max &&
      head.slot_bytes <= slot_bytes_max && head.slot_bytes >= 256 && head.slot_bytes % 8 == 0 &&
      head.align_bytes >= 8 && (head.align_bytes & (head.align_bytes - 1)) == 0 &&
      head.align_bytes <= (1U << 30) && head.block_bytes >= 8 && head.block_bytes <= (1U << 30);
  if (!sane) return damaged("its head can't be right");
  return Geometry{head.slot_bytes, head.align_bytes, head.block_bytes, head.slots};
}

struct ShareLengths {
  std::string name;
  std::span<const std::byte> head;
  std::uint64_t bytes = 0;
};

Result<std::vector<ShareLengths>> read_share_heads(ImageReader& reader, std::uint64_t count) {
  if (count > image_shares_max) return damaged("it has too many shares of companions");
  std::vector<ShareLengths> shares;
  for (std::uint64_t i = 0; i < count; ++i) {
    PERDURE_TRY_ASSIGN(const auto format, reader.take<ImageShareFormat>());
    PERDURE_TRY_ASSIGN(const auto name, reader.take(format.name_bytes));
    PERDURE_TRY_ASSIGN(const auto head, reader.take(format.head_bytes));
    shares.push_back(
        {std::string(reinterpret_cast<const char*>(name.data()), name.size()), head, format.bytes});
  }
  return shares;
}

// Where the data of a file of this geometry begin: as format_region() lays it out.
std::uint64_t data_offset_of(const Geometry& geometry) {
  const std::uint64_t slots = align_up(sizeof(RegionHeaderFormat), geometry.align_bytes);
  return align_up(slots + geometry.slots * geometry.slot_bytes, geometry.align_bytes);
}

// The states of a file with the image's version and nothing else (commit.cpp, 0).
void store_other_states(Slots& slots, std::uint64_t version) {
  for (std::uint32_t slot = 0; slot < slots.count(); ++slot) {
    if (slot == slots.slot_of(version) || slot == slots.slot_of(version + 1)) continue;
    slots.store_state({SlotState::unused, slot});
  }
  slots.store_state(state_of(SlotState::open, version + 1, version));
}

// The tree of arrays that the slot has no room for comes after the arrays, or between them.
Status store_body(Device& device, Slots& slots, const Region& region, Catalogue& catalogue) {
  std::vector<Extent> used;
  for (const ArrayEntry& entry : catalogue.arrays) {
    used.push_back({entry.first_offset, entry.end_offset(region.geometry.block_bytes)});
  }
  CataloguePages pages(device, std::make_shared<FreeSpace>(region.data_offset, std::move(used)));
  if (!slots.has_room_for_arrays(catalogue)) {
    PERDURE_TRY(pages.reserve(catalogue.arrays.nodes()));
    catalogue.allocated_end = device.size_bytes();
  }
  return slots.store_body(catalogue, &pages);
}

Status fill_file(Device& device, const Region& region, std::span<const std::byte> image,
                 const ImageContents& contents) {
  Catalogue catalogue = contents.catalogue;
  catalogue.incarnation = std::max(catalogue.incarnation, region.identity.generation);
  std::size_t next = 0;
  for (const ArrayEntry& entry : catalogue.arrays) {
    const std::size_t place = next++;
    device.copy(entry.copy_offset(entry.copy), image.data() + contents.copy_offsets[place],
                entry.size_bytes);
    if (!entry.shape.checksums) continue;
    device.copy(entry.table_offset(entry.copy), image.data() + contents.table_offsets[place],
                table_bytes(entry, contents.geometry.block_bytes));
  }
  Slots slots(device, region);
  PERDURE_TRY(store_body(device, slots, region, catalogue));
  store_other_states(slots, catalogue.version);
  PERDURE_TRY(device.fence());
  slots.store_state(state_of(SlotState::complete, catalogue.version, catalogue.parent));
  return device.fence();
}

}  // namespace

void Image::add(std::span<const std::byte> bytes) {
  pieces_.push_back({size_bytes_, bytes});
  size_bytes_ += padded(bytes.size());
}

Result<Image> Image::of(const Device& device, const Geometry& geometry, const Catalogue& catalogue,
                        std::vector<ImageShare> shares) {
  for (const ArrayEntry& entry : catalogue.arrays) {
    if (entry.shape.mode != ArrayMode::flush) continue;
    return Status(Code::unsupported, "array ", quoted(entry.name),
                  " is in flush mode, which has no versions, so the pool can't be kept on other "
                  "levels; use another mode");
  }
  ImageHeadFormat head{};
  head.magic = image_magic;
  head.body_bytes = body_bytes(catalogue);
  head.slot_bytes = geometry.slot_bytes;
  head.block_bytes = geometry.block_bytes;
  head.align_bytes = geometry.align_bytes;
  head.slots = geometry.slots;
  head.shares = shares.size();

  Image image;
  image.made_.push_back(bytes_of(head));
  std::vector<std::byte> body(head.body_bytes);
  build_body(catalogue, body);
  image.made_.push_back(std::move(body));
  for (const ImageShare& each : shares) {
    const CompanionShare& share = each.share;
    image.made_.push_back(
        bytes_of(ImageShareFormat{share.name.size(), share.head.size(), share.bytes}));
    const auto* const name = reinterpret_cast<const std::byte*>(share.name.data());
    image.made_.emplace_back(name, name + share.name.size());
    image.made_.push_back(share.head);
  }
  for (const auto& bytes : image.made_) image.add(bytes);
  for (const ArrayEntry& entry : catalogue.arrays) {
    image.copy_offsets_.push_back(image.size_bytes_);
    image.add({device.base() + entry.copy_offset(entry.copy), entry.size_bytes});
    if (!entry.shape.checksums) continue;
    image.add(
        {device.base() + entry.table_offset(entry.copy), table_bytes(entry, geometry.block_bytes)});
  }
  for (ImageShare& share : shares) {
    const std::uint64_t bytes = share.share.bytes;
    image.shares_.push_back({image.size_bytes_, std::move(share)});
    image.size_bytes_ += padded(bytes);
  }
  return image;
}

// The last one that does not begin after `offset`.
std::vector<Image::Piece>::const_iterator Image::piece_at(std::uint64_t offset) const {
  const auto next = std::ranges::upper_bound(pieces_, offset, {}, &Piece::offset);
  return next == pieces_.begin() ? next : next - 1;
}

std::span<const std::byte> Image::in_place(std::uint64_t offset, std::uint64_t count) const {
  const auto piece = piece_at(offset);
  if (piece == pieces_.end()) return {};
  const std::uint64_t within = offset - piece->offset;
  const auto& bytes = piece->bytes;
  if (within > bytes.size() || count > bytes.size() - within) return {};
  return bytes.subspan(within, count);
}

Status Image::read(std::uint64_t offset, std::span<std::byte> out) const {
  std::ranges::fill(out, std::byte{0});
  const std::uint64_t end = offset + out.size();
  for (auto piece = piece_at(offset); piece != pieces_.end() && piece->offset < end; ++piece) {
    const std::uint64_t begin = std::max(offset, piece->offset);
    const std::uint64_t stop = std::min<std::uint64_t>(end, piece->offset + piece->bytes.size());
    if (begin >= stop) continue;
    std::memcpy(out.data() + (begin - offset), piece->bytes.data() + (begin - piece->offset),
                stop - begin);
  }
  for (const auto& [at, share] : shares_) {
    const std::uint64_t begin = std::max(offset, at);
    const std::uint64_t stop = std::min(end, at + share.share.bytes);
    if (begin >= stop) continue;
    PERDURE_TRY(share.read(begin - at, out.subspan(begin - offset, stop - begin)));
  }
  return Status::success();
}

namespace {

// Of the shares the bytes, if the whole image is in `front`.
Result<ImageContents> parse(ImageReader& reader, bool whole) {
  ImageContents contents;
  PERDURE_TRY_ASSIGN(const auto head, reader.take<ImageHeadFormat>());
  PERDURE_TRY_ASSIGN(contents.geometry, read_head(head));
  const Geometry& geometry = contents.geometry;
  PERDURE_TRY_ASSIGN(const auto body, reader.take(head.body_bytes));
  PERDURE_TRY_ASSIGN(
      contents.catalogue,
      parse_body(body, {data_offset_of(geometry), std::uint64_t{1} << 60, geometry.block_bytes,
                        geometry.slots, geometry.align_bytes}));
  if (contents.catalogue.version == 0) return damaged("it is that of version 0");
  PERDURE_TRY_ASSIGN(const auto shares, read_share_heads(reader, head.shares));
  for (const ArrayEntry& entry : contents.catalogue.arrays) {
    if (entry.shape.mode == ArrayMode::flush) return damaged("it has an array in flush mode");
    contents.copy_offsets.push_back(reader.offset());
    PERDURE_TRY(reader.skip(entry.size_bytes));
    const std::uint64_t table = table_bytes(entry, geometry.block_bytes);
    contents.table_offsets.push_back(table == 0 ? 0 : reader.offset());
    PERDURE_TRY(reader.skip(table));
  }
  for (const ShareLengths& share : shares) {
    HeldShare& held = contents.shares[share.name];
    held.head = share.head;
    if (!whole) {
      PERDURE_TRY(reader.skip(share.bytes));
      continue;
    }
    PERDURE_TRY_ASSIGN(held.bytes, reader.take(share.bytes));
  }
  return contents;
}

}  // namespace

Result<ImageContents> parse_image(std::span<const std::byte> image) {
  ImageReader reader(image, image.size());
  return parse(reader, true);
}

Result<ImageContents> parse_image_front(std::uint64_t image_bytes, const ReadImage& read,
                                        std::vector<std::byte>& front) {
  constexpr std::uint64_t first_bytes = std::uint64_t{1} << 16;
  for (std::uint64_t needed = std::min(first_bytes, image_bytes);;) {
    const std::uint64_t had = front.size();
    front.resize(needed);
    PERDURE_TRY(read(had, std::span(front).subspan(had)));
    ImageReader reader(front, image_bytes);
    auto contents = parse(reader, false);
    needed = reader.taken_bytes();
    if (contents.ok() || needed <= front.size()) return contents;
  }
}

Status make_file_of_image(const std::string& path, const RegionIdentity& identity,
                          std::span<const std::byte> image, Trust trust) {
  PERDURE_TRY_ASSIGN(const auto contents, parse_image(image));
  PERDURE_TRY_ASSIGN(auto device, open_file_device(path, {.create = true, .trust = trust}));
  RegionIdentity made = identity;
  made.image_incarnation = contents.catalogue.incarnation;
  made.image_version = contents.catalogue.version;
  made.image_shares = contents.shares.size();
  PERDURE_TRY_ASSIGN(const auto region, format_region(*device, made, contents.geometry));
  PERDURE_TRY(device->resize(std::max(contents.catalogue.allocated_end, region.data_offset)));
  return fill_file(*device, region, image, contents);
}

}  // namespace perdure
