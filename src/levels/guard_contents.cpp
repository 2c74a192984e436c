// SPDX-License-Identifier: BSD-3-Clause
#include "levels/guard_contents.hpp"

#include <algorithm>
#include <cstring>

#include "levels/coding.hpp"
#include "levels/guard_format.hpp"

namespace perdure {
namespace {

// Far above what a device holds, and sums of a few of them fit in 64 bits.
constexpr std::uint64_t image_bytes_max = std::uint64_t{1} << 56;

Status damaged(const LevelFile& guard, const char* what) {
  return Status(Code::damaged, guard.path(), ": ", what,
                "; it is not a guard of Perdure or is damaged");
}

// levels.V1: the numbers that the others are found by.
bool sane(const GuardFormat& format, std::uint64_t payload_bytes) {
  return format.members >= 2 && format.members <= group_size_max && format.rows >= 1 &&
         format.rows < format.members && format.reserved == 0 &&
         coding_of(format.coding) != nullptr &&
         payload_bytes >= sizeof format + format.members * sizeof(GuardMemberFormat);
}

bool sane(const GuardContents& contents, const SealedHeader& header) {
  std::vector<std::uint32_t> ranks = contents.members;
  std::ranges::sort(ranks);
  const bool distinct = std::ranges::adjacent_find(ranks) == ranks.end();
  return distinct && ranks.back() < header.job.ranks &&
         std::ranges::binary_search(ranks, header.rank) &&
         std::ranges::all_of(
             contents.image_bytes, [](std::uint64_t bytes) { return bytes <= image_bytes_max; });
}

void append(std::vector<std::byte>& bytes, const void* from, std::size_t count) {
  const auto* begin = static_cast<const std::byte*>(from);
  bytes.insert(bytes.end(), begin, begin + count);
}

}  // namespace

std::vector<std::byte> contents_bytes(const GuardContents& contents) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < contents.members.size(); ++i) {
    const GuardMemberFormat member{contents.members[i], 0, contents.image_bytes[i],
                                   contents.image_checksums[i]};
    append(bytes, &member, sizeof member);
  }
  const GuardFormat format{static_cast<std::uint32_t>(contents.members.size()), contents.rows,
                           contents.coding, 0, stripes_of(contents).segment_bytes()};
  append(bytes, &format, sizeof format);
  return bytes;
}

std::uint64_t guard_bytes(std::span<const std::uint32_t> members, const Scheme& scheme,
                          std::uint64_t image_bytes) {
  const GuardContents contents{{members.begin(), members.end()},
                               scheme.rows,
                               scheme.coding,
                               std::vector<std::uint64_t>(members.size(), image_bytes),
                               std::vector<std::uint64_t>(members.size(), 0)};
  return stripes_of(contents).parity_bytes() + contents_bytes(contents).size();
}

Result<GuardContents> guard_contents(const LevelFile& guard) {
  const auto payload = guard.payload();
  if (!guard.whole() || guard.header().kind != SealedKind::guard ||
      payload.size() < sizeof(GuardFormat)) {
    return damaged(guard, "no guard of any version is in it");
  }
  const std::uint64_t most = sizeof(GuardFormat) + group_size_max * sizeof(GuardMemberFormat);
  const std::uint64_t tail = std::min<std::uint64_t>(payload.size(), most);
  PERDURE_TRY(guard.verify(payload.size() - tail, tail));
  GuardFormat format;
  std::memcpy(&format, payload.data() + payload.size() - sizeof format, sizeof format);
  if (!sane(format, payload.size())) return damaged(guard, "its numbers can't be right");
  const std::size_t members_bytes = format.members * sizeof(GuardMemberFormat);
  const std::uint64_t parity_bytes = payload.size() - sizeof format - members_bytes;
  GuardContents contents;
  contents.rows = format.rows;
  contents.coding = format.coding;
  for (std::uint32_t i = 0; i < format.members; ++i) {
    GuardMemberFormat member;
    std::memcpy(&member, payload.data() + parity_bytes + i * sizeof member, sizeof member);
    contents.members.push_back(member.rank);
    contents.image_bytes.push_back(member.image_bytes);
    contents.image_checksums.push_back(member.image_checksum);
  }
  if (!sane(contents, guard.header())) return damaged(guard, "its members can't be right");
  const Stripes stripes = stripes_of(contents);
  if (stripes.segment_bytes() != format.segment_bytes || stripes.parity_bytes() != parity_bytes) {
    return damaged(guard, "its lengths do not fit its members'");
  }
  return contents;
}

std::vector<VersionId> whole_versions(const std::vector<LevelFile>& images,
                                      const std::vector<LevelFile>& guards, const JobRecord& job,
                                      const std::vector<std::uint32_t>& members) {
  std::vector<VersionId> ids;
  for (const LevelFile& image : images) {
    if (!image.whole() || !same_lineage(image.header().job, job)) continue;
    if (image.header().job.ranks != job.ranks) continue;
    const VersionId id = image.header().id;
    const auto guards_it = [&](const LevelFile& guard) {
      if (!guard.whole() || guard.header().id != id) return false;
      if (!same_lineage(guard.header().job, job)) return false;
      const auto contents = guard_contents(guard);
      return contents.ok() && contents.value().members == members;
    };
    if (members.empty() || std::ranges::any_of(guards, guards_it)) ids.push_back(id);
  }
  return ids;
}

}  // namespace perdure
