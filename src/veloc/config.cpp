// SPDX-License-Identifier: BSD-3-Clause
#include "veloc/config.hpp"

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>

#include "base/files.hpp"
#include "base/quantity.hpp"
#include "veloc/failure.hpp"

namespace perdure_veloc {
namespace {

constexpr std::uint64_t config_bytes_max = std::uint64_t{1} << 20U;
constexpr unsigned keep_max = 63;
constexpr unsigned drain_keep_max = 1000;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

// The keys of a file, each known once.
class Keys {
 public:
  Keys(const std::string& text, std::string path) : path_(std::move(path)) {
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
      const std::string_view words = trimmed(line);
      if (words.empty() || words[0] == '#' || words[0] == ';' || words[0] == '[') continue;
      const std::size_t equals = words.find('=');
      if (equals == std::string_view::npos) {
        fail("line " + std::to_string(number) + " is not key = value");
      }
      values_[std::string(trimmed(words.substr(0, equals)))] =
          std::string(trimmed(words.substr(equals + 1)));
    }
  }

  [[noreturn]] void fail(const std::string& what) const { throw Failure(path_ + ": " + what); }

  std::string take(const std::string& key) {
    const auto found = values_.find(key);
    if (found == values_.end()) return {};
    const std::string value = found->second;
    values_.erase(found);
    return value;
  }
  std::string directory(const std::string& key) {
    const std::string value = take(key);
    if (value.empty()) fail("'" + key + " = <directory>' is missing");
    if (value.find(';') != std::string::npos) fail(key + " = " + value + " has a ';' in it");
    return value;
  }
  int number(const std::string& key, int lowest, int otherwise) {
    const std::string value = take(key);
    if (value.empty()) return otherwise;
    const auto number = perdure::number_in<int>(value);
    if (number && *number >= lowest) return *number;
    fail(key + " = " + value + " is not a number of at least " + std::to_string(lowest));
  }
  bool truth(const std::string& key) {
    std::string value = take(key);
    std::ranges::transform(value, value.begin(), [](unsigned char letter) {
      return static_cast<char>(std::tolower(letter));
    });
    if (value.empty() || value == "false" || value == "0" || value == "no") return false;
    if (value == "true" || value == "1" || value == "yes") return true;
    fail(key + " = " + value + " is neither true nor false");
  }
  void check_all_taken() const {
    if (values_.empty()) return;
    fail("'" + values_.begin()->first + "' is no key of VELOC's user guide");
  }

 private:
  std::string path_;
  std::map<std::string, std::string> values_;
};

// 0: all, as far as it goes.
unsigned kept(Config& config, const char* key, int asked, unsigned most, unsigned otherwise) {
  const auto wanted = static_cast<unsigned>(asked);
  if ((asked != 0 && wanted <= most) || (asked == 0 && otherwise == most)) {
    return asked == 0 ? most : wanted;
  }
  const unsigned given = asked == 0 ? otherwise : most;
  config.notes.push_back(std::string(key) + (asked == 0 ? "" : " = " + std::to_string(asked)) +
                         ": the newest " + std::to_string(given) + " are kept");
  return given;
}

bool interval(Config& config, Keys& keys, const char* key) {
  const int seconds = keys.number(key, -1, 0);
  if (seconds > 0) {
    config.notes.push_back(std::string(key) + " = " + std::to_string(seconds) +
                           ": each version is taken, except while the one before is on its way");
  }
  return seconds >= 0;
}

void note_ignored(Config& config, Keys& keys) {
  for (const char* key : {"failure_domain", "axl_type", "meta", "watchdog_interval"}) {
    if (const std::string value = keys.take(key); !value.empty()) {
      config.notes.push_back(std::string(key) + " = " + value + " is ignored");
    }
  }
}

bool is_sync(Keys& keys) {
  const std::string mode = keys.take("mode");
  if (mode != "sync" && mode != "async" && !mode.empty()) {
    keys.fail("mode = " + mode + " is neither sync nor async");
  }
  return mode == "sync";
}

}  // namespace

std::string Config::levels() const {
  std::string text = "every=1";
  if (!redundant) text += ";redundancy=off";
  if (drained) {
    text += ";drain=" + persistent + ";drain_keep=" + std::to_string(persistent_versions);
  }
  return text;
}

Config parse_config(const std::string& text, const std::string& path) {
  Keys keys(text, path);
  Config config;
  config.scratch = keys.directory("scratch");
  config.persistent = keys.directory("persistent");
  config.checksums = keys.truth("chksum");
  config.drained = interval(config, keys, "persistent_interval");
  config.redundant = interval(config, keys, "ec_interval");
  config.scratch_versions =
      kept(config, "scratch_versions", keys.number("scratch_versions", 0, 0), keep_max, 2);
  config.persistent_versions = kept(config, "max_versions", keys.number("max_versions", 0, 0),
                                    drain_keep_max, drain_keep_max);
  config.waits = is_sync(keys);
  note_ignored(config, keys);
  keys.check_all_taken();
  return config;
}

Config read_config(const std::string& path) {
  const perdure::FileHandle file = need(perdure::open_input(path));
  return parse_config(need(perdure::read_rest(file, path, config_bytes_max)), path);
}

}  // namespace perdure_veloc
