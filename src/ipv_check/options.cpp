// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check/options.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/key_values.hpp"

namespace perdure::ipv_check {
namespace {

constexpr unsigned show_most = 1000000;
constexpr unsigned every_most = 1000000000;
constexpr std::uint64_t heap_bytes_most = std::uint64_t{1} << 40U;

Result<std::vector<std::pair<std::string, std::string>>> split(const std::string& text,
                                                               const std::string& variable) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const std::size_t equals = word.find('=');
    if (equals == word.npos) {
      return Status{Code::invalid_argument, variable, ": '", word, "' is not key=value"};
    }
    pairs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    begin = end + 1;
  }
  return pairs;
}

Status take(const std::string& key, const std::string& value, Options& options) {
  if (key == "mode") {
    return set_choice<bool>(key, value, "check or record", {{"check", false}, {"record", true}},
                            options.records);
  }
  if (key == "report") return set_text(key, value, options.report);
  if (key == "show") return set_unsigned(key, value, show_most, options.show);
  if (key == "min") {
    PERDURE_TRY_ASSIGN(options.heap_bytes_min, parse_bytes(key, value, 1, heap_bytes_most));
    return Status::success();
  }
  return Status(Code::invalid_argument, "PERDURE_IPV_CHECK: no key is called '", key,
                "'; there are mode, report, min, show");
}

}  // namespace

Result<Options> parse_options(const std::string& text) {
  Options options;
  PERDURE_TRY_ASSIGN(auto pairs, split(text, "PERDURE_IPV_CHECK"));
  for (const auto& [key, value] : pairs) PERDURE_TRY(take(key, value, options));
  return options;
}

Result<unsigned> parse_every(const std::string& text) {
  PERDURE_TRY_ASSIGN(auto pairs, split(text, "PERDURE_IPV"));
  unsigned every = 0;
  for (const auto& [key, value] : pairs) {
    if (key == "every") PERDURE_TRY(set_unsigned(key, value, every_most, every));
  }
  return every;
}

}  // namespace perdure::ipv_check
