#include "model/device_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "model/embedded_table.hpp"

namespace perdure {
namespace {

using Json = nlohmann::ordered_json;
using Quantity = std::optional<double> DeviceRow::*;

struct NamedQuantity {
  std::string_view key;
  Quantity member;
  bool overridable;   // by a spec
  bool zero_allowed;  // a latency may be 0, a bandwidth may not
};

constexpr std::array<NamedQuantity, 9> quantities = {{
    {"read_latency_ns", &DeviceRow::read_latency_ns, true, true},
    {"write_latency_ns", &DeviceRow::write_latency_ns, true, true},
    {"commit_latency_ns", &DeviceRow::commit_latency_ns, true, true},
    {"read_gb_per_s", &DeviceRow::read_gb_per_s, true, false},
    {"write_gb_per_s", &DeviceRow::write_gb_per_s, true, false},
    {"read_nj_per_line", &DeviceRow::read_nj_per_line, false, true},
    {"write_nj_per_line", &DeviceRow::write_nj_per_line, false, true},
    {"standby_uw_per_mb", &DeviceRow::standby_uw_per_mb, false, true},
    {"endurance_writes", &DeviceRow::endurance_writes, false, false},
}};

constexpr std::array<std::string_view, 4> levels = {"cell", "chip", "module", "emulation"};

Status invalid(const std::string& where, const std::string& what) {
  return {Code::invalid_argument, where + ": " + what};
}

std::string join(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : ", ") + word;
  return joined;
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

Status read_granule(const std::string& where, const Json& value, std::uint32_t& to) {
  const bool whole = value.is_number_unsigned() && value.get<std::uint64_t>() <= (1U << 30U);
  to = whole ? value.get<std::uint32_t>() : 0;
  const bool power_of_two = to != 0 && (to & (to - 1)) == 0;
  return power_of_two ? Status::success()
                      : invalid(where, "granule_bytes must be a power of two up to 2^30");
}

std::string known_keys() {
  std::vector<std::string> keys = {"name", "description", "level", "granule_bytes", "source"};
  for (const NamedQuantity& quantity : quantities) keys.emplace_back(quantity.key);
  return join(keys);
}

Status read_member(const std::string& where, const std::string& key, const Json& value,
                   DeviceRow& row) {
  if (key == "name") return read_text(where, key, value, row.name);
  if (key == "description") return read_text(where, key, value, row.description);
  if (key == "level") return read_text(where, key, value, row.level);
  if (key == "source") return read_text(where, key, value, row.source);
  if (key == "granule_bytes") return read_granule(where, value, row.granule_bytes);
  for (const NamedQuantity& quantity : quantities) {
    if (key != quantity.key) continue;
    if (!value.is_number()) return invalid(where, key + " must be a number");
    row.*quantity.member = value.get<double>();
    return check_amount(where, quantity, *(row.*quantity.member));
  }
  return invalid(where, "unknown key " + key + "; known are " + known_keys());
}

Result<DeviceRow> read_row(const Json& object, std::size_t index) {
  std::string where = "device " + std::to_string(index);
  if (!object.is_object()) return invalid(where, "must be an object");
  const auto name = object.find("name");
  if (name == object.end()) return invalid(where, "name is missing");
  if (name->is_string()) where += " (" + name->get<std::string>() + ")";
  DeviceRow row;
  for (const auto& [key, value] : object.items()) {
    PERDURE_TRY(read_member(where, key, value, row));
  }
  if (row.name.find_first_of(",=") != std::string::npos) {
    return invalid(where, "a name can't contain ',' or '='");
  }
  if (row.source.empty())
    return invalid(where, "source is missing: say where its numbers are from");
  if (std::find(levels.begin(), levels.end(), row.level) == levels.end()) {
    return invalid(where, "level must be cell, chip, module or emulation");
  }
  return row;
}

Result<std::vector<DeviceRow>> read_file(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string where = std::string("PERDURE_DEVICES=") + path;
  if (!file) return Status(Code::not_found, where + ": the file can't be read");
  Result<std::vector<DeviceRow>> rows = parse_device_table(text.str());
  if (!rows.ok()) return invalid(where, rows.status().message());
  return rows;
}

Result<std::vector<DeviceRow>> load() {
  Result<std::vector<DeviceRow>> rows = parse_device_table(embedded_device_table);
  const char* path = std::getenv("PERDURE_DEVICES");
  if (!rows.ok() || path == nullptr || *path == '\0') return rows;
  Result<std::vector<DeviceRow>> added = read_file(path);
  if (!added.ok()) return added;
  for (DeviceRow& row : added.value()) {
    const auto same = std::find_if(rows.value().begin(), rows.value().end(),
                                   [&](const DeviceRow& old) { return old.name == row.name; });
    if (same == rows.value().end()) {
      rows.value().push_back(row);
    } else {
      *same = row;
    }
  }
  return rows;
}

// "key=value" of a spec.
Status apply_override(const std::string& spec, std::string_view text, DeviceRow& row) {
  const std::size_t equals = text.find('=');
  const std::string key(text.substr(0, equals));
  std::vector<std::string> keys;
  for (const NamedQuantity& quantity : quantities) {
    if (!quantity.overridable) continue;
    keys.emplace_back(quantity.key);
    if (key != quantity.key) continue;
    const std::string_view value = equals == text.npos ? "" : text.substr(equals + 1);
    double amount = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), amount);
    if (error != std::errc() || end != value.data() + value.size()) {
      return invalid(spec, key + " must be followed by '=' and a number");
    }
    row.*quantity.member = amount;
    return check_amount(spec, quantity, amount);
  }
  return invalid(spec, "unknown key '" + key + "'; known are " + join(keys));
}

Result<DeviceRow> find_row(const std::string& name) {
  Result<std::vector<DeviceRow>> rows = device_table();
  if (!rows.ok()) return rows.status();
  std::vector<std::string> names;
  for (const DeviceRow& row : rows.value()) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  return Status(Code::not_found, "no device is called '" + name + "'; known are " + join(names));
}

}  // namespace

Result<std::vector<DeviceRow>> parse_device_table(const std::string& json) {
  Json document;
  try {
    document = Json::parse(json);
  } catch (const Json::exception& error) {
    return invalid("device table", error.what());
  }
  if (!document.is_object() || document.size() != 1 || !document.contains("devices") ||
      !document["devices"].is_array()) {
    return invalid("device table", "must be {\"devices\": [ … ]}");
  }
  std::vector<DeviceRow> rows;
  for (const Json& object : document["devices"]) {
    Result<DeviceRow> row = read_row(object, rows.size());
    if (!row.ok()) return row.status();
    for (const DeviceRow& other : rows) {
      if (other.name == row.value().name) return invalid(other.name, "is there twice");
    }
    rows.push_back(row.take());
  }
  return rows;
}

Result<std::vector<DeviceRow>> device_table() {
  static const Result<std::vector<DeviceRow>> table = load();
  return table;
}

Result<DeviceRow> find_device(const std::string& spec) {
  const std::size_t comma = spec.find(',');
  Result<DeviceRow> row = find_row(spec.substr(0, comma));
  if (!row.ok() || comma == spec.npos) return row;
  std::string_view rest = std::string_view(spec).substr(comma + 1);
  for (bool more = true; more;) {
    const std::size_t end = rest.find(',');
    more = end != rest.npos;
    PERDURE_TRY(apply_override(spec, rest.substr(0, end), row.value()));
    if (more) rest.remove_prefix(end + 1);
  }
  return row;
}

}  // namespace perdure
