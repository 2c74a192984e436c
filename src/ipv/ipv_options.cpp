// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/ipv_options.hpp"

#include <algorithm>

#include "base/key_values.hpp"
#include "ipv/flush_thread.hpp"

namespace perdure {
namespace {

constexpr unsigned threads_max = 256;
constexpr unsigned every_max = 1'000'000'000;
constexpr unsigned box_bytes_max = 1'000'000'000;
constexpr std::uint64_t accessed_bytes_max = std::uint64_t{1} << 50U;

template <typename Place>
Status set_switch(const std::string& key, const std::string& value, Place& place) {
  return set_choice<bool>(key, value, "on or off", {{"on", true}, {"off", false}}, place);
}

Status set_tier(const std::string& value, IpvOptions& options) {
  return set_choice<Tier>(
      "tier", value, "auto, copy or stream",
      {{"auto", PERDURE_IPV_AUTO}, {"copy", PERDURE_IPV_COPY}, {"stream", PERDURE_IPV_STREAM}},
      options.tier);
}

Status set_box_bytes(const std::string& value, IpvOptions& options) {
  return set_unsigned("box_bytes", value, box_bytes_max, options.box_bytes.emplace());
}

Status set_accessed(const std::string& key, const std::string& value, std::uint64_t& place) {
  PERDURE_TRY_ASSIGN(place, parse_bytes(key, value, 0, accessed_bytes_max));
  return Status::success();
}

Status set_flush(const std::string& value) {
  bool whole = false;
  PERDURE_TRY(set_choice<bool>("flush", value, "lines or cache",
                               {{"lines", false}, {"cache", true}}, whole));
  return whole ? flush_whole_cache() : Status::success();
}

Status set_option(const std::string& key, const std::string& value, IpvOptions& options) {
  if (key == "tier") return set_tier(value, options);
  if (key == "guard") return set_switch(key, value, options.guard);
  if (key == "threads") return set_unsigned(key, value, threads_max, options.threads);
  if (key == "every") return set_unsigned(key, value, every_max, options.every);
  if (key == "lag") {
    return set_choice<unsigned>(key, value, "0 or 1", {{"0", 0}, {"1", 1}}, options.lag);
  }
  if (key == "box_bytes") return set_box_bytes(value, options);
  if (key == "report") return set_text(key, value, options.report);
  if (key == "flush") return set_flush(value);
  if (key == "remap") return set_switch(key, value, options.move_views);
  if (key == "verify") return set_switch(key, value, options.verify);
  if (key == "helper") return set_switch(key, value, options.helper);
  if (key == "loads") return set_accessed(key, value, options.accesses.loaded_bytes);
  if (key == "stores") return set_accessed(key, value, options.accesses.stored_bytes);
  return Status(
      Code::invalid_argument, "PERDURE_IPV has no '", key,
      "'; it knows tier, lag, helper, every, guard, threads, report, verify, box_bytes, flush, "
      "remap, loads and stores");
}

Status check(const IpvOptions& options) {
  if (options.threads > threads_max || options.every > every_max) {
    return Status(Code::invalid_argument,
                  "perdure_ipv_options: at most 256 threads, and every at most ", every_max);
  }
  return Status::success();
}

}  // namespace

const char* tier_name(Tier tier) {
  switch (tier) {
    case PERDURE_IPV_AUTO:
      return "auto";
    case PERDURE_IPV_COPY:
      return "copy";
    case PERDURE_IPV_STREAM:
      return "stream";
  }
  return "unknown";
}

Status check_tier(int tier) {
  if (tier >= PERDURE_IPV_AUTO && tier <= PERDURE_IPV_STREAM) return Status::success();
  return Status(Code::invalid_argument, "tier ", tier, " is none of enum perdure_ipv_tier");
}

Result<IpvOptions> ipv_options(const perdure_ipv_options* given, const char* environment) {
  IpvOptions options;
  if (given != nullptr) {
    if (given->helper != 0) options.helper = given->helper > 0;
    options.threads = given->threads;
    options.every = given->every;
    options.guard = given->no_guard == 0;
    options.lag = given->no_lag == 0 ? 1 : 0;
    if (given->report != nullptr) options.report = given->report;
  }
  if (environment != nullptr && *environment != '\0') {
    std::string text = environment;  // split_key_values() takes semicolons
    std::ranges::replace(text, ',', ';');
    PERDURE_TRY_ASSIGN(auto pairs, split_key_values(text, "PERDURE_IPV", "tier=copy,helper=on"));
    for (const auto& [key, value] : pairs) PERDURE_TRY(set_option(key, value, options));
  }
  PERDURE_TRY(check(options));
  options.threads = std::max(options.threads, 1U);
  options.every = std::max(options.every, 1U);
  return options;
}

}  // namespace perdure
