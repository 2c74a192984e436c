// SPDX-License-Identifier: BSD-3-Clause
#include "energy/frequency_journal.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

namespace perdure::energy {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* file_name = "frequency.json";
constexpr int schema = 2;
// A hundred bytes for each owner of each policy: 100 ranks that cap 256 processors.
constexpr std::uint64_t file_bytes_max = std::uint64_t{4} << 20U;
constexpr std::uint64_t khz_max = 100'000'000;
constexpr std::uint64_t pid_max = 1U << 22U;  // the kernel's PID_MAX_LIMIT
constexpr std::uint64_t any = ~std::uint64_t{0};
constexpr std::size_t ours_max = 2;  // what it was and what was about to be written
constexpr std::array<const char*, 3> knob_names = {"none", "cpufreq", "intel_pstate"};  // BoostKnob

class Wrong : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The parser's conversions take -1 and 1e300 for something.
std::uint64_t whole(const Json& value, std::uint64_t most) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
    throw Wrong("one of its numbers can't be right");
  }
  return value.get<std::uint64_t>();
}

Json json_of(const CapOwner& cap) {
  const Owner& owner = cap.owner;
  return {{"pid", owner.pid},
          {"start_ticks", owner.start_ticks},
          {"pid_namespace", owner.pid_namespace},
          {"serial", owner.serial},
          {"lasting", owner.lasting},
          {"cap_kHz", cap.cap_khz}};
}

CapOwner cap_of(const Json& json) {
  return {{static_cast<std::int64_t>(whole(json.at("pid"), pid_max)),
           whole(json.at("start_ticks"), any), whole(json.at("pid_namespace"), any),
           whole(json.at("serial"), any), json.at("lasting").get<bool>()},
          whole(json.at("cap_kHz"), khz_max)};
}

Json json_of(const Limit& limit) {
  return {{"original_kHz", limit.original_khz}, {"ours_kHz", limit.ours_khz}};
}

Limit limit_of(const Json& json) {
  Limit limit{whole(json.at("original_kHz"), khz_max), {}};
  for (const Json& ours : json.at("ours_kHz")) limit.ours_khz.push_back(whole(ours, khz_max));
  if (limit.ours_khz.empty() || limit.ours_khz.size() > ours_max) {
    throw Wrong("a limit has one or two values of ours");
  }
  return limit;
}

Json json_of(const PolicyRecord& policy) {
  Json owners = Json::array();
  for (const CapOwner& cap : policy.owners) owners.push_back(json_of(cap));
  return {{"name", policy.name},
          {"max", json_of(policy.max)},
          {"min", json_of(policy.min)},
          {"owners", owners}};
}

// A name becomes part of a path that is written to (energy.J4).
bool is_policy_name(std::string_view name) {
  constexpr std::string_view begin = "policy";
  if (!name.starts_with(begin)) return false;
  const std::string_view number = name.substr(begin.size());
  return !number.empty() && number.size() <= 6 &&
         std::ranges::all_of(number,
                             [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

PolicyRecord policy_of(const Json& json) {
  PolicyRecord policy;
  policy.name = json.at("name").get<std::string>();
  if (!is_policy_name(policy.name)) throw Wrong("one of its names is no policy");
  policy.max = limit_of(json.at("max"));
  policy.min = limit_of(json.at("min"));
  for (const Json& owner : json.at("owners")) policy.owners.push_back(cap_of(owner));
  return policy;
}

Boost boost_of(const Json& json) {
  const auto name = json.at("boost_knob").get<std::string>();
  const auto* const known = std::ranges::find(knob_names, name);
  if (known == knob_names.end()) throw Wrong("it names no known knob");
  return {static_cast<BoostKnob>(known - knob_names.begin()), whole(json.at("boost"), 1)};
}

Status damaged(const std::string& path, const std::string& what) {
  return Status(Code::damaged, path, " is no journal of frequencies (", what,
                "); look at the frequencies yourself, then remove it");
}

FrequencyJournal journal_of(const Json& json, const std::string& boot_id) {
  FrequencyJournal journal{boot_id, boost_of(json), {}};
  for (const Json& policy : json.at("policies")) journal.policies.push_back(policy_of(policy));
  std::vector<std::string_view> names;
  for (const PolicyRecord& policy : journal.policies) names.push_back(policy.name);
  std::ranges::sort(names);
  if (std::ranges::adjacent_find(names) != names.end()) {
    throw Wrong("it names a policy twice");
  }
  return journal;
}

Result<FrequencyJournal> parse(const std::string& text, const std::string& path,
                               const std::string& boot_id) {
  const Json json = Json::parse(text);
  if (json.at("kind") != "perdure-frequency-journal") return damaged(path, "of another kind");
  if (json.at("boot_id") != boot_id) return FrequencyJournal{boot_id, {}, {}};
  if (whole(json.at("schema"), any) != schema) {
    return Status(
        Code::newer_format, path,
        " was written by another version of Perdure; restore the frequencies with that one");
  }
  return journal_of(json, boot_id);
}

}  // namespace

Result<FrequencyJournal> load_journal(const Directory& directory, const std::string& boot_id) {
  const std::string path = directory.path_of(file_name);
  auto file = directory.open_file(file_name, FileAccess::read);
  if (file.status().code() == Code::not_found) return FrequencyJournal{boot_id, {}, {}};
  PERDURE_TRY(file.status());
  PERDURE_TRY_ASSIGN(const auto text, read_rest(file.value(), path, file_bytes_max));
  try {
    return parse(text, path, boot_id);
  } catch (const Json::parse_error& error) {  // its sentence repeats the text
    return damaged(path, "from byte " + std::to_string(error.byte) + " on it is not JSON");
  } catch (const Json::exception&) {
    return damaged(path, "a member is missing, or of another type");
  } catch (const Wrong& wrong) {
    return damaged(path, wrong.what());
  }
}

Status store_journal(const Directory& directory, const FrequencyJournal& journal) {
  if (journal.policies.empty()) {
    PERDURE_TRY(directory.remove_file(std::string(file_name) + ".new"));  // of one who died
    return directory.remove_file(file_name);
  }
  Json policies = Json::array();
  for (const PolicyRecord& policy : journal.policies) policies.push_back(json_of(policy));
  const Json json{{"schema", schema},
                  {"kind", "perdure-frequency-journal"},
                  {"boot_id", journal.boot_id},
                  {"boost_knob", knob_names.at(static_cast<std::size_t>(journal.boost.knob))},
                  {"boost", journal.boost.value},
                  {"policies", policies}};
  const std::string text = json.dump() + "\n";
  if (text.size() > file_bytes_max) {
    return Status(Code::no_space, directory.path_of(file_name), " would have more than ",
                  file_bytes_max,
                  " bytes: too many processes hold caps; let fewer write at a time (writers of the "
                  "plan or profile)");
  }
  return directory.replace_file(file_name, text);
}

}  // namespace perdure::energy
