// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/file_record.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace perdure {
namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;

FileRecord record_of(std::uint64_t size_bytes) {
  FileRecord::Opened opened;
  opened.path = "/scratch/a";
  opened.size_bytes = size_bytes;
  return FileRecord(opened);
}

TEST(FileRecord, NamesSayWhatAnAccessIs) {
  const Access access = access_of("iwrite_at_all");
  EXPECT_EQ(access.direction, Direction::write);
  EXPECT_EQ(access.pointer, Pointer::given);
  EXPECT_TRUE(access.collective && access.nonblocking);
  EXPECT_FALSE(access_of("read_shared").collective);
  EXPECT_TRUE(access_of("read_ordered_begin").collective);
  EXPECT_FALSE(access_of("write").nonblocking);
}

TEST(FileRecord, ANameMayHaveAnyBytes) {
  FileRecord::Opened opened;
  opened.path = "/scratch/\xff\xfe";
  EXPECT_NE(FileRecord(opened).line(0, 1.0).find("/scratch/"), std::string::npos);
  CacheCounts counts;
  counts.file = opened.path;
  EXPECT_NE(line_of(counts).find("/scratch/"), std::string::npos);
}

TEST(FileRecord, AccessesOfOneKindAndSizeAreOneClass) {
  FileRecord record = record_of(0);
  for (int i = 0; i < 3; ++i) record.count_access(access_of("write_at"), true, 100 * i, 100, 5);
  record.count_access(access_of("write_at"), true, 0, 64, 7);
  const auto line = nlohmann::json::parse(record.line(300, 1.0));
  ASSERT_EQ(line["accesses"].size(), 2U);
  const auto& seeking = line["accesses"][0];
  EXPECT_EQ(seeking["calls"], 1);
  EXPECT_EQ(seeking["sequential"], false);
  const auto& following = line["accesses"][1];
  EXPECT_EQ(following["calls"], 3);
  EXPECT_EQ(following["bytes"], 300);
  EXPECT_EQ(following["size_log2"], 6);
  EXPECT_DOUBLE_EQ(following["seconds"].get<double>(), 15e-9);
}

TEST(FileRecord, OnlyBlocksThatTheFileHasAndAWriteDoesNotCoverAreFetched) {
  FileRecord record = record_of(static_cast<std::uint64_t>(3 * mib + 10));
  record.count_access(access_of("write_at"), true, 0, mib, 1);          // covers block 0
  record.count_access(access_of("read_at"), true, mib, 8, 1);           // reads block 1
  record.count_access(access_of("write_at"), true, 3 * mib, 10, 1);     // all that block 3 has
  record.count_access(access_of("write_at"), true, 5 * mib + 1, 1, 1);  // the file grows
  const auto line = nlohmann::json::parse(record.line(0, 1.0));
  EXPECT_EQ(line["touched_blocks"].dump(), "[[0,2],[3,1],[5,1]]");
  EXPECT_EQ(line["written_blocks"].dump(), "[[0,1],[3,1],[5,1]]");
  EXPECT_EQ(line["fetched_blocks"].dump(), "[[1,1]]");
}

TEST(FileRecord, AViewPlacesTheBlocksOfAnAccess) {
  FileRecord record = record_of(0);
  DatatypeMap every_other;  // a MiB of every two
  every_other.size_bytes = mib;
  every_other.extent_bytes = 2 * mib;
  every_other.runs = {{0, mib}};
  every_other.starts = {0};
  record.set_view(make_view(mib, 1, every_other));
  record.count_access(access_of("read_at"), true, 0, 2 * mib, 1);
  const auto line = nlohmann::json::parse(record.line(0, 1.0));
  EXPECT_EQ(line["touched_blocks"].dump(), "[[1,1],[3,1]]");
  EXPECT_EQ(line["accesses"][0]["scattered"], true);
}

TEST(FileRecord, AnAccessWithoutAPlaceIsCountedAsBytes) {
  FileRecord record = record_of(0);
  record.count_access(access_of("write_shared"), true, -1, 77, 1);
  const auto line = nlohmann::json::parse(record.line(0, 1.0));
  EXPECT_EQ(line["unplaced_bytes"], 77);
  EXPECT_EQ(line["touched_blocks"].size(), 0U);
}

TEST(FileRecord, FieldsOfTheCacheStandBesideTheRecords) {
  FileRecord record = record_of(0);
  CacheCounts counts;
  counts.file = "/scratch/a";
  counts.filled_bytes = 9;
  record.add_cache_counts(counts);
  const auto line = nlohmann::json::parse(record.line(0, 1.0));
  EXPECT_EQ(line["cached"], true);
  EXPECT_EQ(line["filled_bytes"], 9);
  EXPECT_EQ(line["file"], "/scratch/a");
}

}  // namespace
}  // namespace perdure
