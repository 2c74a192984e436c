// SPDX-License-Identifier: BSD-3-Clause
#include "pool/array_table.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace perdure {
namespace {

constexpr ArrayId ids_of_a_leaf = 4;
static_assert(leaf_arrays_max <= ids_of_a_leaf);

// Ids below a node of this height.
ArrayId span_of(std::uint32_t height) {
  ArrayId span = ids_of_a_leaf;
  for (std::uint32_t i = 0; i < height; ++i) span *= fan_out;
  return span;
}

// The first entry whose id is not below `from`; null: there is none.
const LeafEntry* first_from(const ArrayNode& node, ArrayId from, ArrayId& found) {
  if (node.height == 0) {
    for (ArrayId i = from; i < leaf_arrays_max; ++i) {
      if (!node.entries[i]) continue;
      found += i;
      return &node.entries[i];
    }
    return nullptr;
  }
  const ArrayId span = span_of(node.height - 1);
  for (ArrayId i = from / span; i < fan_out; ++i) {
    if (!node.children[i]) continue;
    ArrayId below = 0;
    const LeafEntry* entry =
        first_from(*node.children[i], i == from / span ? from % span : 0, below);
    if (entry == nullptr) continue;
    found += i * span + below;
    return entry;
  }
  return nullptr;
}

// pool.T1: makes the node at `at` one that can be changed.
ArrayNode& own(Shared<ArrayNode>& at) {
  if (!at.alone() || at->page != 0) at = Shared<ArrayNode>(new ArrayNode(*at));
  return *at;
}

ArrayId insert_below(Shared<ArrayNode>& at, LeafEntry& entry, std::uint64_t bytes) {
  ArrayNode& node = own(at);
  ArrayId id = 0;
  if (node.height == 0) {
    while (node.entries[id]) ++id;
    node.entries[id] = std::move(entry);
  } else {
    std::size_t child = 0;
    while (node.children[child] && node.children[child]->room < bytes) ++child;
    if (!node.children[child]) {
      node.children[child] = Shared<ArrayNode>(new ArrayNode(node.height - 1));
    }
    id = child * span_of(node.height - 1) + insert_below(node.children[child], entry, bytes);
  }
  node.sum_up();
  return id;
}

// False: the last leaf below it has no room, and none can follow it.
bool append_below(Shared<ArrayNode>& at, LeafEntry& entry, std::uint64_t bytes) {
  ArrayNode& node = own(at);
  if (node.height == 0) {
    std::size_t place = leaf_arrays_max;
    while (place != 0 && !node.entries[place - 1]) --place;
    if (place == leaf_arrays_max || node.room < bytes) return false;
    node.entries[place] = std::move(entry);
    node.sum_up();
    return true;
  }
  std::size_t child = fan_out;
  while (child != 0 && !node.children[child - 1]) --child;
  bool done = child != 0 && append_below(node.children[child - 1], entry, bytes);
  if (!done && child < fan_out) {
    node.children[child] = Shared<ArrayNode>(new ArrayNode(node.height - 1));
    done = append_below(node.children[child], entry, bytes);
  }
  if (done) node.sum_up();
  return done;
}

// One higher: the root so far is the first node below the new one.
void grow(Shared<ArrayNode>& root) {
  Shared<ArrayNode> above(new ArrayNode(root->height + 1));
  above->children[0] = std::move(root);
  above->sum_up();
  root = std::move(above);
}

void erase_below(Shared<ArrayNode>& at, ArrayId id) {
  ArrayNode& node = own(at);
  if (node.height == 0) {
    node.entries[id] = {};
  } else {
    const ArrayId span = span_of(node.height - 1);
    erase_below(node.children[id / span], id % span);
  }
  node.sum_up();
  if (node.arrays == 0) at = {};
}

void visit(const Shared<ArrayNode>& at, const std::function<bool(ArrayNode&)>& is_new) {
  if (!is_new(*at)) return;
  for (const Shared<ArrayNode>& child : at->children) {
    if (child) visit(child, is_new);
  }
}

}  // namespace

std::uint64_t record_bytes_of(const ArrayEntry& entry) {
  return sizeof(ArrayFormat) + (entry.name.size() + 7) / 8 * 8;
}

ArrayEntry LeafEntry::whole() const {
  ArrayEntry entry = shared->entry;
  entry.copy = copy;
  entry.table_checksum = table_checksum;
  return entry;
}

LeafEntry leaf_entry_of(ArrayEntry entry) {
  const std::uint32_t copy = entry.copy;
  const std::uint64_t table_checksum = entry.table_checksum;
  return {Shared<SharedEntry>(new SharedEntry{0, std::move(entry)}), copy, table_checksum};
}

ArrayNode::ArrayNode(std::uint32_t at_height)
    : height(at_height), children(at_height == 0 ? 0 : fan_out) {}

