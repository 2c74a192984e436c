// SPDX-License-Identifier: BSD-3-Clause
//
// Catalogue: the arrays and scalars of one version, as values. Pure: parsing and building the body
// of a slot and the pages of a tree of arrays, with no device.
//
// What is parsed comes from a medium and is not trusted: the checksum, every number, count, offset,
// name and extent is checked before a Catalogue is made. Its arrays have different names, and no
// byte in common.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "pool/array_table.hpp"
#include "pool/scalar_type.hpp"
#include "pool/slot_format.hpp"

namespace perdure {

struct ScalarEntry {
  std::string name;
  std::vector<std::byte> bytes;
  ScalarType type = ScalarType::none;
};

// Where an array of this rank lies in one that all ranks have together; in elements.
struct GlobalBox {
  std::vector<std::uint64_t> global_shape;
  std::vector<std::uint64_t> first;
  bool operator==(const GlobalBox&) const = default;
};
using GlobalBoxes = std::map<std::pair<std::string, std::uint32_t>, GlobalBox>;  // by name and part

struct Catalogue {
  std::uint64_t version = 0;
  std::uint64_t parent = 0;  // the version that it was made from; 0 of version 0
  std::uint64_t incarnation = 0;
  std::uint64_t committed_ns = 0;
  std::uint64_t allocated_end = 0;
  ArrayTable arrays;
  std::vector<ScalarEntry> scalars;

  std::optional<ArrayEntry> find_array(const std::string& name, std::uint32_t part = 0) const;
  const ScalarEntry* find_scalar(const std::string& name) const;
};

// Bytes that the body takes if the arrays are in it, or in a tree.
std::size_t body_bytes(const Catalogue& catalogue);
std::size_t body_bytes_with_tree(const Catalogue& catalogue);

// Writes the body, checksum included, to `body` (at least as long as these say). `root`: where the
// tree is; null: the arrays are in the body.
void build_body(const Catalogue& catalogue, std::span<std::byte> body,
                const PagePointerFormat* root = nullptr);

// The page of a node, whose children have pages.
using CataloguePage = std::array<std::byte, catalogue_page_bytes>;
void build_page(const ArrayNode& node, CataloguePage& page);

// Bounds that every offset of a body must respect.
struct BodyBounds {
  std::uint64_t data_offset = 0;
  std::uint64_t device_bytes = 0;
  std::uint64_t block_bytes = 1;
  std::uint32_t copies = 2;  // of an array that has versions and no spare copy
  std::uint64_t align_bytes = 1;
};

// Where trees of arrays are read (catalogue_pages.hpp).
class TreeSource {
 public:
  TreeSource() = default;
  TreeSource(const TreeSource&) = delete;
  TreeSource& operator=(const TreeSource&) = delete;
  virtual ~TreeSource() = default;
  virtual Result<ArrayTable> read(const PagePointerFormat& root, std::uint32_t depth) = 0;
};

// Parses a body; Code::damaged with the reason. `trees`: null where there can be none.
Result<Catalogue> parse_body(std::span<const std::byte> body, const BodyBounds& bounds,
                             TreeSource* trees = nullptr);

// What a page says, if it is a leaf, or a branch.
Result<std::vector<ArrayEntry>> parse_leaf(std::span<const std::byte> page,
                                           const BodyBounds& bounds);
std::array<PagePointerFormat, fan_out> parse_branch(std::span<const std::byte> page);

// Versions that are kept together have no byte in common but those of the same array, or page of
// the tree. Code::damaged names those that do.
Status check_apart(std::span<const Catalogue* const> versions, std::uint64_t block_bytes);

}  // namespace perdure
