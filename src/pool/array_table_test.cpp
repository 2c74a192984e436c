// SPDX-License-Identifier: BSD-3-Clause
//
// Array tables: against a map, with copies that stay as they were; and trees of them in pages,
// which come back, and whose damage has a name.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "pmem/testing/crash_device.hpp"
#include "pool/array_table.hpp"
#include "pool/catalogue_pages.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t device_bytes = 1 << 20;
constexpr BodyBounds bounds{1024, device_bytes, 64, 2, 64};

// An array of 8 bytes at a place of its own.
ArrayEntry entry_of(std::uint64_t number, std::size_t name_bytes = 8) {
  ArrayEntry entry;
  entry.name = std::to_string(number);
  entry.name.insert(0, name_bytes > entry.name.size() ? name_bytes - entry.name.size() : 0, 'n');
  entry.shape = {ArrayType::int64, ArrayMode::copy, false, {1}};
  entry.size_bytes = 8;
  entry.copies = 2;
  entry.first_offset = device_bytes / 2 + number * 128;
  entry.stride_bytes = 64;
  return entry;
}

std::map<ArrayId, std::string> names_in(const ArrayTable& table) {
  std::map<ArrayId, std::string> names;
  for (auto at = table.begin(); at != table.end(); ++at) names[at.id()] = at.shared().name;
  return names;
}

// pool.T3, and the sums of each node.
void check_node(const ArrayNode& node, std::uint64_t& arrays) {
  std::uint64_t below = 0;
  for (const auto& entry : node.entries) below += entry ? 1U : 0U;
  std::uint64_t nodes = 1;
  for (const auto& child : node.children) {
    if (!child) continue;
    EXPECT_EQ(child->height + 1, node.height);
    check_node(*child, below);
    nodes += child->nodes;
  }
  EXPECT_EQ(node.arrays, below);
  EXPECT_EQ(node.nodes, nodes);
  EXPECT_GT(node.arrays, 0U);
  EXPECT_LE(node.height == 0 ? node.record_bytes : 0, catalogue_page_bytes);
  arrays += below;
}

TEST(ArrayTable, holds_what_a_map_holds_and_copies_of_it_stay_as_they_are) {
  std::mt19937_64 random(test_seed());
  ArrayTable table;
  std::map<ArrayId, std::string> model;
  std::vector<std::pair<ArrayTable, std::map<ArrayId, std::string>>> copies;
  std::uint64_t number = 0;
  for (int step = 0; step < 6000; ++step) {
    const bool grows = step < 3000 ? random() % 4 != 0 : random() % 4 == 0;
    if (model.empty() || grows) {
      const ArrayEntry entry = entry_of(number++, 1 + random() % 255);
      const ArrayId id = table.insert(entry);
      ASSERT_TRUE(model.emplace(id, entry.name).second);
    } else {
      auto gone = std::next(model.begin(), static_cast<long>(random() % model.size()));
      table.erase(gone->first);
      model.erase(gone);
    }
    if (!model.empty()) {
      const auto some = std::next(model.begin(), static_cast<long>(random() % model.size()));
      ASSERT_EQ(table.at(some->first).name, some->second);
      table.name_copy(some->first, static_cast<std::uint32_t>(step), 7);
      ASSERT_EQ(table.at(some->first).copy, static_cast<std::uint32_t>(step));
    }
    if (step % 500 == 0) copies.emplace_back(table, model);
  }
  for (const auto& [copy, held] : copies) {
    EXPECT_EQ(names_in(copy), held);
    EXPECT_EQ(copy.size(), held.size());
    std::uint64_t arrays = 0;
    if (!copy.empty()) check_node(*copy.root(), arrays);
  }
  while (!model.empty()) {
    table.erase(model.begin()->first);
    model.erase(model.begin());
  }
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.nodes(), 0U);
}

TEST(ArrayTable, entries_that_are_appended_keep_their_order_whatever_their_length) {
  std::mt19937_64 random(test_seed());
  ArrayTable table;
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    names.push_back(entry_of(i, 1 + random() % 255).name);
    ArrayEntry entry = entry_of(i);
    entry.name = names.back();
    table.append(std::move(entry));
  }
  std::size_t next = 0;
  for (const ArrayEntry& entry : table) ASSERT_EQ(entry.name, names[next++]);
  EXPECT_EQ(next, names.size());
  for (const std::size_t i : {0UL, 1UL, 777UL, 1999UL}) EXPECT_EQ(table[i].name, names[i]);
}

