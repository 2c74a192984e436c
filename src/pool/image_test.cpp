// SPDX-License-Identifier: BSD-3-Clause
//
// Images: a file that is made of one gives back the version, and goes on from it.
#include "pool/image.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "pmem/file_device.hpp"
#include "pool/box_note.hpp"
#include "pool/image_format.hpp"
#include "pool/testing/pool_fixture.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

class Images : public PoolTest {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "images-" + std::to_string(::getpid());
    std::filesystem::create_directory(directory_);
    std::filesystem::permissions(directory_, std::filesystem::perms::owner_all);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void open_all() {
    u_ = array("u", shape(ArrayMode::copy, 1001));
    t_ = array("t", shape(ArrayMode::twin, 7, false));
    ASSERT_NE(t_, nullptr) << status_.message();
    ASSERT_NE(array("none", {ArrayType::byte, ArrayMode::copy, true, {0}}), nullptr);
    ASSERT_TRUE(pool_->bind_scalar("iteration", &iteration_, sizeof iteration_).ok());
  }
  void commit() {
    ++iteration_;
    for (VersionedArray* a : {u_, t_}) {
      std::memset(a->working(), static_cast<int>(iteration_), a->size_bytes());
    }
    ASSERT_TRUE(pool_->commit().ok());
  }
  std::vector<std::byte> image_of(std::uint64_t version) {
    const auto region = check_region(*medium_);
    Slots slots(*medium_, region.value());
    const SlotView view = slots.read(slots.slot_of(version));
    auto image = Image::of(*medium_, region.value().geometry, *view.body);
    EXPECT_TRUE(image.ok()) << image.status().message();
    copy_offsets_ = image.value().copy_offsets();
    std::vector<std::byte> bytes(image.value().size_bytes());
    // In odd pieces.
    for (std::size_t at = 0; at < bytes.size(); at += 777) {
      const auto piece =
          std::span(bytes).subspan(at, std::min<std::size_t>(777, bytes.size() - at));
      EXPECT_TRUE(image.value().read(at, piece).ok());
      const auto there = image.value().in_place(at, piece.size());
      if (there.empty()) continue;
      EXPECT_TRUE(std::equal(there.begin(), there.end(), piece.begin(), piece.end())) << at;
      ++in_place_;
    }
    return bytes;
  }
  Status attach_file(const std::string& path) {
    pool_.reset();
    auto device = open_file_device(path, {});
    if (!device.ok()) return device.status();
    auto region = check_region(*device.value());
    if (!region.ok()) return region.status();
    generation_ = region.value().identity.generation;
    auto pool = Pool::attach(device.take(), region.value(), group_, {});
    if (pool.ok()) pool_ = pool.take();
    return pool.status();
  }

  std::string directory_;
  VersionedArray* u_ = nullptr;
  VersionedArray* t_ = nullptr;
  std::uint64_t iteration_ = 0;
  std::uint64_t generation_ = 0;
  std::vector<std::uint64_t> copy_offsets_;  // of the last image
  int in_place_ = 0;                         // pieces of images that were found in one place
};

TEST_F(Images, a_file_made_of_one_restarts_from_its_version_and_goes_on) {
  geometry_.slots = 3;
  open();
  open_all();
  ASSERT_TRUE(pool_->restart().ok());
  for (int i = 0; i < 5; ++i) commit();
  for (const std::uint64_t version : {4U, 5U}) {
    const auto bytes = image_of(version);
    const std::string path = directory_ + "/rank-" + std::to_string(version);
    const Status made = make_file_of_image(path, {{{1, 2}}, "test", 0, 1, 9}, bytes, Trust::own);
    ASSERT_TRUE(made.ok()) << made.message();
    EXPECT_EQ(make_file_of_image(path, {{{1, 2}}, "test", 0, 1, 9}, bytes, Trust::own).code(),
              Code::wrong_state);
  }
  ASSERT_TRUE(attach_file(directory_ + "/rank-4").ok());
  EXPECT_EQ(generation_, 9U);
  iteration_ = 0;
  open_all();
  const auto restored = pool_->restart();
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  EXPECT_EQ(restored.value(), 4U);
  EXPECT_EQ(iteration_, 4U);
  EXPECT_EQ(u_->consistent()[8 * 1001 - 1], std::byte{4});
  EXPECT_EQ(t_->consistent()[0], std::byte{4});
  for (int i = 0; i < 4; ++i) commit();
  EXPECT_EQ(pool_->versions().front().version, 8U);
  ASSERT_TRUE(attach_file(directory_ + "/rank-4").ok());
  open_all();
  EXPECT_EQ(pool_->restart().value(), 8U);
  EXPECT_EQ(u_->consistent()[5], std::byte{8});
}

