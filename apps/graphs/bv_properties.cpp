// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "bvgraph.hpp"
#include "input_file.hpp"

namespace graphs {
namespace {

using Table = std::map<std::string, std::string>;

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") + 1 - first));
}

// The lines of a Java property file; its escapes do not occur in the keys that are used here.
Table read_table(const std::string& path) {
  Table table;
  std::istringstream lines(InputFile(path).read());
  for (std::string line; std::getline(lines, line);) {
    const std::string text = trimmed(line);
    if (text.empty() || text[0] == '#' || text[0] == '!') continue;
    const auto separator = text.find_first_of("=:");
    if (separator == std::string::npos) continue;
    table[trimmed(text.substr(0, separator))] = trimmed(text.substr(separator + 1));
  }
  return table;
}

std::optional<std::int64_t> find_number(const Table& table, const std::string& path,
                                        const std::string& key) {
  const auto found = table.find(key);
  if (found == table.end()) return std::nullopt;
  std::int64_t number = 0;
  const char* end = found->second.data() + found->second.size();
  const auto [at, error] = std::from_chars(found->second.data(), end, number);
  if (error != std::errc() || at != end) {
    throw InputError(path + ": '" + key + "=" + found->second + "' is not a number");
  }
  return number;
}

std::uint64_t number_between(const Table& table, const std::string& path, const std::string& key,
                             std::int64_t least, std::int64_t most,
                             std::optional<std::int64_t> absent) {
  const std::optional<std::int64_t> found = find_number(table, path, key);
  const std::optional<std::int64_t> number = found ? found : absent;
  if (!number) throw InputError(path + " has no line '" + key + "='; is it of a BVGraph?");
  if (*number < least || *number > most) {
    throw InputError(path + ": '" + key + "=" + std::to_string(*number) + "' is not in " +
                     std::to_string(least) + " to " + std::to_string(most));
  }
  return static_cast<std::uint64_t>(*number);
}

struct Component {
  std::string_view name;
  Code BvProperties::* code;
  std::string_view allowed;  // codes that the format gives it
};
constexpr std::array components{
    Component{"OUTDEGREES", &BvProperties::outdegrees, "GAMMA DELTA"},
    Component{"REFERENCES", &BvProperties::references, "UNARY GAMMA DELTA"},
    Component{"BLOCK_COUNT", &BvProperties::block_counts, "UNARY GAMMA DELTA"},
    Component{"BLOCKS", &BvProperties::blocks, "UNARY GAMMA DELTA"},
    Component{"RESIDUALS", &BvProperties::residuals, "GAMMA DELTA ZETA NIBBLE"},
    Component{"OFFSETS", &BvProperties::offsets, "GAMMA DELTA"},
};

const std::map<std::string_view, Code> codes{{"UNARY", Code::unary},
                                             {"GAMMA", Code::gamma},
                                             {"DELTA", Code::delta},
                                             {"ZETA", Code::zeta},
                                             {"NIBBLE", Code::nibble}};

// One of "OUTDEGREES_DELTA", "BLOCK_COUNT_UNARY", …
void set_code(BvProperties& properties, const std::string& path, const std::string& flag) {
  const auto split = flag.rfind('_');
  const std::string name = flag.substr(0, split);
  const std::string code = split == std::string::npos ? "" : flag.substr(split + 1);
  for (const Component& component : components) {
    if (component.name != name) continue;
    const auto known = codes.find(code);
    if (known == codes.end() || component.allowed.find(code) == std::string_view::npos) break;
    properties.*component.code = known->second;
    return;
  }
  throw InputError(path + ": the compression flag '" + flag +
                   "' is not known; write the graph anew with the flags of a BVGraph of version 0");
}

void set_codes(BvProperties& properties, const std::string& path, const std::string& flags) {
  std::istringstream words(flags);
  for (std::string flag; std::getline(words, flag, '|');) {
    if (const std::string name = trimmed(flag); !name.empty()) set_code(properties, path, name);
  }
}

}  // namespace

BvProperties read_bv_properties(const std::string& path) {
  const Table table = read_table(path);
  const auto found_class = table.find("graphclass");
  if (found_class == table.end() || !found_class->second.ends_with(".BVGraph")) {
    throw InputError(path + " is not of a BVGraph: 'graphclass' is '" +
                     (found_class == table.end() ? "" : found_class->second) + "'");
  }
  number_between(table, path, "version", 0, 0, 0);
  const auto between = [&](const char* key, std::int64_t least, std::int64_t most,
                           std::optional<std::int64_t> absent) {
    return number_between(table, path, key, least, most, absent);
  };
  BvProperties properties;
  properties.nodes = between("nodes", 0, static_cast<std::int64_t>(nodes_max), std::nullopt);
  properties.arcs = between("arcs", 0, INT64_MAX, std::nullopt);
  properties.window = between("windowsize", 0, 1 << 16, 7);
  properties.min_interval = between("minintervallength", 0, INT32_MAX, 4);
  properties.zeta_k = static_cast<unsigned>(between("zetak", 1, 32, 3));
  const std::int64_t references = find_number(table, path, "maxrefcount").value_or(INT32_MAX);
  if (references >= 0 && references < INT32_MAX) {
    properties.max_references = static_cast<std::uint64_t>(references);
  }
  if (const auto flags = table.find("compressionflags"); flags != table.end()) {
    set_codes(properties, path, flags->second);
  }
  return properties;
}

}  // namespace graphs