TEST(ArrayTable, a_version_copies_the_path_of_what_changed_and_shares_the_rest) {
  ArrayTable table;
  for (std::uint64_t i = 0; i < 30000; ++i) table.insert(entry_of(i));
  EXPECT_EQ(table.depth(), 4U);
  ArrayTable next = table;
  next.name_copy(12345, 1, 0);
  std::set<const ArrayNode*> old;
  table.for_each_new_node([&](ArrayNode& node) { return old.insert(&node).second; });
  std::size_t made = 0;
  next.for_each_new_node([&](ArrayNode& node) {
    const bool is_new = !old.contains(&node);
    made += is_new ? 1U : 0U;
    return is_new;
  });
  EXPECT_EQ(made, 4U);
  next.name_copy(12345, 1, 0);  // says so already
  EXPECT_FALSE(next.is_same(table));
  const ArrayTable same = next;
  next.name_copy(12345, 1, 0);
  EXPECT_TRUE(same.is_same(next));
}

// A tree in pages, on a device.
class Trees : public testing::Test {
 protected:
  Trees() : device_(device_bytes, 64), space_(std::make_shared<FreeSpace>(1024, used())) {
    EXPECT_TRUE(device_.resize(device_bytes).ok());
    pages_ = std::make_unique<CataloguePages>(device_, space_);
  }
  static std::vector<Extent> used() { return {{device_bytes / 2, device_bytes}}; }
  void make(std::uint64_t arrays, std::size_t name_bytes = 8) {
    for (std::uint64_t i = 0; i < arrays; ++i) table_.insert(entry_of(i, name_bytes));
    store();
  }
  void store() {
    auto root = pages_->store(table_);
    ASSERT_TRUE(root.ok());
    pages_->settle(true);
    root_ = root.value();
  }
  Result<ArrayTable> read() {
    PageReader reader(device_, bounds);
    return reader.read(root_, table_.depth());
  }
  std::string complaint() {
    const auto found = read();
    EXPECT_EQ(found.status().code(), Code::damaged);
    return found.status().message();
  }
  PagePointerFormat pointer(std::uint64_t page, std::size_t place) {
    PagePointerFormat found;
    std::memcpy(&found, device_.base() + page + place * sizeof found, sizeof found);
    return found;
  }
  // Stores a pointer into a page of the tree, and makes the checksums above right: it is the root.
  void change_root(std::size_t place, const PagePointerFormat& to) {
    std::memcpy(device_.base() + root_.offset + place * sizeof to, &to, sizeof to);
    root_.checksum = crc64(device_.base() + root_.offset, catalogue_page_bytes);
  }

  CrashDevice device_;
  std::shared_ptr<FreeSpace> space_;
  std::unique_ptr<CataloguePages> pages_;
  ArrayTable table_;
  PagePointerFormat root_{};
};

TEST_F(Trees, come_back_as_they_were) {
  for (const std::uint64_t arrays : {1U, 3U, 4U, 96U, 97U, 1000U}) {
    table_ = {};
    make(arrays);
    const auto found = read();
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(names_in(found.value()), names_in(table_));
    EXPECT_EQ(found.value().nodes(), table_.nodes());
  }
}

TEST_F(Trees, only_what_changed_is_stored_and_what_is_kept_is_not_stored_over) {
  make(1000);
  const auto bytes = [this] {
    return std::vector<std::byte>(device_.base(), device_.base() + device_bytes / 2);
  };
  const std::vector<std::byte> before = bytes();
  ArrayTable kept = table_;
  table_.name_copy(500, 1, 0);
  store();
  std::vector<std::byte> after = bytes();
  std::uint64_t changed = 0;
  for (std::uint64_t page = 0; page < after.size(); page += catalogue_page_bytes) {
    if (std::memcmp(&before[page], &after[page], catalogue_page_bytes) == 0) continue;
    ++changed;
    const std::vector<std::byte> zeros(catalogue_page_bytes);
    EXPECT_EQ(std::memcmp(&before[page], zeros.data(), zeros.size()), 0) << page;
  }
  EXPECT_EQ(changed, table_.depth());
  // What nothing keeps is used again.
  kept = {};
  ASSERT_TRUE(pages_->has(table_.nodes()));
  const std::uint64_t end = space_->end();
  for (std::uint32_t i = 2; i < 100; ++i) {
    table_.name_copy(500, i % 2, i);
    store();
  }
  EXPECT_EQ(space_->end(), end);
  EXPECT_EQ(names_in(read().value()), names_in(table_));
}