TEST_F(Images, of_more_arrays_than_a_slot_has_room_for_give_them_back) {
  geometry_.slot_bytes = 1024;
  open();
  open_all();
  std::vector<VersionedArray*> many;
  const auto open_many = [&] {
    many.clear();
    for (int i = 0; i < 200; ++i) {
      // Of different lengths, so that not every leaf of the tree has as many.
      const std::string name = std::string(static_cast<std::size_t>(1 + i * 37 % 200), 'n');
      many.push_back(array(name, shape(ArrayMode::copy, 3)));
      ASSERT_NE(many.back(), nullptr) << status_.message();
    }
  };
  open_many();
  ASSERT_TRUE(pool_->restart().ok());
  for (int i = 0; i < 200; ++i) words(many[static_cast<std::size_t>(i)])[2] = 1000 + i;
  for (std::size_t i = 1; i < 200; i += 3) {
    ASSERT_TRUE(pool_->close_array(many[i], true).ok());  // leaves gaps in the tree
  }
  commit();
  const std::string path = directory_ + "/rank-many";
  const Status made =
      make_file_of_image(path, {{{1, 2}}, "test", 0, 1, 1}, image_of(1), Trust::own);
  ASSERT_TRUE(made.ok()) << made.message();
  ASSERT_TRUE(attach_file(path).ok());
  iteration_ = 0;
  open_all();
  open_many();
  EXPECT_EQ(pool_->restart().value(), 1U);
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(words(many[static_cast<std::size_t>(i)])[2], i % 3 == 1 ? 0 : 1000 + i);
  }
  commit();
  ASSERT_TRUE(attach_file(path).ok());
  EXPECT_EQ(pool_->restart().value(), 2U);
}

TEST_F(Images, name_their_arrays_places_and_their_boxes) {
  open();
  open_all();
  ASSERT_TRUE(pool_->set_box(*u_, {{4004}, {1001}}).ok());
  ASSERT_TRUE(pool_->restart().ok());
  commit();
  const auto bytes = image_of(1);
  const auto contents = parse_image(bytes);
  ASSERT_TRUE(contents.ok()) << contents.status().message();
  EXPECT_EQ(boxes_of(contents.value().catalogue), (GlobalBoxes{{{"u", 0}, {{4004}, {1001}}}}));
  EXPECT_EQ(contents.value().copy_offsets, copy_offsets_);
  EXPECT_EQ(contents.value().catalogue.version, 1U);
  const auto& arrays = contents.value().catalogue.arrays;
  ASSERT_EQ(arrays.size(), 3U);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].size_bytes == 0) continue;
    EXPECT_EQ(bytes[contents.value().copy_offsets[i]], std::byte{1}) << arrays[i].name;
  }
}

TEST_F(Images, are_read_in_place_but_where_two_of_their_parts_meet) {
  open();
  open_all();
  ASSERT_TRUE(pool_->restart().ok());
  commit();
  const auto bytes = image_of(1);
  EXPECT_GE(in_place_, 8);  // of an array of 8 KB
  const auto region = check_region(*medium_);
  Slots slots(*medium_, region.value());
  const SlotView view = slots.read(slots.slot_of(1));
  const auto image = Image::of(*medium_, region.value().geometry, *view.body).take();
  const std::uint64_t begin = copy_offsets_[0];
  EXPECT_EQ(image.in_place(begin, u_->size_bytes()).size(), u_->size_bytes());
  const ArrayEntry& u = *view.body->arrays.begin();
  EXPECT_EQ(image.in_place(begin, u.size_bytes).data(), medium_->base() + u.copy_offset(u.copy));
  EXPECT_TRUE(image.in_place(begin, u_->size_bytes() + 1).empty());
  EXPECT_TRUE(image.in_place(begin - 1, 2).empty());
  EXPECT_TRUE(image.in_place(begin + 1, u_->size_bytes()).empty());
  EXPECT_TRUE(image.in_place(bytes.size() + 64, 1).empty());
  EXPECT_TRUE(image.in_place(begin, UINT64_MAX).empty());
}

TEST_F(Images, a_pool_with_an_array_in_flush_mode_has_none) {
  open();
  ASSERT_NE(array("f", shape(ArrayMode::flush, 10, false)), nullptr) << status_.message();
  ASSERT_TRUE(pool_->restart().ok());
  ASSERT_TRUE(pool_->commit().ok());
  const auto region = check_region(*medium_);
  const SlotView view = Slots(*medium_, region.value()).read(1);
  EXPECT_EQ(Image::of(*medium_, geometry_, *view.body).status().code(), Code::unsupported);
}

TEST_F(Images, damaged_bytes_are_refused_or_change_nothing_but_data) {
  open();
  open_all();
  ASSERT_TRUE(pool_->restart().ok());
  commit();
  const auto whole = image_of(1);
  std::mt19937_64 random(test_seed());
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    auto bytes = whole;
    if (i % 4 == 0)
      bytes.resize(random() % bytes.size());
    else
      bytes[random() % 1024] ^= static_cast<std::byte>(1 + random() % 255);
    refused += parse_image(bytes).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace perdure
