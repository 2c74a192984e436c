// SPDX-License-Identifier: BSD-3-Clause
//
// Catalogue pages: the tree of arrays on the medium, where a catalogue does not fit its slot.
//
// A page is 512 bytes of the file's extents, and holds one node of an array table (array_table.hpp,
// slot_format.hpp). A commit stores the nodes that have none yet to pages of their own, before the
// body that names the root: what changed since the version before, and the branches above it.
//
// Invariants
//   pool.G1  A page that a version which can still be gone back to reaches is never stored to.
//       Pages are stored to only when a node takes them, and a node keeps its page as long as it
//       lives; it lives as long as the table of such a version is kept (array_table.hpp, pool.T2;
//       retained.hpp). So what a version that is gone alone reached is free from the commit after
//       that on.
//   pool.G2  The pages of a version, and the body with the checksum of its root, are durable before
//       its state word: the fence of commit.cpp, 1, comes after both. A tree is whole or its
//       version is not believed, as each pointer has the checksum of the page that it leads to.
//   pool.G3  Pages of a version that was retracted were perhaps not made durable: its nodes lose
//       them.
//   pool.G4  Room for a tree of the largest version that is kept, once for each slot, is taken when
//       arrays are opened: so a commit never lacks it. Which pages are free is written nowhere; it
//       is found, like free extents, from what the versions reach.
//
// Threads: as the pool. Failure: reserve() for want of room on the device.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/status.hpp"
#include "pmem/device.hpp"
#include "pool/array_table.hpp"
#include "pool/catalogue.hpp"
#include "pool/extents.hpp"

namespace perdure {

class CataloguePages {
 public:
  CataloguePages(Device& device, std::shared_ptr<FreeSpace> space);

  // From now on this knows the pages of nodes that were read.
  void adopt(const ArrayTable& table);

  // Makes sure that there are so many pages, with those of nodes that live.
  Status reserve(std::uint64_t pages);
  bool has(std::uint64_t pages) const { return pages <= pages_; }

  // Gives each node of the table a page, stores what has none yet, and says where the root is.
  // Flushed; not fenced.
  Result<PagePointerFormat> store(const ArrayTable& table);
  // Whether the version of the last store() exists.
  void settle(bool exists);

 private:
  Status grow(std::uint64_t pages);
  Status store_node(const Shared<ArrayNode>& node);

  Device& device_;
  std::shared_ptr<FreeSpace> space_;
  std::shared_ptr<FreePages> free_;
  std::uint64_t pages_ = 0;                        // free ones, and those of nodes
  std::vector<std::unique_ptr<ExtentHold>> held_;  // what free_ was filled from
  std::vector<Shared<ArrayNode>> stored_;          // by the last store()
  CataloguePage scratch_;
};

// Reads trees, and trusts nothing. Versions that share pages share nodes.
class PageReader final : public TreeSource {
 public:
  PageReader(const Device& device, const BodyBounds& bounds) : device_(device), bounds_(bounds) {}
  Result<ArrayTable> read(const PagePointerFormat& root, std::uint32_t depth) override;

 private:
  Result<Shared<ArrayNode>> read_node(const PagePointerFormat& at, std::uint32_t height);
  Status fill(ArrayNode& node, std::uint64_t offset, std::span<const std::byte> page);

  const Device& device_;
  BodyBounds bounds_;
  std::unordered_map<std::uint64_t, Shared<ArrayNode>> known_;  // by offset
};

// Lets a file grow to `end`, and a little further, so that small extents do not each cost a call.
Status grow_device(Device& device, std::uint64_t end);

}  // namespace perdure
