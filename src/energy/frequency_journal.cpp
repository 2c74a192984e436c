#include "energy/frequency_journal.hpp"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "energy/state_directory.hpp"

namespace perdure::energy {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* file_name = "/frequency.json";
constexpr int schema = 1;

Json json_of(const CapOwner& cap) {
  const Owner& owner = cap.owner;
  return {{"pid", owner.pid},
          {"start_ticks", owner.start_ticks},
          {"pid_namespace", owner.pid_namespace},
          {"serial", owner.serial},
          {"lasting", owner.lasting},
          {"cap_kHz", cap.cap_khz}};
}

// The parser's own conversion takes 1e300 for a whole number.
std::uint64_t count_of(const Json& json) {
  if (!json.is_number_unsigned()) throw std::invalid_argument(json.dump() + " is no count");
  return json.get<std::uint64_t>();
}

CapOwner cap_of(const Json& json) {
  const std::uint64_t pid = count_of(json.at("pid"));
  if (pid > (std::uint64_t{1} << 31)) throw std::invalid_argument("a pid is too large");
  return {{static_cast<std::int64_t>(pid), count_of(json.at("start_ticks")),
           count_of(json.at("pid_namespace")), count_of(json.at("serial")),
           json.at("lasting").get<bool>()},
          count_of(json.at("cap_kHz"))};
}

Json json_of(const Limit& limit) {
  return {{"original_kHz", limit.original_khz}, {"ours_kHz", limit.ours_khz}};
}

Limit limit_of(const Json& json) {
  Limit limit{count_of(json.at("original_kHz")), {}};
  for (const Json& khz : json.at("ours_kHz")) limit.ours_khz.push_back(count_of(khz));
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

// A name becomes part of a path that is written to.
void check_policy_name(const std::string& name) {
  if (name.find_first_of("/.") != std::string::npos || !name.starts_with("policy")) {
    throw std::invalid_argument("'" + name + "' is no policy");
  }
}

PolicyRecord policy_of(const Json& json) {
  PolicyRecord policy;
  policy.name = json.at("name").get<std::string>();
  check_policy_name(policy.name);
  policy.max = limit_of(json.at("max"));
  policy.min = limit_of(json.at("min"));
  for (const Json& owner : json.at("owners")) policy.owners.push_back(cap_of(owner));
  return policy;
}

Status damaged(const std::string& path, const std::string& what) {
  return {Code::damaged, path + " is no journal of frequencies (" + what +
                             "); look at the frequencies yourself, then remove it"};
}

FrequencyJournal journal_of(const Json& json) {
  FrequencyJournal journal;
  journal.boot_id = json.at("boot_id").get<std::string>();
  journal.boost_path = json.at("boost_path").get<std::string>();
  journal.boost = json.at("boost").get<std::string>();
  for (const Json& policy : json.at("policies")) journal.policies.push_back(policy_of(policy));
  return journal;
}

}  // namespace

Result<FrequencyJournal> load_journal(const std::string& directory, const std::string& boot_id) {
  const std::string path = directory + file_name;
  auto text = read_file(path);
  if (!text.ok()) return text.status();
  FrequencyJournal empty;
  empty.boot_id = boot_id;
  if (text.value().empty()) return empty;
  try {
    const Json json = Json::parse(text.value());
    if (json.at("kind") != "perdure-frequency-journal") return damaged(path, "of another kind");
    if (json.at("boot_id") != boot_id) return empty;
    if (json.at("schema").get<double>() > schema) {
      return Status(Code::newer_format, path +
                                            " was written by a newer Perdure; restore the "
                                            "frequencies with that one");
    }
    return journal_of(json);
  } catch (const std::exception& error) {  // of the parser, a type, or check_policy_name()
    return damaged(path, error.what());
  }
}

Status store_journal(const std::string& directory, const FrequencyJournal& journal) {
  const std::string path = directory + file_name;
  if (journal.policies.empty()) {
    ::unlink((path + ".new").c_str());  // of one who died in replace_file()
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) return Status::success();
    return errno_status("remove " + path, errno);
  }
  Json policies = Json::array();
  for (const PolicyRecord& policy : journal.policies) policies.push_back(json_of(policy));
  const Json json{{"schema", schema},           {"kind", "perdure-frequency-journal"},
                  {"boot_id", journal.boot_id}, {"boost_path", journal.boost_path},
                  {"boost", journal.boost},     {"policies", policies}};
  return replace_file(path, json.dump(1) + "\n");
}

}  // namespace perdure::energy
