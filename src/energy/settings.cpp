// SPDX-License-Identifier: BSD-3-Clause
#include "energy/settings.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.hpp"

namespace perdure::energy {
namespace {

using Json = nlohmann::json;

constexpr int schema = 1;
constexpr unsigned writers_max = 4096;
constexpr std::uint64_t file_bytes_max = std::uint64_t{64} << 20U;

class Wrong : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::optional<double> number_or_null(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || json[key].is_null()) return std::nullopt;
  const double number = json[key].get<double>();
  if (!std::isfinite(number) || number < 0) throw Wrong(std::string(key) + " is negative");
  return number;
}

// The end of a confidence interval, which may lie below 0; a single sample has none.
std::optional<double> interval_end(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || json[key].is_null()) return std::nullopt;
  return json[key].get<double>();
}

double number(const Json& json, const char* key) {
  const auto found = number_or_null(json, key);
  if (!found) throw Wrong(std::string(key) + " is missing");
  return *found;
}

double positive(const Json& json, const char* key) {
  const double found = number(json, key);
  if (found <= 0) throw Wrong(std::string(key) + " is not more than 0");
  return found;
}

unsigned whole(const Json& json, const char* key, unsigned least, unsigned most) {
  const double value = number(json, key);
  if (value < least || value > most || value != std::floor(value)) {
    throw Wrong(sentence(key, " is not a whole number from ", least, " to ", most));
  }
  return static_cast<unsigned>(value);
}

std::optional<std::uint64_t> frequency(const Json& json) {
  if (!number_or_null(json, "freq_kHz")) return std::nullopt;
  return whole(json, "freq_kHz", 1000, 100'000'000);
}

Settings settings_of(const Json& level, const char* key) {
  if (!level.contains(key) || level[key].is_null()) return {};
  return {frequency(level[key]), whole(level[key], "writers", 0, writers_max)};
}

Measured measured(const Json& json) {
  const double mean = positive(json, "mean");
  const double low = interval_end(json, "low").value_or(mean);
  const double high = interval_end(json, "high").value_or(mean);
  if (low > high) throw Wrong("an interval ends before it begins, or does not hold its mean");
  return {mean, low, high};
}

PlanLevel level_of(const Json& json) {
  PlanLevel level;
  level.name = json.at("name").get<std::string>();
  level.every = whole(json, "every", 1, 1'000'000'000);
  if (json.contains("path") && !json["path"].is_null()) level.path = json["path"];
  level.write = settings_of(json, "write");
  level.read = settings_of(json, "read");
  return level;
}

ProfilePoint point_of(const Json& json) {
  ProfilePoint point;
  const std::string op = json.at("op").get<std::string>();
  if (op != "read" && op != "write") throw Wrong("op is neither read nor write");
  point.kind = op == "read" ? IoKind::read : IoKind::write;
  point.freq_khz = frequency(json);
  point.writers = whole(json, "writers", 1, writers_max);
  point.bandwidth = measured(json.at("bandwidth_MBps"));
  if (json.contains("energy_J_per_MB") && !json["energy_J_per_MB"].is_null()) {
    point.energy = measured(json["energy_J_per_MB"]);
  }
  return point;
}

void check_kind(const Json& json, const std::string& kind) {
  if (!json.is_object() || json.value("kind", "") != kind) throw Wrong("its kind is not " + kind);
}

// Runs `read` on the document; what is wrong with it becomes a sentence.
template <typename Read>
auto parse(const std::string& text, const std::string& name, const std::string& kind,
           const Read& read) -> Result<decltype(read(Json()))> {
  try {
    const Json json = Json::parse(text);
    check_kind(json, kind);
    if (json.at("schema").get<double>() > schema) {
      return Status(Code::newer_format, name, " has schema ", json["schema"].dump(),
                    ", and this Perdure knows 1; use a newer one");
    }
    whole(json, "schema", schema, schema);
    return read(json);
  } catch (const std::exception& error) {  // of the parser, of a type, or Wrong
    return Status(Code::invalid_argument, name, " is no ", kind, ": ", error.what());
  }
}

Result<std::string> text_of(const std::string& path) {
  PERDURE_TRY_ASSIGN(auto file, open_input(path));
  auto text = read_rest(file, path, file_bytes_max);
  if (text.ok() && text.value().empty()) return Status(Code::not_found, path, " is empty");
  return text;
}

bool is_as_good(const ProfilePoint& point, const ProfilePoint& best, bool by_energy) {
  const Measured& one = by_energy ? *point.energy : point.bandwidth;
  const Measured& other = by_energy ? *best.energy : best.bandwidth;
  return one.low <= other.high && other.low <= one.high;
}

// The default clock, else the highest; then fewest writers.
bool changes_less(const ProfilePoint& a, const ProfilePoint& b) {
  const std::uint64_t most = ~std::uint64_t{0};
  const std::uint64_t a_khz = a.freq_khz.value_or(most);
  const std::uint64_t b_khz = b.freq_khz.value_or(most);
  return a_khz != b_khz ? a_khz > b_khz : a.writers < b.writers;
}

}  // namespace

