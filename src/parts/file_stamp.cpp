// SPDX-License-Identifier: BSD-3-Clause
#include "parts/file_stamp.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace perdure {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

// Of another boot: `seen` was on the medium when the machine stopped.
FileVerdict judge_after_boot(const FileEvidence& evidence, const FileStamp& seen,
                             std::uint64_t boot_ns) {
  if (!evidence.under_way) {
    return seen.changed_ns <= evidence.recorded.changed_ns ? FileVerdict::ours
                                                           : FileVerdict::changed;
  }
  if (evidence.other_clock || seen.changed_ns < boot_ns) return FileVerdict::unsure;
  return FileVerdict::changed;
}

}  // namespace

FileVerdict judge_file(const FileEvidence& evidence, const FileStamp& seen, bool same_boot,
                       std::uint64_t boot_ns) {
  // A record that was being made when the power failed may be anything.
  if (evidence.recorded.changed_ns == 0 && !evidence.under_way) return FileVerdict::ours;
  if (seen == evidence.recorded) return FileVerdict::ours;
  if (!same_boot) return judge_after_boot(evidence, seen, boot_ns);
  if (!evidence.under_way) return FileVerdict::changed;
  if (evidence.other_clock) return FileVerdict::unsure;
  // A write or a cut sets both times to the same, room that is made ahead only the time of change.
  if (seen.modified_ns != seen.changed_ns && seen.modified_ns != evidence.recorded.modified_ns) {
    return FileVerdict::changed;
  }
  const std::uint64_t late = std::max(grace_ns, 4 * evidence.slowest_ns);
  return seen.changed_ns <= evidence.begun_ns + late ? FileVerdict::unsure : FileVerdict::changed;
}

FileEvidence join_evidence(const FileEvidence& one, const FileEvidence& other) {
  FileEvidence both = one;
  if (other.recorded.changed_ns > one.recorded.changed_ns) both.recorded = other.recorded;
  both.under_way = one.under_way || other.under_way;
  both.other_clock = one.other_clock || other.other_clock;
  both.begun_ns = std::max(one.begun_ns, other.begun_ns);
  both.slowest_ns = std::max(one.slowest_ns, other.slowest_ns);
  return both;
}

std::string difference_text(const FileStamp& recorded, const FileStamp& seen) {
  if (seen.size_bytes != recorded.size_bytes) {
    return "the file has " + std::to_string(seen.size_bytes) + " bytes now, and had " +
           std::to_string(recorded.size_bytes);
  }
  if (seen.modified_ns == recorded.modified_ns) {
    return "the file's size and time of modification are as they were: it was renamed, its "
           "attributes were changed, or that time was set";
  }
  return "the file's size is as it was";
}

std::string utc_text(std::uint64_t ns) {
  const auto seconds = static_cast<std::time_t>(ns / second_ns);
  std::tm parts{};
  char day[32] = "";
  char text[48];
  if (::gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &parts) == 0) {
    return std::to_string(ns) + " ns since 1970";
  }
  std::snprintf(text, sizeof text, "%s.%03u UTC", day,
                static_cast<unsigned>(ns % second_ns / 1'000'000));
  return text;
}

}  // namespace perdure
