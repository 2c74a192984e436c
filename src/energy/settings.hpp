// SPDX-License-Identifier: BSD-3-Clause
//
// Settings: what a profile or a plan says about reading and writing a path.
//
// A profile (docs/format.md) holds what was measured; of its points the one with least energy per
// byte is taken, or, where no energy is known, the fastest. Points whose confidence intervals
// overlap that one's are as good as it: of them the one that changes least is taken, the default
// clock first, then fewest writers. A point that was measured in unrest has a wide interval, which
// is all the weight that its unrest gets. Nothing is made up between or beyond the points.
//
// A plan holds what was decided: the interval, and the settings of each level.
//
// Pure, except for read_*(). Failure: a file of another kind is Code::invalid_argument, one of a
// newer schema Code::newer_format; the sentence names the file and the key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/io_token.hpp"
#include "base/status.hpp"

namespace perdure::energy {

struct Settings {
  std::optional<std::uint64_t> freq_khz;  // absent: the clock is left alone
  unsigned writers = 0;                   // at a time on a node; 0: as many as like
};

// A mean and its confidence interval.
struct Measured {
  double mean = 0, low = 0, high = 0;
};

struct ProfilePoint {
  IoKind kind = IoKind::write;
  std::optional<std::uint64_t> freq_khz;
  unsigned writers = 0;
  Measured bandwidth;              // MB/s
  std::optional<Measured> energy;  // J/MB
};

struct Profile {
  std::string device;  // "": not known
  std::vector<ProfilePoint> points;
};

struct PlanLevel {
  std::string name;
  unsigned every = 1;  // versions
  std::string path;    // "": the pool's own
  Settings write;
  Settings read;
  // A version whose copy this level is to have.
  bool due(std::uint64_t version) const { return version % every == 0; }
};

struct Plan {
  double interval_s = 0;
  // Of a plan whose failures become rarer with time: the intervals from a start on; the last one
  // goes on. Empty: interval_s always.
  std::vector<double> works_s;
  std::vector<PlanLevel> levels;  // not empty
};

Result<Profile> parse_profile(const std::string& text, const std::string& name);
Result<Plan> parse_plan(const std::string& text, const std::string& name);
Result<Profile> read_profile(const std::string& path);
Result<Plan> read_plan(const std::string& path);

// Nothing if the profile has no points of this kind.
std::optional<Settings> best_settings(const Profile& profile, IoKind kind);

}  // namespace perdure::energy