Result<Profile> parse_profile(const std::string& text, const std::string& name) {
  return parse(text, name, "perdure-energy-profile", [](const Json& json) {
    Profile profile;
    const Json& device = json.at("fingerprint").at("device").at("name");
    if (!device.is_null()) profile.device = device.get<std::string>();
    for (const Json& point : json.at("points")) profile.points.push_back(point_of(point));
    if (profile.points.empty()) throw Wrong("it has no points");
    return profile;
  });
}

Result<Plan> parse_plan(const std::string& text, const std::string& name) {
  return parse(text, name, "perdure-energy-plan", [](const Json& json) {
    Plan plan;
    plan.interval_s = positive(json, "interval_s");
    if (json.contains("schedule") && !json["schedule"].is_null()) {
      plan.works_s = json["schedule"].at("works_s").get<std::vector<double>>();
    }
    for (const double work_s : plan.works_s) {
      if (!std::isfinite(work_s) || work_s <= 0) throw Wrong("works_s has an interval of nothing");
    }
    for (const Json& level : json.at("levels")) plan.levels.push_back(level_of(level));
    if (plan.levels.empty()) throw Wrong("it has no levels");
    if (plan.levels.front().every != 1) {
      throw Wrong("its first level is not committed every time");
    }
    for (std::size_t i = 1; i < plan.levels.size(); ++i) {
      if (plan.levels[i].path.empty()) throw Wrong("level " + plan.levels[i].name + " has no path");
    }
    return plan;
  });
}

Result<Profile> read_profile(const std::string& path) {
  PERDURE_TRY_ASSIGN(auto text, text_of(path));
  return parse_profile(text, path);
}

Result<Plan> read_plan(const std::string& path) {
  PERDURE_TRY_ASSIGN(auto text, text_of(path));
  return parse_plan(text, path);
}

std::optional<Settings> best_settings(const Profile& profile, IoKind kind) {
  std::vector<ProfilePoint> points;
  for (const ProfilePoint& point : profile.points) {
    if (point.kind == kind) points.push_back(point);
  }
  if (points.empty()) return std::nullopt;
  const bool by_energy = std::ranges::all_of(
      points, [](const ProfilePoint& point) { return point.energy.has_value(); });
  const auto cost = [&](const ProfilePoint& point) {
    return by_energy ? point.energy->mean : -point.bandwidth.mean;
  };
  const ProfilePoint& best = *std::ranges::min_element(points, {}, cost);
  const ProfilePoint* chosen = &best;
  for (const ProfilePoint& point : points) {
    if (is_as_good(point, best, by_energy) && changes_less(point, *chosen)) chosen = &point;
  }
  return Settings{chosen->freq_khz, chosen->writers};
}

}  // namespace perdure::energy
