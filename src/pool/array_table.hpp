// SPDX-License-Identifier: BSD-3-Clause
//
// Array table: the entries of a version's arrays, as a tree that versions share.
//
// To copy a table is to copy a pointer, and to change an entry is to copy the nodes on its path, so
// what a commit costs depends on what changed and not on how many arrays there are. On the medium a
// table that does not fit its slot is the same tree, a page for each node (catalogue_pages.hpp).
//
//   leaf    up to leaf_arrays_max entries, whose records fit a page: what is the same in all
//           versions of an array, which they share, and which copy holds this one
//   branch  up to fan_out nodes that are lower by one
//
// Invariants
//   pool.T1  A node that more than one table, or node, refers to is never changed; nor is one that
//       has a page, as a version on the medium may have it.
//   pool.T2  A node lives as long as a table refers to it. When it goes, its page is free.
//   pool.T3  No leaf and no branch is empty, and every leaf is at height 0.
//
// Threads: as the pool; nodes are counted without atomics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "pool/array_entry.hpp"
#include "pool/slot_format.hpp"

namespace perdure {

constexpr std::uint32_t leaf_arrays_max = 3;
constexpr std::uint32_t fan_out = catalogue_page_bytes / sizeof(PagePointerFormat);

// A pointer to what counts its own pointers.
template <typename T>
class Shared {
 public:
  Shared() = default;
  explicit Shared(T* taken) : at_(taken) { ++at_->references; }
  Shared(const Shared& other) : at_(other.at_) {
    if (at_ != nullptr) ++at_->references;
  }
  Shared(Shared&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }
  ~Shared() {
    if (at_ != nullptr && --at_->references == 0) delete at_;
  }
  T* get() const { return at_; }
  T* operator->() const { return at_; }
  T& operator*() const { return *at_; }
  explicit operator bool() const { return at_ != nullptr; }
  bool operator==(const Shared& other) const { return at_ == other.at_; }
  bool alone() const { return at_->references == 1; }

 private:
  T* at_ = nullptr;
};

// Pages of the medium that no node has.
using FreePages = std::vector<std::uint64_t>;  // offsets

// What is the same in all versions of an array; copy and table_checksum are not read.
struct SharedEntry {
  std::uint32_t references = 0;
  ArrayEntry entry;
};

struct LeafEntry {
  Shared<SharedEntry> shared;
  std::uint32_t copy = 0;
  std::uint64_t table_checksum = 0;

  explicit operator bool() const { return static_cast<bool>(shared); }
  bool operator==(const LeafEntry& other) const = default;
  ArrayEntry whole() const;
};
LeafEntry leaf_entry_of(ArrayEntry entry);

struct ArrayNode {
  std::uint32_t references = 0;
  std::uint32_t height = 0;
  std::uint64_t arrays = 0;                   // in it and below it, as are the next two
  std::uint64_t nodes = 1;                    // itself included
  std::uint64_t record_bytes = 0;             // that the entries take in a slot
  std::uint64_t room = catalogue_page_bytes;  // the longest record that fits some leaf; 0: none
  // Its page on the medium, and what is to have it when the node goes.
  std::uint64_t page = 0;  // 0: none
  std::uint64_t page_checksum = 0;
  std::shared_ptr<FreePages> pages;

  std::array<LeafEntry, leaf_arrays_max> entries;  // of a leaf; with gaps
  std::vector<Shared<ArrayNode>> children;         // of a branch: fan_out, with gaps

  explicit ArrayNode(std::uint32_t at_height);
  ArrayNode(const ArrayNode& other);  // without its page
  ArrayNode& operator=(const ArrayNode&) = delete;
  ~ArrayNode() {
    if (page != 0 && pages) pages->push_back(page);
  }
  void sum_up();
};

// Bytes that an entry takes in a slot, and in a page.
std::uint64_t record_bytes_of(const ArrayEntry& entry);

// Where an array's entry stands; stays as it is while the array is in the table.
using ArrayId = std::uint64_t;

class ArrayTable {
 public:
  class Iterator;

  ArrayTable() = default;
  ArrayTable(std::initializer_list<ArrayEntry> entries);
  explicit ArrayTable(Shared<ArrayNode> root) : root_(std::move(root)) {}

  std::size_t size() const { return root_ ? root_->arrays : 0; }
  bool empty() const { return !root_; }
  std::uint64_t nodes() const { return root_ ? root_->nodes : 0; }
  std::uint64_t record_bytes() const { return root_ ? root_->record_bytes : 0; }
  std::uint32_t depth() const { return root_ ? root_->height + 1 : 0; }
  const Shared<ArrayNode>& root() const { return root_; }
  // Whether neither was changed since one was copied from the other.
  bool is_same(const ArrayTable& other) const { return root_ == other.root_; }

  ArrayEntry at(ArrayId id) const { return leaf_entry(id).whole(); }
  const LeafEntry& leaf_entry(ArrayId id) const;
  // The same without what is not of all versions.
  const ArrayEntry& shared_at(ArrayId id) const { return leaf_entry(id).shared->entry; }
  // Where there is room.
  ArrayId insert(ArrayEntry entry);
  // After all others.
  void append(ArrayEntry entry);
  void erase(ArrayId id);
  // Another entry of the same array.
  void replace(ArrayId id, LeafEntry entry);
  // Null: there is none.
  const LeafEntry* find(ArrayId id) const;
  // Leaves all as it is if the entry says so already.
  void name_copy(ArrayId id, std::uint32_t copy, std::uint64_t table_checksum);

  // In the order of ids, by number.
  ArrayEntry operator[](std::size_t index) const;
  Iterator begin() const;
  Iterator end() const;

  // Calls `is_new` with each node; what is below one for which it says no is left out.
  void for_each_new_node(const std::function<bool(ArrayNode&)>& is_new) const;

 private:
  Shared<ArrayNode> root_;
};

class ArrayTable::Iterator {
 public:
  using value_type = ArrayEntry;
  using reference = ArrayEntry;
  using pointer = void;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;

  Iterator() = default;
  Iterator(const ArrayNode* root, ArrayId from) : root_(root) { find(from); }

  ArrayId id() const { return id_; }
  const LeafEntry& leaf_entry() const { return *entry_; }
  const ArrayEntry& shared() const { return entry_->shared->entry; }
  ArrayEntry operator*() const { return entry_->whole(); }
  Iterator& operator++() {
    find(id_ + 1);
    return *this;
  }
  Iterator operator++(int) {
    Iterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Iterator& other) const { return entry_ == other.entry_; }

 private:
  void find(ArrayId from);

  const ArrayNode* root_ = nullptr;
  ArrayId id_ = 0;
  const LeafEntry* entry_ = nullptr;  // null: the end
};

}  // namespace perdure
