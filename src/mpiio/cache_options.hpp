// SPDX-License-Identifier: BSD-3-Clause
//
// Cache options: whether a file is cached, and how: by the hints of its MPI_Info, or by the
// environment variable PERDURE_CACHE for a program that can't be changed. Pure, no MPI.
//
// Every hint that begins with "perdure_cache" must be known and well formed; an unknown or
// malformed one is Code::invalid_argument, which names the key, the value and what is allowed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/key_values.hpp"
#include "base/status.hpp"
#include "cache/cache_part.hpp"
#include "parts/ownership.hpp"

namespace perdure {

// What a part costs, in small accesses that go to the file instead (file_aside.hpp).
constexpr std::uint64_t cache_from_default = 1000;
constexpr std::uint64_t cache_from_never = ~std::uint64_t{0};
constexpr std::uint64_t cache_evict_never = EvictingTerms::never;

enum class FetchTime : std::uint8_t { lazy, open };

// What MPI_File_sync waits for.
enum class SyncTarget : std::uint8_t {
  file,  // the cached file has the bytes, durably
  nvm,   // the nodes' parts have them, durably as far as the device does
};

// When what is dirty goes to the cached file.
enum class WriteBackTime : std::uint8_t {
  early,  // while the processes compute, too
  late,   // at a sync and at the close
};

struct CacheOptions {
  bool cached = false;
  std::string directory;  // of the parts; "%n" is the node's number
  LayoutKind layout = LayoutKind::cyclic;
  std::uint64_t block_bytes = std::uint64_t{1} << 20;
  FetchTime fetch = FetchTime::lazy;
  Acknowledge acknowledge = Acknowledge::sync;
  SyncTarget sync = SyncTarget::file;
  WriteBackTime write_back = WriteBackTime::late;
  std::uint64_t from = cache_from_default;  // accesses of a process before its file is cached
  std::uint64_t evict =
      0;             // what a block has to cost before another makes room; 0: as its size says
  std::string pool;  // the directory of the pool with which the file is committed; empty: none
  KeyValues given;   // for MPI_File_get_info
};

// PERDURE_CACHE: "files=/scratch/*.dat:*.h5;directory=/mnt/pmem". Without `files` all files.
struct CacheEnvironment {
  std::vector<std::string> patterns;
  CacheOptions options;
};
Result<CacheEnvironment> parse_cache_environment(const std::string& text);
// What it is now; null if it is not set. A program may set it before it opens a file, so it is
// asked for each time, and seldom parsed.
Result<std::shared_ptr<const CacheEnvironment>> read_cache_environment();

// Whether these options let a file begin aside (file_aside.hpp).
bool may_stand_aside(const CacheOptions& options);

// Whether one of the patterns (fnmatch) matches the path, or, if it has no slash, the name.
bool matches(const std::vector<std::string>& patterns, const std::string& path);

// What the hints and, where they say nothing, the environment want of the file at `path`.
Result<CacheOptions> choose_cache_options(const KeyValues& hints,
                                          const CacheEnvironment* environment,
                                          const std::string& path);

// What a number that was asked for means; it is that of a trial, and so stands for both, and a
// fourth of it for room that is free.
inline EvictingTerms terms_of(const CacheOptions& options) {
  constexpr std::uint64_t by_size = EvictingTerms::as_its_size_says;
  if (options.evict == 0) return EvictingTerms{.room_price = by_size};
  const bool never = options.evict == cache_evict_never;
  return EvictingTerms{options.evict, options.evict, never ? by_size : options.evict / 4};
}

// What may change while a file is open: acknowledge and sync.
Status change_cache_options(const KeyValues& hints, CacheOptions& options);

}  // namespace perdure