TEST_F(Trees, pages_of_a_retracted_version_are_stored_again) {
  make(10);
  table_.name_copy(4, 1, 0);
  ASSERT_TRUE(pages_->store(table_).ok());
  pages_->settle(false);
  table_.for_each_new_node([](ArrayNode& node) {
    EXPECT_EQ(node.page == 0, node.height == 1 || node.entries[0].shared->entry.name == "nnnnnnn3");
    return true;
  });
  store();
  EXPECT_EQ(read().value().at(4).copy, 1U);
}

TEST_F(Trees, every_flipped_bit_of_a_page_names_the_page) {
  make(7);
  std::vector<std::uint64_t> pages;
  table_.for_each_new_node([&](ArrayNode& node) {
    pages.push_back(node.page);
    return true;
  });
  ASSERT_EQ(pages.size(), 4U);
  for (const std::uint64_t page : pages) {
    for (std::size_t bit = 0; bit < catalogue_page_bytes * 8; bit += 7) {
      std::byte& at = device_.base()[page + bit / 8];
      at ^= static_cast<std::byte>(1U << (bit % 8));
      ASSERT_NE(complaint().find("page at byte " + std::to_string(page) + " is damaged"),
                std::string::npos);
      at ^= static_cast<std::byte>(1U << (bit % 8));
    }
  }
  EXPECT_TRUE(read().ok());
}

TEST_F(Trees, pointers_that_lead_nowhere_or_around_are_damage) {
  make(7);
  const PagePointerFormat good = pointer(root_.offset, 1);
  const auto says = [&](const PagePointerFormat& to, const std::string& what) {
    change_root(1, to);
    const std::string text = complaint();
    EXPECT_NE(text.find(what), std::string::npos) << text;
    change_root(1, good);
  };
  says({device_bytes, good.checksum}, "outside of the pool");
  says({~std::uint64_t{511}, good.checksum}, "outside of the pool");
  says({512, good.checksum}, "outside of the pool");  // a slot's
  says({good.offset + 8, good.checksum}, "outside of the pool");
  says({good.offset, good.checksum ^ 1}, "checksum is wrong");
  says({pointer(root_.offset, 0).offset, good.checksum}, "do not agree");
  EXPECT_TRUE(read().ok());
  // A root that is its own child, with a checksum that fits neither.
  change_root(0, {root_.offset, 1});
  EXPECT_NE(complaint().find("checksum is wrong"), std::string::npos);
}

TEST_F(Trees, a_leaf_in_place_of_a_branch_or_a_page_without_arrays_is_damage) {
  make(100);
  ASSERT_EQ(table_.depth(), 3U);
  const PagePointerFormat branch = pointer(root_.offset, 0);
  change_root(0, pointer(branch.offset, 0));  // a leaf
  EXPECT_EQ(read().status().code(), Code::damaged);
  const std::vector<std::byte> zeros(catalogue_page_bytes);
  std::memcpy(device_.base() + branch.offset, zeros.data(), zeros.size());
  change_root(0, {branch.offset, crc64(zeros.data(), zeros.size())});
  EXPECT_NE(complaint().find("leads to no array"), std::string::npos);
  table_ = {};
  make(1);
  std::memcpy(device_.base() + root_.offset, zeros.data(), zeros.size());
  root_.checksum = crc64(zeros.data(), zeros.size());
  EXPECT_NE(complaint().find("no array in it"), std::string::npos);
}

TEST_F(Trees, a_page_that_two_pointers_lead_to_holds_arrays_twice) {
  make(7);
  change_root(1, pointer(root_.offset, 0));
  Catalogue catalogue;
  catalogue.arrays = read().value();
  catalogue.version = 1;
  catalogue.allocated_end = device_bytes;
  std::vector<std::byte> body(body_bytes_with_tree(catalogue));
  build_body(catalogue, body, &root_);
  PageReader reader(device_, bounds);
  const auto parsed = parse_body(body, bounds, &reader);
  EXPECT_EQ(parsed.status().message(), "array 'nnnnnnn0' is there twice");
}

}  // namespace
}  // namespace perdure
