// SPDX-License-Identifier: BSD-3-Clause
#include "base/process_place.hpp"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "base/environment.hpp"
#include "base/files.hpp"

namespace perdure {
namespace {

// The first of several variables that holds a number.
std::uint32_t number_of(std::initializer_list<const char*> names, std::uint32_t otherwise) {
  for (const char* name : names) {
    const std::string text = environment(name);
    if (text.empty()) continue;
    char* end = nullptr;
    const unsigned long number = std::strtoul(text.c_str(), &end, 10);
    if (*end == '\0' && number < 1U << 30U) return static_cast<std::uint32_t>(number);
  }
  return otherwise;
}

}  // namespace

ProcessPlace place_of_environment() {
  ProcessPlace place;
  place.rank = number_of({"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"}, 0);
  place.ranks = number_of({"PMI_SIZE", "OMPI_COMM_WORLD_SIZE"}, place.rank + 1);
  if (place.rank >= place.ranks) place.ranks = place.rank + 1;
  return place;
}

std::string expand_path(const std::string& path, std::uint64_t process, ProcessPlace place) {
  std::string expanded;
  bool is_single = true;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const char next = path[i] == '%' && i + 1 < path.size() ? path[i + 1] : '\0';
    if (next == 'p' || next == 'r') {
      expanded += next == 'p' ? std::to_string(process) : std::to_string(place.rank);
      is_single = false;
      ++i;
    } else {
      expanded += path[i];
      if (next == '%') ++i;
    }
  }
  if (is_single && place.ranks > 1) expanded += "." + std::to_string(place.rank);
  return expanded;
}

std::vector<std::string> command_words() {
  const std::string text = read_kernel_text("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace perdure
