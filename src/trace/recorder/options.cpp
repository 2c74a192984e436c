// SPDX-License-Identifier: BSD-3-Clause
#include "trace/recorder/options.hpp"

#include <limits>
#include <ranges>

#include "base/quantity.hpp"
#include "trace/cache_filter.hpp"

namespace perdure::trace {
namespace {

Status invalid(const std::string& what) {
  return Status(Code::invalid_argument, "PERDURE_TRACE: ", what);
}

bool parse_small(const std::string& text, std::uint32_t& value) {
  const std::optional<std::uint64_t> size = parse_size(text);
  if (!size.has_value() || *size > std::numeric_limits<std::uint32_t>::max()) return false;
  value = static_cast<std::uint32_t>(*size);
  return true;
}

bool take(const std::optional<std::uint64_t>& parsed, std::uint64_t& value) {
  value = parsed.value_or(0);
  return parsed.has_value();
}

bool parse_mode(const std::string& text, FilterMode& mode) {
  for (const FilterMode known : {FilterMode::none, FilterMode::paper, FilterMode::modern}) {
    if (text != filter_mode_name(known)) continue;
    mode = known;
    return true;
  }
  return false;
}

bool parse_word(const std::string& text, const char* no, const char* yes, bool& value) {
  value = text == yes;
  return value || text == no;
}

bool parse_helper(const std::string& text, HelperUse& use) {
  if (text == "auto") use = HelperUse::automatic;
  if (text == "on") use = HelperUse::on;
  if (text == "off") use = HelperUse::off;
  return text == "auto" || text == "on" || text == "off";
}

Status take_option(const std::string& key, const std::string& value, RecorderOptions& options) {
  CacheShape& cache = options.header.cache;
  bool good = false;
  if (key == "size") {
    good = take(parse_size(value), cache.size_bytes);
  } else if (key == "line") {
    good = parse_small(value, cache.line_bytes);
  } else if (key == "ways") {
    good = parse_small(value, cache.ways);
  } else if (key == "mode") {
    good = parse_mode(value, options.header.mode);
  } else if (key == "page") {
    good = parse_small(value, options.header.page_bytes);
  } else if (key == "floor") {
    good = parse_small(value, options.header.floor_pages);
  } else if (key == "region") {
    good = parse_word(value, "all", "marked", options.marked_only);
  } else if (key == "compute") {
    good = take(parse_time_ns(value), options.compute_ns);
  } else if (key == "times") {
    good = parse_word(value, "off", "on", options.times);
  } else if (key == "aslr") {
    good = parse_word(value, "off", "keep", options.keep_random_addresses);
  } else if (key == "helper") {
    good = parse_helper(value, options.helper);
  } else if (key == "buffer") {
    good = take(parse_size(value), options.buffer_bytes);
  } else {
    return invalid("no option is called '" + key +
                   "'; there are size, line, ways, mode, page, "
                   "floor, region, compute, times, aslr, helper, buffer");
  }
  return good ? Status::success() : invalid(key + "=" + value + " can't be");
}

}  // namespace

Result<RecorderOptions> parse_recorder_options(const std::string& text) {
  RecorderOptions options;
  options.path = text.substr(0, text.find(','));
  if (options.path.empty()) return invalid("it names no file; write FILE[,option=value…]");
  for (const auto part : std::views::split(text, ',') | std::views::drop(1)) {
    const std::string word(part.begin(), part.end());
    const std::size_t equals = word.find('=');
    if (equals == word.npos) return invalid("'" + word + "' is not option=value");
    PERDURE_TRY(take_option(word.substr(0, equals), word.substr(equals + 1), options));
  }
  const Header& header = options.header;
  if (header.mode != FilterMode::none) PERDURE_TRY(check_shape(header.cache));
  return options;
}

}  // namespace perdure::trace
