// SPDX-License-Identifier: BSD-3-Clause
#include "model/device_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ranges>
#include <string_view>

#include "base/environment.hpp"
#include "base/files.hpp"
#include "base/quantity.hpp"
#include "model/embedded_table.hpp"

namespace perdure {
namespace {

using Json = nlohmann::ordered_json;
using Quantity = std::optional<double> MemoryModel::*;

struct NamedQuantity {
  std::string_view key;
  Quantity member;
  bool overridable;   // by a spec
  bool zero_allowed;  // a latency may be 0, a bandwidth may not
};

constexpr std::array<NamedQuantity, 10> quantities = {{
    {"read_latency_ns", &MemoryModel::read_latency_ns, true, true},
    {"write_latency_ns", &MemoryModel::write_latency_ns, true, true},
    {"commit_latency_ns", &MemoryModel::commit_latency_ns, true, true},
    {"read_gb_per_s", &MemoryModel::read_gb_per_s, true, false},
    {"write_gb_per_s", &MemoryModel::write_gb_per_s, true, false},
    {"write_queue_bytes", &MemoryModel::write_queue_bytes, true, false},
    {"read_nj_per_line", &MemoryModel::read_nj_per_line, false, true},
    {"write_nj_per_line", &MemoryModel::write_nj_per_line, false, true},
    {"standby_uw_per_mb", &MemoryModel::standby_uw_per_mb, false, true},
    {"endurance_writes", &MemoryModel::endurance_writes, false, false},
}};

constexpr std::pair<std::string_view, std::string MemoryModel::*> model_texts[] = {
    {"name", &MemoryModel::name},
    {"description", &MemoryModel::description},
    {"assembly", &MemoryModel::assembly},
    {"source", &MemoryModel::source},
    {"derivation", &MemoryModel::derivation}};

constexpr std::array<std::string_view, 4> assemblies = {"cell", "chip", "module", "emulation"};

Status invalid(const std::string& where, const std::string& what) {
  return Status(Code::invalid_argument, where, ": ", what);
}

Status check_amount(const std::string& where, const NamedQuantity& quantity, double amount) {
  const std::string key(quantity.key);
  if (!std::isfinite(amount) || amount < 0) {
    return invalid(where, key + " must be a finite number that is not negative");
  }
  if (amount == 0 && !quantity.zero_allowed) {
    return invalid(where, key + " must be more than 0; leave it out where there is no limit");
  }
  return Status::success();
}

Status read_text(const std::string& where, const std::string& key, const Json& value,
                 std::string& to) {
  if (!value.is_string()) return invalid(where, key + " must be a string");
  to = value.get<std::string>();
  return to.empty() ? invalid(where, key + " is empty") : Status::success();
}

Status read_size(const std::string& where, const std::string& key, const Json& value,
                 std::uint32_t& to) {
  const bool whole = value.is_number_unsigned() && value.get<std::uint64_t>() <= (1U << 30U);
  to = whole ? value.get<std::uint32_t>() : 0;
  const bool power_of_two = to != 0 && (to & (to - 1)) == 0;
  return power_of_two ? Status::success()
                      : invalid(where, key + " must be a power of two up to 2^30");
}

std::string known_keys() {
  std::vector<std::string> keys = {"name",         "description", "assembly",  "granule_bytes",
                                   "access_bytes", "source",      "derivation"};
  for (const NamedQuantity& quantity : quantities) keys.emplace_back(quantity.key);
  return listed(keys);
}

Status read_member(const std::string& where, const std::string& key, const Json& value,
                   MemoryModel& model) {
  for (const auto& [known, member] : model_texts) {
    if (key == known) return read_text(where, key, value, model.*member);
  }
  if (key == "granule_bytes") return read_size(where, key, value, model.granule_bytes);
  if (key == "access_bytes") return read_size(where, key, value, model.access_bytes);
  for (const NamedQuantity& quantity : quantities) {
    if (key != quantity.key) continue;
    if (value.is_null()) return Status::success();  // said to be unknown
    if (!value.is_number()) return invalid(where, key + " must be a number or null");
    model.*quantity.member = value.get<double>();
    return check_amount(where, quantity, *(model.*quantity.member));
  }
  return invalid(where, "unknown key " + key + "; known are " + known_keys());
}

Result<MemoryModel> read_model(const Json& object, std::size_t index) {
  std::string where = "device " + std::to_string(index);
  if (!object.is_object()) return invalid(where, "must be an object");
  const auto name = object.find("name");
  if (name == object.end()) return invalid(where, "name is missing");
  if (name->is_string()) where += " (" + name->get<std::string>() + ")";
  MemoryModel model;
  for (const auto& [key, value] : object.items()) {
    PERDURE_TRY(read_member(where, key, value, model));
  }
  if (model.name.find_first_of(",=") != std::string::npos) {
    return invalid(where, "a name can't contain ',' or '='");
  }
  if (model.source.empty())
    return invalid(where, "source is missing: say where its numbers are from");
  if (std::ranges::find(assemblies, model.assembly) == assemblies.end()) {
    return invalid(where, "assembly must be cell, chip, module or emulation");
  }
  return model;
}

constexpr std::uint64_t table_bytes_max = std::uint64_t{16} << 20U;

// What one document holds: models, or presets.
template <typename Entry>
using Parse = Result<std::vector<Entry>> (*)(const std::string& json);

template <typename Entry>
Result<std::vector<Entry>> read_file(const std::string& path, Parse<Entry> parse) {
  const std::string where = std::string("PERDURE_DEVICES=") + path;
  auto file = open_input(path);
  auto text = file.ok() ? read_rest(file.value(), path, table_bytes_max) : file.status();
  if (!text.ok()) {
    return Status(Code::not_found, where, ": the file can't be read: ", text.status().message());
  }
  Result<std::vector<Entry>> entries = parse(text.value());
  if (!entries.ok()) return invalid(where, entries.status().message());
  return entries;
}

template <typename Entry>
Result<std::vector<Entry>> load(Parse<Entry> parse) {
  Result<std::vector<Entry>> entries = parse(embedded_device_table);
  const std::string path = environment("PERDURE_DEVICES");
  if (!entries.ok() || path.empty()) return entries;
  Result<std::vector<Entry>> added = read_file(path, parse);
  if (!added.ok()) return added;
  for (Entry& entry : added.value()) {
    const auto same = std::ranges::find(entries.value(), entry.name, &Entry::name);
    if (same == entries.value().end()) {
      entries.value().push_back(entry);
    } else {
      *same = entry;
    }
  }
  return entries;
}

Result<DevicePreset> read_preset(const Json& object, std::size_t index) {
  const std::string where = "preset " + std::to_string(index);
  if (!object.is_object()) return invalid(where, "must be an object");
  DevicePreset preset;
  const std::pair<const char*, std::string DevicePreset::*> texts[] = {
      {"name", &DevicePreset::name},
      {"description", &DevicePreset::description},
      {"dram", &DevicePreset::dram},
      {"mram", &DevicePreset::mram},
      {"flash", &DevicePreset::flash}};
  for (const auto& [key, member] : texts) {
    if (!object.contains(key)) return invalid(where, std::string(key) + " is missing");
    PERDURE_TRY(read_text(where, key, object[key], preset.*member));
  }
  if (object.size() != std::size(texts)) {
    return invalid(where, "only name, description, dram, mram and flash are known");
  }
  return preset;
}

// The document, whose form outside of its lists is checked.
Result<Json> read_document(const std::string& json) {
  Json document;
  try {
    document = Json::parse(json);
  } catch (const Json::exception& error) {
    return invalid("device table", error.what());
  }
  const bool lists = document.is_object() && document.contains("devices") &&
                     document["devices"].is_array() &&
                     (!document.contains("presets") || document["presets"].is_array()) &&
                     document.size() == (document.contains("presets") ? 2U : 1U);
  if (!lists) {
    return invalid("device table",
                   "must be {\"devices\": [ … ]}, with \"presets\": [ … ] or without");
  }
  return document;
}

// "key=value" of a spec.
Status apply_override(const std::string& spec, std::string_view text, MemoryModel& model) {
  const std::size_t equals = text.find('=');
  const std::string key(text.substr(0, equals));
  std::vector<std::string> keys;
  for (const NamedQuantity& quantity : quantities) {
    if (!quantity.overridable) continue;
    keys.emplace_back(quantity.key);
    if (key != quantity.key) continue;
    const std::string_view value = equals == text.npos ? "" : text.substr(equals + 1);
    const auto amount = number_in<double>(value);
    if (!amount) return invalid(spec, key + " must be followed by '=' and a number");
    model.*quantity.member = *amount;
    return check_amount(spec, quantity, *amount);
  }
  return invalid(spec, "unknown key '" + key + "'; known are " + listed(keys));
}

template <typename Entry>
Result<Entry> find_entry(const Result<std::vector<Entry>>& table, const char* kind,
                         const std::string& name) {
  PERDURE_TRY(table.status());
  for (const Entry& entry : table.value()) {
    if (entry.name == name) return entry;
  }
  return Status(Code::not_found, "no ", kind, " is called '", name, "'; known are ",
                listed(table.value(), &Entry::name));
}

}  // namespace

std::string_view key_of(std::optional<double> MemoryModel::* member) {
  return std::ranges::find(quantities, member, &NamedQuantity::member)->key;
}

Result<std::vector<MemoryModel>> parse_device_table(const std::string& json) {
  PERDURE_TRY_ASSIGN(const Json document, read_document(json));
  std::vector<MemoryModel> models;
  for (const Json& object : document["devices"]) {
    PERDURE_TRY_ASSIGN(auto model, read_model(object, models.size()));
    if (std::ranges::find(models, model.name, &MemoryModel::name) != models.end()) {
      return invalid(model.name, "is there twice");
    }
    models.push_back(std::move(model));
  }
  return models;
}

Result<std::vector<MemoryModel>> device_table() {
  static const Result<std::vector<MemoryModel>> table = load(parse_device_table);
  return table;
}

Result<std::vector<DevicePreset>> parse_device_presets(const std::string& json) {
  PERDURE_TRY_ASSIGN(const Json document, read_document(json));
  std::vector<DevicePreset> presets;
  if (!document.contains("presets")) return presets;
  for (const Json& object : document["presets"]) {
    PERDURE_TRY_ASSIGN(auto preset, read_preset(object, presets.size()));
    presets.push_back(std::move(preset));
  }
  return presets;
}

Result<std::vector<DevicePreset>> device_presets() {
  static const Result<std::vector<DevicePreset>> presets = load(parse_device_presets);
  return presets;
}

Result<DevicePreset> find_preset(const std::string& name) {
  return find_entry(device_presets(), "preset", name);
}

Result<MemoryModel> find_device(const std::string& spec) {
  Result<MemoryModel> model = find_entry(device_table(), "device", spec.substr(0, spec.find(',')));
  if (!model.ok()) return model;
  for (const auto part : std::views::split(spec, ',') | std::views::drop(1)) {
    PERDURE_TRY(apply_override(spec, {part.begin(), part.end()}, model.value()));
  }
  return model;
}

}  // namespace perdure
