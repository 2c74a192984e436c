// SPDX-License-Identifier: BSD-3-Clause
//
// Who changed a file, by what its part knows and what stat(2) says.
#include "parts/file_stamp.hpp"

#include <gtest/gtest.h>

namespace perdure {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t now = 1'700'000'000 * second;
constexpr std::uint64_t booted = now - 1000 * second;

FileEvidence evidence(bool under_way) {
  FileEvidence known;
  known.recorded = {4096, now, now};
  known.under_way = under_way;
  known.begun_ns = now + second;
  known.slowest_ns = second / 100;
  return known;
}

FileStamp changed_at(std::uint64_t time) {
  return {4096, time, time};
}

FileVerdict judge(const FileEvidence& known, const FileStamp& seen) {
  return judge_file(known, seen, true, booted);
}

TEST(FileStamp, a_file_with_its_recorded_stamp_is_ours) {
  EXPECT_EQ(judge(evidence(false), {4096, now, now}), FileVerdict::ours);
  EXPECT_EQ(judge(evidence(true), {4096, now, now}), FileVerdict::ours);
  EXPECT_EQ(judge(FileEvidence{}, changed_at(now)), FileVerdict::ours);  // nobody used the part
}

TEST(FileStamp, any_other_stamp_is_anothers_when_nothing_was_under_way) {
  for (const FileStamp& seen :
       {FileStamp{4095, now, now}, FileStamp{4096, now + 1, now}, FileStamp{4096, now, now + 1},
        FileStamp{4096, now - 1, now + 1}, FileStamp{4096, now, now - 1}}) {
    EXPECT_EQ(judge(evidence(false), seen), FileVerdict::changed);
  }
}

TEST(FileStamp, a_change_under_way_explains_times_of_when_it_began_or_a_little_later) {
  const FileEvidence known = evidence(true);
  EXPECT_EQ(judge(known, changed_at(known.begun_ns)), FileVerdict::unsure);
  EXPECT_EQ(judge(known, changed_at(known.begun_ns - 1)), FileVerdict::unsure);
  EXPECT_EQ(judge(known, changed_at(known.begun_ns + grace_ns)), FileVerdict::unsure);
  EXPECT_EQ(judge(known, changed_at(known.begun_ns + grace_ns + 1)), FileVerdict::changed);
}

TEST(FileStamp, where_changes_are_slow_they_may_come_later) {
  FileEvidence known = evidence(true);
  known.slowest_ns = second;
  EXPECT_EQ(judge(known, changed_at(known.begun_ns + 4 * second)), FileVerdict::unsure);
  EXPECT_EQ(judge(known, changed_at(known.begun_ns + 4 * second + 1)), FileVerdict::changed);
}

TEST(FileStamp, a_time_of_modification_that_was_set_is_no_write_of_ours) {
  const FileEvidence known = evidence(true);
  EXPECT_EQ(judge(known, {4096, now - 7, known.begun_ns}), FileVerdict::changed);
  // Room that is made ahead leaves it as it was.
  EXPECT_EQ(judge(known, {4096, now, known.begun_ns}), FileVerdict::unsure);
}

TEST(FileStamp, another_clock_leaves_all_to_the_bytes) {
  FileEvidence known = evidence(true);
  known.other_clock = true;
  EXPECT_EQ(judge(known, changed_at(now + 9999 * second)), FileVerdict::unsure);
  known.under_way = false;
  EXPECT_EQ(judge(known, changed_at(now + 9999 * second)), FileVerdict::changed);
}

TEST(FileStamp, after_another_boot_an_older_file_is_ours_and_a_younger_one_is_not) {
  const auto judge_later = [](const FileEvidence& known, std::uint64_t time, std::uint64_t boot) {
    return judge_file(known, changed_at(time), false, boot);
  };
  EXPECT_EQ(judge_later(evidence(false), now - 1, now + 9 * second), FileVerdict::ours);
  EXPECT_EQ(judge_later(evidence(false), now + 1, now + 9 * second), FileVerdict::changed);
  EXPECT_EQ(judge_later(evidence(true), now + 8 * second, now + 9 * second), FileVerdict::unsure);
  EXPECT_EQ(judge_later(evidence(true), now + 9 * second, now + 9 * second), FileVerdict::changed);
  FileEvidence torn = evidence(true);
  torn.recorded = {};
  EXPECT_EQ(judge_later(torn, now + 9 * second, now + 9 * second), FileVerdict::changed);
}

TEST(FileStamp, evidence_of_several_nodes_is_that_of_the_latest) {
  FileEvidence one = evidence(false);
  FileEvidence other = evidence(true);
  other.recorded = {8192, now + 5, now + 5};
  one.begun_ns = now + 9 * second;
  for (const FileEvidence& both : {join_evidence(one, other), join_evidence(other, one)}) {
    EXPECT_EQ(both.recorded, other.recorded);
    EXPECT_TRUE(both.under_way);
    EXPECT_FALSE(both.other_clock);
    EXPECT_EQ(both.begun_ns, now + 9 * second);
  }
}

TEST(FileStamp, a_user_reads_what_differs_and_when) {
  EXPECT_EQ(utc_text(1'700'000'000'250'000'000), "2023-11-14 22:13:20.250 UTC");
  const FileStamp was{10, 1, 1};
  EXPECT_EQ(difference_text(was, {5, 2, 2}), "the file has 5 bytes now, and had 10");
  EXPECT_EQ(difference_text(was, {10, 2, 2}), "the file's size is as it was");
  EXPECT_NE(difference_text(was, {10, 1, 2}).find("renamed"), std::string::npos);
}

}  // namespace
}  // namespace perdure
