// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/cache_options.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "base/environment.hpp"

namespace perdure {
namespace {

constexpr std::string_view prefix = "perdure_cache";
constexpr std::uint64_t block_bytes_least = 4096;
constexpr std::uint64_t cache_from_most = 1'000'000'000'000;
constexpr std::uint64_t cache_evict_most = 10'000'000;
constexpr std::uint64_t block_bytes_most = std::uint64_t{1} << 30;

Status set_block(const std::string& key, const std::string& value, std::uint64_t& place) {
  PERDURE_TRY_ASSIGN(auto bytes, parse_bytes(key, value, block_bytes_least, block_bytes_most));
  if (!std::has_single_bit(bytes)) return wrong_value(key, value, "a power of two");
  place = bytes;
  return Status::success();
}

Status set_acknowledge(const std::string& key, const std::string& value, Acknowledge& place) {
  return set_choice<Acknowledge>(key, value, "async, sync or durable",
                                 {{"async", Acknowledge::async},
                                  {"sync", Acknowledge::sync},
                                  {"durable", Acknowledge::durable}},
                                 place);
}

Status set_from(const std::string& key, const std::string& value, std::uint64_t& place) {
  if (value == "never") {
    place = cache_from_never;
    return Status::success();
  }
  PERDURE_TRY_ASSIGN(place, parse_number(key, value, 0, cache_from_most));
  return Status::success();
}

Status set_evict(const std::string& key, const std::string& value, std::uint64_t& place) {
  if (value == "never") {
    place = cache_evict_never;
    return Status::success();
  }
  PERDURE_TRY_ASSIGN(place, parse_number(key, value, 1, cache_evict_most));
  return Status::success();
}

Status set_sync(const std::string& key, const std::string& value, SyncTarget& place) {
  return set_choice<SyncTarget>(key, value, "file or nvm",
                                {{"file", SyncTarget::file}, {"nvm", SyncTarget::nvm}}, place);
}

// One option, `key` as the user wrote it and `word` without what all have in common.
Status apply(const std::string& key, std::string_view word, const std::string& value,
             CacheOptions& options) {
  if (word.empty()) {
    return set_choice<bool>(key, value, "on or off", {{"on", true}, {"off", false}},
                            options.cached);
  }
  if (word == "directory") return set_text(key, value, options.directory);
  if (word == "layout") {
    return set_choice<LayoutKind>(key, value, "cyclic or parts",
                                  {{"cyclic", LayoutKind::cyclic}, {"parts", LayoutKind::parts}},
                                  options.layout);
  }
  if (word == "block") return set_block(key, value, options.block_bytes);
  if (word == "fetch") {
    return set_choice<FetchTime>(key, value, "lazy or open",
                                 {{"lazy", FetchTime::lazy}, {"open", FetchTime::open}},
                                 options.fetch);
  }
  if (word == "pool") return set_text(key, value, options.pool);
  if (word == "from") return set_from(key, value, options.from);
  if (word == "evict") return set_evict(key, value, options.evict);
  if (word == "write_back") {
    return set_choice<WriteBackTime>(
        key, value, "early or late",
        {{"early", WriteBackTime::early}, {"late", WriteBackTime::late}}, options.write_back);
  }
  if (word == "ack") return set_acknowledge(key, value, options.acknowledge);
  if (word == "sync") return set_sync(key, value, options.sync);
  return Status(Code::invalid_argument, "unknown key '", key,
                "'; docs/cache.md lists them: perdure_cache, and perdure_cache_ with directory, "
                "layout, block, fetch, from, evict, write_back, ack, sync, pool");
}

// "perdure_cache_ack" is "ack", "perdure_cache" is "".
std::string_view word_of(const std::string& key) {
  std::string_view word = std::string_view(key).substr(prefix.size());
  if (word.starts_with('_')) word.remove_prefix(1);
  return word;
}

std::vector<std::string> split_patterns(const std::string& text) {
  std::vector<std::string> patterns;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    if (end != begin) patterns.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return patterns;
}

}  // namespace

Result<CacheEnvironment> parse_cache_environment(const std::string& text) {
  CacheEnvironment environment;
  environment.options.cached = true;
  PERDURE_TRY_ASSIGN(
      const auto items,
      split_key_values(text, "PERDURE_CACHE", "files=/scratch/*.dat;directory=/mnt/pmem"));
  bool named = false;
  for (const auto& [word, value] : items) {
    if (word == "files") {
      environment.patterns = split_patterns(value);
      named = true;
      continue;
    }
    PERDURE_TRY(apply("PERDURE_CACHE: " + word, word, value, environment.options));
    environment.options.given["perdure_cache_" + word] = value;
  }
  if (!named) environment.patterns = {"*"};
  environment.options.given["perdure_cache"] = "on";
  return environment;
}

Result<std::shared_ptr<const CacheEnvironment>> read_cache_environment() {
  static std::mutex mutex;
  static std::string known_text;
  static std::shared_ptr<const CacheEnvironment> known;
  const std::string text = environment("PERDURE_CACHE");
  if (text.empty()) return std::shared_ptr<const CacheEnvironment>();
  const std::lock_guard<std::mutex> lock(mutex);
  if (known != nullptr && known_text == text) return known;
  PERDURE_TRY_ASSIGN(auto parsed, parse_cache_environment(text));
  known_text = text;
  known = std::make_shared<const CacheEnvironment>(std::move(parsed));
  return known;
}

bool may_stand_aside(const CacheOptions& options) {
  return options.from != 0 && options.pool.empty() && options.acknowledge != Acknowledge::durable &&
         options.sync == SyncTarget::file && options.fetch == FetchTime::lazy &&
         options.directory.find("%n") == std::string::npos;
}

bool matches(const std::vector<std::string>& patterns, const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    const bool whole = pattern.find('/') != std::string::npos;
    return ::fnmatch(pattern.c_str(), whole ? path.c_str() : name.c_str(), 0) == 0;
  });
}

Result<CacheOptions> choose_cache_options(const KeyValues& hints,
                                          const CacheEnvironment* environment,
                                          const std::string& path) {
  CacheOptions options;
  if (environment != nullptr && matches(environment->patterns, path))
    options = environment->options;
  for (const auto& [key, value] : hints) {
    if (!key.starts_with(prefix)) continue;
    PERDURE_TRY(apply(key, word_of(key), value, options));
    options.given[key] = value;
  }
  if (!options.pool.empty() && !options.cached) {
    return Status(
        Code::invalid_argument, "perdure_cache_pool='", options.pool, "' of ", path,
        ", which is not cached, so it can't be committed with a pool; give perdure_cache=on too");
  }
  return options;
}

Status change_cache_options(const KeyValues& hints, CacheOptions& options) {
  for (const auto& [key, value] : hints) {
    if (!key.starts_with(prefix)) continue;
    const auto known = options.given.find(key);
    if (known != options.given.end() && known->second == value) continue;
    const std::string_view word = word_of(key);
    if (word != "ack" && word != "sync") {
      return Status(Code::invalid_argument, key, "='", value,
                    "' can't be changed while the file is open; only perdure_cache_ack and "
                    "perdure_cache_sync can");
    }
    PERDURE_TRY(apply(key, word, value, options));
    options.given[key] = value;
  }
  return Status::success();
}

}  // namespace perdure
