// SPDX-License-Identifier: BSD-3-Clause
#include "pool_image.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checksum.hpp"
#include "memory_device.hpp"
#include "pmem/region_format.hpp"
#include "pool/job_record_format.hpp"
#include "pool/pool.hpp"
#include "pool/state_word.hpp"

namespace perdure::fuzz {
namespace {

constexpr Geometry small{1024, 64, 64, 3};

class RankOf final : public SoloGroup {
 public:
  explicit RankOf(const ImageRequest& request) : asked_(request) {}
  std::uint32_t rank() const override { return asked_.rank; }
  std::uint32_t ranks() const override { return asked_.ranks; }

 private:
  const ImageRequest& asked_;
};

// Takes values that should be right out of results.
void must(const Status& status) {
  PERDURE_ASSERT(status.ok());
}

template <typename Format>
bool load(const Bytes& image, std::uint64_t at, Format& format) {
  if (at > image.size() || sizeof format > image.size() - at) return false;
  std::memcpy(&format, image.data() + at, sizeof format);
  return true;
}

template <typename Format>
void store(Bytes& image, std::uint64_t at, const Format& format) {
  std::memcpy(image.data() + at, &format, sizeof format);
}

bool lies_in(const Bytes& image, std::uint64_t at, std::uint64_t count) {
  return at <= image.size() && count <= image.size() - at;
}

// A word whose tag is wrong gets a right one, of the state that its lowest bits choose.
std::uint64_t repaired_word(std::uint64_t word, const SlotBodyFormat& body, Repair how) {
  auto state = decode_state(word);
  if (!state) {
    constexpr SlotState states[] = {SlotState::complete, SlotState::open, SlotState::deleted,
                                    SlotState::unused};
    const std::uint64_t number = word >> 22;
    state = StateWord{states[word & 3], number >> 6, static_cast<std::uint32_t>(number & back_max)};
  }
  const std::uint64_t back = body.version - 1 - body.parent;
  if (how == Repair::lineage && state->state == SlotState::complete) {
    state->version = body.version & version_max;
    state->back = body.version == 0 || back > back_max ? 0 : static_cast<std::uint32_t>(back);
  }
  return encode_state(*state);
}

// Makes the tables of an array's copy, and their checksum, fit what the copy holds.
void repair_table(Bytes& image, ArrayEntry& entry, std::uint64_t block_bytes) {
  const std::uint64_t blocks = block_count(entry.size_bytes, block_bytes);
  std::vector<std::uint64_t> table(blocks);
  for (std::uint64_t block = 0; block < blocks; ++block) {
    const std::uint64_t begin = block * block_bytes;
    table[block] = crc64(image.data() + entry.copy_offset(entry.copy) + begin,
                         std::min(block_bytes, entry.size_bytes - begin));
  }
  if (blocks != 0) {
    std::memcpy(image.data() + entry.table_offset(entry.copy), table.data(), 8 * blocks);
  }
  entry.table_checksum = crc64(table.data(), 8 * blocks);
}

BodyBounds bounds_of(const Bytes& image, const RegionHeaderFormat& header) {
  return {.data_offset = header.data_offset,
          .device_bytes = image.size(),
          .block_bytes = header.block_bytes,
          .copies = static_cast<std::uint32_t>(header.slots)};
}

// Makes the arrays of a leaf right, as far as it can be read.
void repair_leaf(Bytes& image, std::uint64_t at, const RegionHeaderFormat& header) {
  auto parsed = parse_leaf({image.data() + at, catalogue_page_bytes}, bounds_of(image, header));
  if (!parsed.ok()) return;
  ArrayNode leaf(0);
  for (std::size_t i = 0; i < parsed.value().size(); ++i) {
    ArrayEntry& entry = parsed.value()[i];
    if (entry.shape.checksums) repair_table(image, entry, header.block_bytes);
    leaf.entries[i] = leaf_entry_of(std::move(entry));
  }
  CataloguePage page;
  build_page(leaf, page);
  std::memcpy(image.data() + at, page.data(), page.size());
}

// Makes the checksums of a tree right, of at most `pages` pages.
void repair_tree(Bytes& image, PagePointerFormat& pointer, std::uint32_t height,
                 const RegionHeaderFormat& header, int& pages) {
  if (--pages < 0 || !lies_in(image, pointer.offset, catalogue_page_bytes)) return;
  if (height == 0) {
    repair_leaf(image, pointer.offset, header);
  } else {
    for (std::size_t i = 0; i < fan_out; ++i) {
      const std::uint64_t at = pointer.offset + i * sizeof(PagePointerFormat);
      PagePointerFormat below;
      if (!load(image, at, below) || below.offset == 0) continue;
      repair_tree(image, below, height - 1, header, pages);
      store(image, at, below);
    }
  }
  pointer.checksum = crc64(image.data() + pointer.offset, catalogue_page_bytes);
}

void repair_body(Bytes& image, std::uint64_t at, const RegionHeaderFormat& header,
                 SlotBodyFormat& body) {
  const std::uint64_t room = header.slot_bytes - sizeof(SlotStateFormat);
  if (body.body_bytes < sizeof body || body.body_bytes > room) return;
  PagePointerFormat root;
  if (body.depth >= 1 && body.depth <= catalogue_depth_max &&
      body.body_bytes >= sizeof body + sizeof root && load(image, at + sizeof body, root)) {
    int pages = 1000;
    repair_tree(image, root, body.depth - 1U, header, pages);
    store(image, at + sizeof body, root);
  }
  body.checksum = crc64(image.data() + at + 8, body.body_bytes - 8);
  store(image, at, body);
  const std::span<std::byte> bytes(image.data() + at, room);
  auto parsed = parse_body(bytes, bounds_of(image, header));
  if (!parsed.ok()) return;
  ArrayTable& arrays = parsed.value().arrays;
  for (auto entry = arrays.begin(); entry != arrays.end(); ++entry) {
    ArrayEntry repaired = *entry;
    if (repaired.shape.checksums) repair_table(image, repaired, header.block_bytes);
    arrays.name_copy(entry.id(), repaired.copy, repaired.table_checksum);
  }
  build_body(parsed.value(), bytes);
}

void repair_slot(Bytes& image, std::uint64_t at, const RegionHeaderFormat& header, Repair how) {
  std::uint64_t word = 0;
  SlotBodyFormat body;
  const std::uint64_t body_at = at + sizeof(SlotStateFormat);
  if (!lies_in(image, at, header.slot_bytes) || !load(image, at, word) ||
      !load(image, body_at, body)) {
    return;
  }
  repair_body(image, body_at, header, body);
  store(image, at, repaired_word(word, body, how));
}

VersionedArray* add_array(Pool& pool, const std::string& name, const ArrayShape& shape,
                          bool compare = false) {
  ArrayOptions options;
  options.of_program = true;
  options.compare = compare;
  auto opened = pool.open_array(name, shape, options);
  PERDURE_ASSERT(opened.ok());
  return opened.value();
}

}  // namespace

Bytes make_image(const ImageRequest& request) {
  auto owned = std::make_unique<MemoryDevice>(std::span<const std::byte>{});
  MemoryDevice* device = owned.get();
  Geometry geometry = small;
  geometry.slots = request.slots;
  geometry.slot_bytes = request.slot_bytes;
  auto region = format_region(*device, {{{1, 2}}, "fuzz", request.rank, request.ranks}, geometry);
  PERDURE_ASSERT(region.ok());
  must(format_slots(*device, region.value()));
  RankOf group(request);
  auto pool = Pool::attach(std::move(owned), region.value(), group, {}).take();
  std::uint64_t iteration = 0;
  double residual = 1;
  must(pool->bind_scalar("iteration", &iteration, sizeof iteration));
  must(pool->bind_scalar("residual", &residual, sizeof residual));
  const bool checked = request.checksums;
  VersionedArray* arrays[] = {
      add_array(*pool, "u", {ArrayType::float64, ArrayMode::copy, checked, {3, 4}}),
      add_array(*pool, "p", {ArrayType::int32, ArrayMode::twin, checked, {30}}),
      add_array(*pool, "x", {ArrayType::byte, ArrayMode::log, checked, {100}}, true),
      add_array(*pool, "s", {ArrayType::int64, ArrayMode::flush, false, {4}}),
      add_array(*pool, "e", {ArrayType::int32, ArrayMode::copy, checked, {2, 0}})};
  VersionedArray* gone = nullptr;
  if (request.sizes) gone = add_array(*pool, "g", {ArrayType::byte, ArrayMode::copy, checked, {9}});
  PERDURE_ASSERT(pool->restart().ok());
  for (iteration = 1; iteration <= request.commits; ++iteration) {
    for (VersionedArray* array : arrays) {
      std::memset(array->working(), static_cast<int>(iteration), array->size_bytes());
    }
    PERDURE_ASSERT(pool->commit().ok());
    if (!request.sizes) continue;
    if (gone != nullptr) must(pool->close_array(std::exchange(gone, nullptr), true));
    must(pool->resize_array(*arrays[0], {3 + iteration * 40 % 97, 4}, nullptr));
    must(pool->resize_array(*arrays[1], {iteration * 25 % 70}, nullptr));
    must(pool->resize_array(*arrays[2], {iteration % 2 == 0 ? 700U : 10U}, nullptr));
  }
  if (request.restores) {
    must(pool->restore(pool->versions().back().version));
    PERDURE_ASSERT(pool->commit().ok());
  }
  return {device->image().begin(), device->image().end()};
}

Bytes make_job_record(std::uint32_t ranks) {
  JobRecordFormat format{};
  format.magic = job_record_magic;
  format.format_version = job_record_version;
  format.ranks = ranks;
  format.job_id[0] = 1;
  format.job_id[1] = 2;
  std::memcpy(format.job_name, "fuzz", 4);
  Bytes record(sizeof format);
  std::memcpy(record.data(), &format, sizeof format);
  repair_job_record(record);
  return record;
}

void repair_image(Bytes& image, Repair how) {
  RegionHeaderFormat header;
  if (how == Repair::nothing || !load(image, 0, header)) return;
  header.magic = region_magic;
  header.checksum = crc64(&header, offsetof(RegionHeaderFormat, checksum));
  store(image, 0, header);
  const bool possible = header.slot_bytes >= 256 && header.slot_bytes <= image.size();
  if (!possible || header.block_bytes == 0) return;
  for (std::uint64_t slot = 0; slot < std::min<std::uint64_t>(header.slots, slots_max); ++slot) {
    repair_slot(image, header.slot_offset + slot * header.slot_bytes, header, how);
  }
}

void repair_job_record(Bytes& record) {
  JobRecordFormat format;
  if (!load(record, 0, format)) return;
  format.magic = job_record_magic;
  format.checksum = crc64(&format, offsetof(JobRecordFormat, checksum));
  store(record, 0, format);
}

}  // namespace perdure::fuzz
