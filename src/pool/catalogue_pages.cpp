// SPDX-License-Identifier: BSD-3-Clause
#include "pool/catalogue_pages.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "pmem/media_guard.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t grow_bytes_max = std::uint64_t{1} << 20;
constexpr std::uint64_t grow_pages_max = grow_bytes_max / catalogue_page_bytes;

Status damaged_page(std::uint64_t offset, const std::string& what) {
  return Status(Code::damaged, "the catalogue's page at byte ", offset, " is damaged: ", what);
}

}  // namespace

Status grow_device(Device& device, std::uint64_t end) {
  const std::uint64_t size = device.size_bytes();
  if (end <= size) return Status::success();
  const std::uint64_t further = std::min(size / 8, grow_bytes_max);
  if (end - size < further && device.resize(size + further).ok()) return Status::success();
  return device.resize(end);
}

CataloguePages::CataloguePages(Device& device, std::shared_ptr<FreeSpace> space)
    : device_(device), space_(std::move(space)), free_(std::make_shared<FreePages>()) {}

void CataloguePages::adopt(const ArrayTable& table) {
  table.for_each_new_node([this](ArrayNode& node) {
    if (node.page == 0 || node.pages) return false;
    node.pages = free_;
    ++pages_;
    return true;
  });
}

// In steps, so that a tree that grows page by page costs few of them.
Status CataloguePages::reserve(std::uint64_t pages) {
  if (pages <= pages_) return Status::success();
  const std::uint64_t step = std::min(pages_ / 8, grow_pages_max);
  if (pages_ + step > pages && grow(step).ok()) return Status::success();
  return grow(pages - pages_);
}

// What is free between extents first, as when a pool was opened that had these pages before.
Status CataloguePages::grow(std::uint64_t pages) {
  while (pages != 0) {
    const Extent extent = space_->take_units(pages * catalogue_page_bytes, catalogue_page_bytes);
    auto hold = std::make_unique<ExtentHold>(space_, extent);
    PERDURE_TRY(grow_device(device_, extent.end));
    held_.push_back(std::move(hold));
    for (std::uint64_t at = extent.end; at != extent.begin;) {
      free_->push_back(at -= catalogue_page_bytes);
    }
    const std::uint64_t taken = (extent.end - extent.begin) / catalogue_page_bytes;
    pages_ += taken;
    pages -= taken;
  }
  return Status::success();
}

Result<PagePointerFormat> CataloguePages::store(const ArrayTable& table) {
  PERDURE_TRY(store_node(table.root()));
  return PagePointerFormat{table.root()->page, table.root()->page_checksum};
}

Status CataloguePages::store_node(const Shared<ArrayNode>& node) {
  if (node->page != 0) return Status::success();
  for (const Shared<ArrayNode>& child : node->children) {
    if (child) PERDURE_TRY(store_node(child));
  }
  if (free_->empty()) PERDURE_TRY(grow(1));  // pool.G4: never
  build_page(*node, scratch_);
  node->page = free_->back();
  node->page_checksum = crc64(scratch_.data(), scratch_.size());
  node->pages = free_;
  free_->pop_back();
  stored_.push_back(node);
  device_.copy(node->page, scratch_.data(), scratch_.size());
  return Status::success();
}

void CataloguePages::settle(bool exists) {
  if (!exists) {
    for (const Shared<ArrayNode>& node : stored_) free_->push_back(std::exchange(node->page, 0));
  }
  stored_.clear();
}

Result<ArrayTable> PageReader::read(const PagePointerFormat& root, std::uint32_t depth) {
  PERDURE_TRY_ASSIGN(auto node, read_node(root, depth - 1));
  return ArrayTable(std::move(node));
}

Result<Shared<ArrayNode>> PageReader::read_node(const PagePointerFormat& at, std::uint32_t height) {
  const bool inside = at.offset % catalogue_page_bytes == 0 && at.offset >= bounds_.data_offset &&
                      at.offset <= bounds_.device_bytes &&
                      bounds_.device_bytes - at.offset >= catalogue_page_bytes;
  if (!inside) return damaged_page(at.offset, "it lies outside of the pool");
  if (const auto known = known_.find(at.offset); known != known_.end()) {
    const ArrayNode& node = *known->second;
    if (node.page_checksum == at.checksum && node.height == height) return known->second;
    return damaged_page(at.offset, "two pointers lead to it and do not agree");
  }
  const std::byte* bytes = device_.base() + at.offset;
  if (first_unreadable(bytes, catalogue_page_bytes)) {
    return damaged_page(at.offset, "it can't be read");
  }
  const std::span<const std::byte> page(bytes, catalogue_page_bytes);
  if (crc64(page.data(), page.size()) != at.checksum) {
    return damaged_page(at.offset, "its checksum is wrong");
  }
  Shared<ArrayNode> node(new ArrayNode(height));
  PERDURE_TRY(fill(*node, at.offset, page));
  node->page = at.offset;
  node->page_checksum = at.checksum;
  known_.emplace(at.offset, node);
  return node;
}

Status PageReader::fill(ArrayNode& node, std::uint64_t offset, std::span<const std::byte> page) {
  if (node.height == 0) {
    auto parsed = parse_leaf(page, bounds_);
    if (!parsed.ok()) return damaged_page(offset, parsed.status().message());
    std::vector<ArrayEntry>& entries = parsed.value();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      node.entries[i] = leaf_entry_of(std::move(entries[i]));
    }
  } else {
    const auto pointers = parse_branch(page);
    for (std::size_t i = 0; i < fan_out; ++i) {
      if (pointers[i].offset == 0) continue;
      PERDURE_TRY_ASSIGN(node.children[i], read_node(pointers[i], node.height - 1));
    }
  }
  node.sum_up();
  return node.arrays != 0 ? Status::success() : damaged_page(offset, "it leads to no array");
}

}  // namespace perdure
