// SPDX-License-Identifier: BSD-3-Clause
//
// Crafted pools: what a hostile or broken writer could leave, with right checksums. Each is refused
// with a sentence; none ends the program. tests/fuzz looks for more.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/checksum.hpp"
#include "base/files.hpp"
#include "pmem/region_format.hpp"
#include "pool/inspect.hpp"
#include "pool/job_record_format.hpp"
#include "pool/slot_format.hpp"
#include "pool/state_word.hpp"
#include "pool/testing/pool_fixture.hpp"
#include "temporary_directory.hpp"

namespace perdure {
namespace {

class Crafted : public PoolTest {
 protected:
  // A pool of `commits` versions, as a crash leaves it.
  void make(unsigned commits) {
    open();
    VersionedArray* u = array("u", shape(ArrayMode::copy, 100));
    ASSERT_NE(u, nullptr) << status_.message();
    ASSERT_TRUE(pool_->restart().ok());
    for (unsigned i = 0; i < commits; ++i) ASSERT_TRUE(pool_->commit().ok());
    crash();
  }
  template <typename Format>
  Format load(std::uint64_t at) const {
    Format format;
    std::memcpy(&format, image_.data() + at, sizeof format);
    return format;
  }
  template <typename Format>
  void store(std::uint64_t at, const Format& format) {
    std::memcpy(image_.data() + at, &format, sizeof format);
  }
  std::uint64_t slot_at(std::uint64_t slot) const {
    const auto header = load<RegionHeaderFormat>(0);
    return header.slot_offset + slot * header.slot_bytes;
  }
  template <typename Change>
  void change_header(Change change) {
    auto header = load<RegionHeaderFormat>(0);
    change(header);
    header.checksum = crc64(&header, offsetof(RegionHeaderFormat, checksum));
    store(0, header);
  }
  template <typename Change>
  void change_body(std::uint64_t slot, Change change) {
    const std::uint64_t at = slot_at(slot) + sizeof(SlotStateFormat);
    auto head = load<SlotBodyFormat>(at);
    change(head);
    store(at, head);
    head.checksum = crc64(image_.data() + at + 8, head.body_bytes - 8);
    store(at, head);
  }
  void change_state(std::uint64_t slot, const StateWord& word) {
    store(slot_at(slot), encode_state(word));
  }
  // What the pool says that was opened with PERDURE_ALLOW_OLDER.
  Status attach_older() {
    open({.allow_older = true});
    return attach_status_;
  }
  Code header_code() {
    CrashDevice device(device_max, 64);
    device.load(image_);
    return check_region(device).status().code();
  }
};

TEST_F(Crafted, an_older_version_made_from_one_too_old_is_damage) {
  make(3);  // slot 1 has version 3, slot 0 is open for version 4 and has version 2
  change_state(0, {SlotState::open, 202, 0});
  change_body(0, [](SlotBodyFormat& head) {
    head.version = 200;
    head.parent = 0;
  });
  store(slot_at(1) + sizeof(SlotStateFormat), std::uint64_t{0});  // version 3 is damaged
  EXPECT_EQ(attach_older().code(), Code::damaged);
}

TEST_F(Crafted, a_version_without_a_successor_is_damage) {
  make(3);
  change_state(1, {SlotState::complete, version_max, 0});
  change_state(0, {SlotState::unused, 0, 0});
  change_body(1, [](SlotBodyFormat& head) {
    head.version = version_max;
    head.parent = version_max - 1;
  });
  const Status status = attach_older();
  EXPECT_EQ(status.code(), Code::damaged);
  EXPECT_NE(status.message().find("there is no number"), std::string::npos) << status.message();
}

TEST_F(Crafted, a_tree_that_its_body_does_not_fit_is_damage) {
  geometry_.slot_bytes = 256;
  make(2);
  const std::vector<std::byte> good = image_;
  const auto says = [&](auto change) {
    image_ = good;
    change_body(0, change);
    open();
    return attach_status_.message();
  };
  EXPECT_EQ(says([](SlotBodyFormat&) {}), "");
  EXPECT_NE(says([](SlotBodyFormat& head) { head.arrays = 2; }).find("has 1 arrays, not 2"),
            std::string::npos);
  EXPECT_NE(says([](SlotBodyFormat& head) { head.depth = 2; }).find("is damaged"),
            std::string::npos);
  EXPECT_NE(says([](SlotBodyFormat& head) { head.depth = 9; }).find("tree of depth 9"),
            std::string::npos);
  EXPECT_NE(says([](SlotBodyFormat& head) { head.depth = 0; }).find("damaged"), std::string::npos);
}

TEST_F(Crafted, numbers_of_a_header_that_do_not_fit_are_damage) {
  make(1);
  const std::vector<std::byte> good = image_;
  const auto broken = [&](auto change) {
    image_ = good;
    change_header(change);
    return header_code();
  };
  EXPECT_EQ(broken([](RegionHeaderFormat&) {}), Code::ok);
  EXPECT_EQ(broken([](RegionHeaderFormat& h) { h.slot_offset -= 4; }), Code::damaged);
  EXPECT_EQ(broken([](RegionHeaderFormat& h) { h.slot_bytes -= 4; }), Code::damaged);
  EXPECT_EQ(broken([](RegionHeaderFormat& h) { h.data_offset += 8; }), Code::damaged);
  EXPECT_EQ(broken([](RegionHeaderFormat& h) { h.align_bytes = 96; }), Code::damaged);
  EXPECT_EQ(broken([](RegionHeaderFormat& h) { h.ranks = ranks_max + 1; }), Code::damaged);
  EXPECT_EQ(broken([](RegionHeaderFormat& h) { h.slot_bytes = slot_bytes_max * 2; }),
            Code::damaged);
}

// The first array of version 2 is another one than that of version 3, at the same place.
TEST_F(Crafted, versions_with_bytes_in_common_are_not_both_believed) {
  geometry_.slots = 3;
  make(3);
  const std::uint64_t name_at =
      slot_at(2) + sizeof(SlotStateFormat) + sizeof(SlotBodyFormat) + sizeof(ArrayFormat);
  image_[name_at] = std::byte{'x'};
  change_body(2, [](SlotBodyFormat&) {});
  open();
  ASSERT_TRUE(attach_status_.ok()) << attach_status_.message();
  EXPECT_EQ(pool_->status().version, 3U);
  EXPECT_TRUE(pool_->restore(2).code() == Code::not_found);
}

TEST_F(Crafted, an_array_of_no_elements_comes_back) {
  open();
  VersionedArray* u = array("u", shape(ArrayMode::copy, 0));
  ASSERT_NE(u, nullptr) << status_.message();
  ASSERT_TRUE(pool_->restart().ok());
  ASSERT_TRUE(pool_->commit().ok());
  crash();
  open();
  ASSERT_NE(array("u", shape(ArrayMode::copy, 0)), nullptr) << status_.message();
  EXPECT_EQ(pool_->restart().value(), 1U);
  EXPECT_TRUE(pool_->commit().ok());
}

// A directory with the file of rank 0 and a job record of `ranks` ranks.
class CraftedRecord : public Crafted {
 protected:
  void write(const std::string& name, const void* bytes, std::size_t count) const {
    const Directory directory = Directory::open(directory_.path()).take();
    ASSERT_TRUE(directory.replace_file(name, {static_cast<const char*>(bytes), count}).ok());
  }
  Result<PoolReport> inspect(std::uint32_t ranks) {
    JobRecordFormat record{};
    record.magic = job_record_magic;
    record.format_version = job_record_version;
    record.ranks = ranks;
    record.job_id[0] = 1;
    record.job_id[1] = 2;
    record.checksum = crc64(&record, offsetof(JobRecordFormat, checksum));
    write("job", &record, sizeof record);
    return inspect_pool(directory_.path(), {});
  }