ArrayNode::ArrayNode(const ArrayNode& other)
    : height(other.height),
      arrays(other.arrays),
      nodes(other.nodes),
      record_bytes(other.record_bytes),
      room(other.room),
      entries(other.entries),
      children(other.children) {}

void ArrayNode::sum_up() {
  arrays = record_bytes = 0;
  nodes = 1;
  if (height == 0) {
    for (const LeafEntry& entry : entries) {
      if (!entry) continue;
      ++arrays;
      record_bytes += record_bytes_of(entry.shared->entry);
    }
    room = arrays == leaf_arrays_max ? 0 : catalogue_page_bytes - record_bytes;
    return;
  }
  room = 0;
  for (const Shared<ArrayNode>& child : children) {
    room = std::max(room, child ? child->room : catalogue_page_bytes);
    if (!child) continue;
    arrays += child->arrays;
    nodes += child->nodes;
    record_bytes += child->record_bytes;
  }
}

ArrayTable::ArrayTable(std::initializer_list<ArrayEntry> entries) {
  for (const ArrayEntry& entry : entries) append(entry);
}

const LeafEntry& ArrayTable::leaf_entry(ArrayId id) const {
  const ArrayNode* node = root_.get();
  while (node->height != 0) {
    const ArrayId span = span_of(node->height - 1);
    node = node->children[id / span].get();
    id %= span;
  }
  return node->entries[id];
}

ArrayId ArrayTable::insert(ArrayEntry entry) {
  const std::uint64_t bytes = record_bytes_of(entry);
  PERDURE_ASSERT(bytes <= catalogue_page_bytes);
  if (!root_) root_ = Shared<ArrayNode>(new ArrayNode(0));
  if (root_->room < bytes) grow(root_);
  LeafEntry made = leaf_entry_of(std::move(entry));
  return insert_below(root_, made, bytes);
}

void ArrayTable::append(ArrayEntry entry) {
  const std::uint64_t bytes = record_bytes_of(entry);
  PERDURE_ASSERT(bytes <= catalogue_page_bytes);
  if (!root_) root_ = Shared<ArrayNode>(new ArrayNode(0));
  LeafEntry made = leaf_entry_of(std::move(entry));
  while (!append_below(root_, made, bytes)) grow(root_);
}

void ArrayTable::erase(ArrayId id) {
  erase_below(root_, id);
  const auto only_first = [](const ArrayNode& node) {
    return node.height != 0 && node.children[0] && node.children[0]->arrays == node.arrays;
  };
  while (root_ && only_first(*root_)) root_ = Shared<ArrayNode>(root_->children[0]);
}

const LeafEntry* ArrayTable::find(ArrayId id) const {
  ArrayId found = 0;
  if (!root_ || id >= span_of(root_->height)) return nullptr;
  const LeafEntry* const entry = first_from(*root_, id, found);
  return found == id ? entry : nullptr;
}

void ArrayTable::replace(ArrayId id, LeafEntry entry) {
  Shared<ArrayNode>* at = &root_;
  ArrayNode* node = &own(*at);
  while (node->height != 0) {
    const ArrayId span = span_of(node->height - 1);
    at = &node->children[id / span];
    id %= span;
    node = &own(*at);
  }
  PERDURE_ASSERT(record_bytes_of(entry.shared->entry) ==
                 record_bytes_of(node->entries[id].shared->entry));
  node->entries[id] = std::move(entry);
}

void ArrayTable::name_copy(ArrayId id, std::uint32_t copy, std::uint64_t table_checksum) {
  LeafEntry entry = leaf_entry(id);
  if (entry.copy == copy && entry.table_checksum == table_checksum) return;
  entry.copy = copy;
  entry.table_checksum = table_checksum;
  replace(id, std::move(entry));
}

ArrayEntry ArrayTable::operator[](std::size_t index) const {
  const ArrayNode* node = root_.get();
  while (node->height != 0) {
    const auto child = std::ranges::find_if(node->children, [&](auto& c) {
      if (!c) return false;
      if (index < c->arrays) return true;
      index -= c->arrays;
      return false;
    });
    node = child->get();
  }
  const auto* const entry =
      std::ranges::find_if(node->entries, [&](auto& e) { return e && index-- == 0; });
  PERDURE_ASSERT(entry != node->entries.end());
  return entry->whole();
}

ArrayTable::Iterator ArrayTable::begin() const {
  return {root_.get(), 0};
}

ArrayTable::Iterator ArrayTable::end() const {
  return {nullptr, 0};
}

void ArrayTable::for_each_new_node(const std::function<bool(ArrayNode&)>& is_new) const {
  if (root_) visit(root_, is_new);
}

void ArrayTable::Iterator::find(ArrayId from) {
  id_ = 0;
  entry_ = nullptr;
  if (root_ != nullptr && from < span_of(root_->height)) entry_ = first_from(*root_, from, id_);
}

}  // namespace perdure
