// SPDX-License-Identifier: BSD-3-Clause
#include "levels/settings.hpp"

#include <set>
#include <sstream>

#include "base/files.hpp"
#include "base/key_values.hpp"
#include "base/quantity.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t settings_bytes_max = 65536;
constexpr const char* variable = "PERDURE_LEVELS";
constexpr const char* example = "redundancy=partner;every=10;drain=/scratch/me";

Status set_number(const std::string& key, const std::string& value, std::uint64_t most,
                  std::uint64_t& place) {
  PERDURE_TRY_ASSIGN(place, parse_number(key, value, 1, most));
  return Status::success();
}

// Ten beats a second, if it is that short.
constexpr std::uint64_t lease_ns_min = 1'000'000'000;

Status set_time(const std::string& key, const std::string& value, std::uint64_t least_ns,
                std::uint64_t& place) {
  const auto time_ns = parse_time_ns(value);
  if (!time_ns) return wrong_value(key, value, "a time such as 60s");
  if (*time_ns < least_ns) return wrong_value(key, value, "a second or more");
  place = *time_ns;
  return Status::success();
}

Status set_lineage(const std::string& key, const std::string& value, JobId& place) {
  const auto lineage = job_id_of(value);
  if (!lineage) return wrong_value(key, value, "32 hexadecimal digits, as in the drain");
  place = *lineage;
  return Status::success();
}

Status set(LevelSettings& settings, const std::string& key, const std::string& value) {
  constexpr std::uint64_t versions_max = std::uint64_t{1} << 30;
  if (key == "redundancy") {
    if (value != "off") PERDURE_TRY(parse_scheme(value).status());
    settings.redundancy = value;
    return Status::success();
  }
  if (key == "every") return set_number(key, value, versions_max, settings.every);
  if (key == "groups") return set_text(key, value, settings.groups);
  if (key == "drain") return set_text(key, value, settings.drain);
  if (key == "drain_every") {
    return set_number(key, value, versions_max, settings.drain_every.emplace());
  }
  if (key == "drain_keep") return set_number(key, value, 1000, settings.drain_keep);
  if (key == "patience") return set_time(key, value, 0, settings.patience_ns);
  if (key == "lease") return set_time(key, value, lease_ns_min, settings.lease_ns);
  if (key == "take") return set_lineage(key, value, settings.take.emplace());
  return Status(Code::invalid_argument, variable, ": '", key,
                "' is no key; there are redundancy, every, groups, drain, drain_every, drain_keep, "
                "patience, lease and take");
}

std::string milliseconds_text(std::uint64_t time_ns) {
  return std::to_string(time_ns / 1'000'000) + " ms";
}

// A file's lines as one text; what follows a # is a comment.
Result<std::string> text_of_file(const std::string& path) {
  PERDURE_TRY_ASSIGN(const auto file, open_input(path));
  PERDURE_TRY_ASSIGN(const auto bytes, read_rest(file, path, settings_bytes_max));
  std::string text;
  bool comment = false;
  for (const auto byte : bytes) {
    const char letter = static_cast<char>(byte);
    if (letter == '#') comment = true;
    if (letter == '\n') {
      comment = false;
      if (!text.empty() && text.back() != ';') text += ';';
    } else if (!comment && letter != ' ' && letter != '\t' && letter != '\r') {
      text += letter;
    }
  }
  if (!text.empty() && text.back() == ';') text.pop_back();
  return text;
}

}  // namespace

Result<std::optional<Scheme>> LevelSettings::scheme(std::uint32_t nodes) const {
  const std::optional<Scheme> none;
  if (!redundancy) return nodes > 1 ? std::optional<Scheme>(Scheme{}) : none;
  if (*redundancy == "off") return none;
  PERDURE_TRY_ASSIGN(auto chosen, parse_scheme(*redundancy));
  return std::optional<Scheme>(chosen);
}

std::string LevelSettings::text() const {
  std::string text = "redundancy=" + redundancy.value_or("partner on several nodes") + ", every " +
                     std::to_string(every) + " versions";
  if (!groups.empty()) text += ", groups of " + groups;
  text += ", patience " + milliseconds_text(patience_ns);
  if (take) text += ", from lineage " + job_id_text(*take);
  if (drain.empty()) return text + ", no drain";
  return text + ", drained to " + drain + " every " + std::to_string(drain_every.value_or(every)) +
         " versions, the last " + std::to_string(drain_keep) + " kept, lease " +
         milliseconds_text(lease_ns);
}

Result<std::vector<std::vector<std::uint32_t>>> read_groups(const std::string& path,
                                                            std::uint32_t ranks) {
  PERDURE_TRY_ASSIGN(const auto file, open_input(path));
  PERDURE_TRY_ASSIGN(const auto text, read_rest(file, path, settings_bytes_max));
  std::istringstream lines(text);
  std::vector<std::vector<std::uint32_t>> groups;
  std::set<std::uint32_t> seen;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::vector<std::uint32_t> group;
    for (std::uint32_t rank = 0; words >> rank;) {
      if (rank >= ranks || !seen.insert(rank).second) {
        return Status(Code::invalid_argument, path, ": rank ", rank,
                      " is in two groups, or is none of ", ranks, " ranks");
      }
      group.push_back(rank);
    }
    if (!words.eof()) {
      return Status(Code::invalid_argument, path, ": '", line, "' is no line of ranks");
    }
    if (group.size() == 1) {
      return Status(Code::invalid_argument, path, ": rank ", group[0], " is alone in its group");
    }
    if (!group.empty()) groups.push_back(std::move(group));
  }
  if (seen.size() == ranks) return groups;
  return Status(Code::invalid_argument, path, " has ", seen.size(), " of ", ranks,
                " ranks in its groups");
}

Result<LevelSettings> parse_level_settings(const std::string& text) {
  LevelSettings settings;
  if (text.empty()) return settings;
  std::string pairs = text;
  if (text.find('=') == std::string::npos) {
    PERDURE_TRY_ASSIGN(pairs, text_of_file(text));
  }
  if (pairs.empty()) return settings;
  PERDURE_TRY_ASSIGN(const auto given, split_key_values(pairs, variable, example));
  for (const auto& [key, value] : given) PERDURE_TRY(set(settings, key, value));
  return settings;
}

}  // namespace perdure
