// SPDX-License-Identifier: BSD-3-Clause
#include "energy/testing/fake_tree.hpp"

#include <fnmatch.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/quantity.hpp"

namespace perdure::energy::fake {
namespace {

double seconds_since(const timespec& then) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec - then.tv_sec) +
         static_cast<double>(now.tv_nsec - then.tv_nsec) / 1e9;
}

bool ends_with(const std::string& path, const std::string& name) {
  return path.ends_with("/" + name);
}

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

bool is_word_of(const std::string& word, const std::string& text) {
  std::istringstream words(text);
  return std::any_of(std::istream_iterator<std::string>(words), {},
                     [&](const std::string& each) { return each == word; });
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

void FakeTree::set(const std::string& path, const std::string& text) const {
  const std::filesystem::path file = root_ + "/" + path;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::trunc) << text << "\n";
}

std::string FakeTree::get(const std::string& path) const {
  std::ifstream file(root_ + "/" + path);
  std::ostringstream text;
  text << file.rdbuf();
  return trimmed(text.str());
}

void FakeTree::behave(const std::string& line) const {
  std::ofstream(root_ + "/behaviour", std::ios::app) << line << "\n";
}

std::vector<FakeTree::Rule> FakeTree::rules(const std::string& path) const {
  std::vector<Rule> found;
  std::ifstream file(root_ + "/behaviour");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Rule rule;
    words >> rule.pattern >> rule.mode >> rule.argument;
    if (::fnmatch(rule.pattern.c_str(), path.c_str(), 0) == 0) found.push_back(rule);
  }
  return found;
}

std::optional<std::string> FakeTree::rule(const std::string& path, const std::string& mode) const {
  for (const Rule& each : rules(path)) {
    if (each.mode == mode) return each.argument;
  }
  return std::nullopt;
}

// How often it was asked for, this time included, by all processes: the size of a file.
std::uint64_t FakeTree::count(const std::string& what) const {
  std::string name = "counts/" + what;
  std::replace(name.begin() + 7, name.end(), '/', '_');
  const std::string path = root_ + "/" + name;
  std::filesystem::create_directories(root_ + "/counts");
  std::ofstream(path, std::ios::app) << '.';
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

bool FakeTree::writable(const std::string& path) {
  return ::access((root_ + "/" + path).c_str(), F_OK) == 0 && !rule(path, "eacces");
}

// As cpufreq's store functions: the number is brought into the processor's range, and min above
// max is refused. The clock of a processor under load follows its limit.
int FakeTree::write_frequency(const std::string& path, const std::string& text) {
  const std::string folder = folder_of(path) + "/";
  auto khz = number_in<std::uint64_t>(trimmed(text));
  if (!khz) return EINVAL;
  const auto value = [&](const char* name) {
    return number_in<std::uint64_t>(get(folder + name)).value_or(0);
  };
  khz = std::clamp(*khz, value("cpuinfo_min_freq"), value("cpuinfo_max_freq"));
  if (const auto step = rule(path, "round"))
    *khz -= *khz % number_in<std::uint64_t>(*step).value_or(1);
  const bool is_max = ends_with(path, "scaling_max_freq");
  if (is_max ? *khz < value("scaling_min_freq") : *khz > value("scaling_max_freq")) return EINVAL;
  if (rule(path, "ignore")) return 0;
  set(path, std::to_string(*khz));
  if (is_max && !rule(path, "uncapped")) set(folder + "scaling_cur_freq", std::to_string(*khz));
  return 0;
}

int FakeTree::write(const std::string& path, const std::string& text) {
  const std::string folder = folder_of(path);
  if (const auto limit = rule(path, "vanish");
      limit && count(folder) >= *number_in<std::uint64_t>(*limit)) {
    std::filesystem::remove_all(root_ + "/" + folder);
  }
  if (::access((root_ + "/" + path).c_str(), F_OK) != 0) return ENOENT;
  if (rule(path, "eacces")) return EACCES;
  if (const auto times = rule(path, "ebusy");
      times && count(path) <= *number_in<std::uint64_t>(*times)) {
    return EBUSY;
  }
  if (ends_with(path, "scaling_max_freq") || ends_with(path, "scaling_min_freq")) {
    return write_frequency(path, text);
  }
  if (ends_with(path, "scaling_governor")) {
    const std::string offered = get(folder + "/scaling_available_governors");
    if (!is_word_of(trimmed(text), offered)) return EINVAL;
    if (!rule(path, "ignore")) set(path, trimmed(text));
    return 0;
  }
  if (ends_with(path, "scaling_setspeed")) {
    return get(folder + "/scaling_governor") == "userspace" ? 0 : EINVAL;
  }
  if (ends_with(path, "boost") || ends_with(path, "no_turbo")) {
    if (trimmed(text) != "0" && trimmed(text) != "1") return EINVAL;
    set(path, trimmed(text));
    return 0;
  }
  return EACCES;
}

std::string FakeTree::counter(const std::string& path) const {
  if (const auto other = rule(path, "mirror")) return counter(*other);
  const std::uint64_t start = number_in<std::uint64_t>(get(path)).value_or(0);
  const auto power = rule(path, "power");
  if (!power || rule(path, "dead")) return std::to_string(start);
  struct stat made{};
  ::stat((root_ + "/made").c_str(), &made);
  double elapsed_s = seconds_since(made.st_mtim);
  if (const auto lag_ms = rule(path, "lag")) {
    const double step_s = std::stod(*lag_ms) / 1000;
    elapsed_s = static_cast<double>(static_cast<std::uint64_t>(elapsed_s / step_s)) * step_s;
  }
  std::uint64_t energy_uj = start + static_cast<std::uint64_t>(elapsed_s * std::stod(*power) * 1e6);
  if (const auto second = rule(path, "back"); second && elapsed_s > std::stod(*second)) {
    energy_uj -= std::min<std::uint64_t>(energy_uj, 5'000'000);
  }
  const auto range = number_in<std::uint64_t>(get(folder_of(path) + "/max_energy_range_uj"));
  return std::to_string(range && *range > 0 ? energy_uj % *range : energy_uj);
}

std::optional<SysfsText> FakeTree::read(const std::string& path) {
  if (rule(path, "eacces") && !path.ends_with("_freq")) return SysfsText{EACCES, {}};
  const bool counts = ends_with(path, "energy_uj") || path.starts_with("perf/") ||
                      (path.find("/hwmon/") != std::string::npos && path.ends_with("_input"));
  if (!counts || ::access((root_ + "/" + path).c_str(), F_OK) != 0) return std::nullopt;
  return SysfsText{0, counter(path)};
}

SysfsText FakeSysfs::read(const std::string& path) {
  auto own = tree_.read(path);
  return own ? *own : Sysfs::read(path);
}

int FakeSysfs::write(const std::string& path, const std::string& text) {
  return tree_.write(path, text);
}

}  // namespace perdure::energy::fake