  perdure_test::TemporaryDirectory directory_;
};

TEST_F(CraftedRecord, of_more_ranks_than_there_can_be_is_damage) {
  EXPECT_EQ(inspect(20'000'000).status().code(), Code::damaged);
  EXPECT_EQ(inspect(~std::uint32_t{0}).status().code(), Code::damaged);
}

TEST_F(CraftedRecord, of_many_ranks_has_only_the_files_looked_at_that_are_there) {
  make(2);
  write("rank-00000", image_.data(), image_.size());
  write("rank-00007x", image_.data(), image_.size());
  write("rank-7", image_.data(), image_.size());
  const auto report = inspect(ranks_max);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report.value().ranks.size(), 1U);
  EXPECT_EQ(report.value().worst(), Severity::damage);
  ASSERT_EQ(report.value().findings.size(), 1U);
  EXPECT_EQ(report.value().findings[0].text,
            "the files of ranks 1 to 16777215 are missing: without them no version is complete");
  EXPECT_FALSE(report.value().version);
}

TEST_F(CraftedRecord, with_one_file_missing_names_its_rank) {
  make(2);
  for (const char* name : {"rank-00000", "rank-00001", "rank-00003"}) {
    write(name, image_.data(), image_.size());
  }
  EXPECT_EQ(inspect(4).value().findings[0].text,
            "the file of rank 2 is missing: without it no version is complete");
}

// Versions of one array may be of several sizes in the same places, and nothing else may be there.
TEST(CraftedVersions, of_several_sizes_leave_no_room_for_others_in_the_largest) {
  const auto entry = [](const char* name, std::uint64_t first, std::uint64_t count) {
    ArrayEntry made;
    made.name = name;
    made.shape = {ArrayType::byte, ArrayMode::copy, false, {count}};
    made.size_bytes = count;
    made.copies = 2;
    made.first_offset = first;
    made.stride_bytes = 4096;
    return made;
  };
  const auto together = [&](const ArrayEntry& other) {
    Catalogue large;
    large.arrays = {entry("u", 0, 4000)};
    Catalogue small;
    small.arrays = {entry("u", 0, 10), other};
    const Catalogue* const both[] = {&large, &small};
    return check_apart(both, 4096).code();
  };
  EXPECT_EQ(together(entry("w", 8192, 10)), Code::ok);
  EXPECT_EQ(together(entry("w", 4096 + 64, 10)), Code::damaged);
  EXPECT_EQ(together(entry("u", 64, 10)), Code::damaged);
  ArrayEntry other_type = entry("u", 0, 2);
  other_type.part = 1;
  EXPECT_EQ(together(other_type), Code::damaged);
}

}  // namespace
}  // namespace perdure
