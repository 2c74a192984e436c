// SPDX-License-Identifier: BSD-3-Clause
#include "base/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "base/process_place.hpp"

namespace perdure {
namespace {

constexpr std::string_view prefix = "PERDURE_";

// A test compares them with docs/environment.md.
constexpr auto names = std::to_array<std::string_view>({
    "PERDURE_ANY_OWNER",
    "PERDURE_BENCH_DIR",
    "PERDURE_BENCH_DISK",
    "PERDURE_BENCH_MPICH5",
    "PERDURE_BUILD",
    "PERDURE_CACHE",
    "PERDURE_CACHE_HOST",
    "PERDURE_CACHE_MODEL",
    "PERDURE_CACHE_REPORT",
    "PERDURE_CHECK",
    "PERDURE_CHECKSUM",
    "PERDURE_CLANG",
    "PERDURE_COMMIT_LIMIT",
    "PERDURE_COMMIT_PATIENCE",
    "PERDURE_CONFIG",
    "PERDURE_CRASH_IMAGE",
    "PERDURE_DEVICES",
    "PERDURE_EMULATE",
    "PERDURE_ENERGY_PLAN",
    "PERDURE_ENERGY_PROFILE",
    "PERDURE_ENERGY_REPORT",
    "PERDURE_ENERGY_STATE",
    "PERDURE_ENERGY_TIMEOUT_MS",
    "PERDURE_ENERGY_TOKENS",
    "PERDURE_FAKE_COUNT",
    "PERDURE_FAKE_KILL",
    "PERDURE_FILES_DIR",
    "PERDURE_FLANG",
    "PERDURE_FLUSH",
    "PERDURE_FUZZ_INPUTS",
    "PERDURE_GCC",
    "PERDURE_GLUSTER",
    "PERDURE_IPV",
    "PERDURE_IPV_CHECK",
    "PERDURE_IPV_EXPLAIN",
    "PERDURE_IPV_HISTORIES",
    "PERDURE_ISAL",
    "PERDURE_JAX_PYTHON",
    "PERDURE_KEEPER",
    "PERDURE_KILL",
    "PERDURE_KNOWN_FAILURES",
    "PERDURE_LEVELS",
    "PERDURE_LOCK_WAIT_MS",
    "PERDURE_MPI_TIMEOUT",
    "PERDURE_NODE_ID",
    "PERDURE_ORACLE_ROOM",
    "PERDURE_ORACLE_RUNS",
    "PERDURE_ORACLE_TRACE",
    "PERDURE_PASS",
    "PERDURE_POOL",
    "PERDURE_PRELOAD_FIRST",
    "PERDURE_PYTHON",
    "PERDURE_RECORD",
    "PERDURE_ROOT",
    "PERDURE_ROUNDS",
    "PERDURE_RUN_DIR",
    "PERDURE_RUN_SHARED",
    "PERDURE_SKIP_PACKAGES",
    "PERDURE_SLOW_TESTS",
    "PERDURE_SMALL_POOL",
    "PERDURE_SUITE_VARIANT",
    "PERDURE_SYSFS_ROOT",
    "PERDURE_TEST_ACKNOWLEDGE",
    "PERDURE_TEST_DIR",
    "PERDURE_TEST_GRAPH",
    "PERDURE_TEST_INTERVALS",
    "PERDURE_TEST_MPICC_NAME",
    "PERDURE_TEST_MPIEXEC_NAME",
    "PERDURE_TEST_MPIS",
    "PERDURE_TEST_POWER_NAMESPACE",
    "PERDURE_TEST_SEED",
    "PERDURE_TORCH_PYTHON",
    "PERDURE_TRACE",
    "PERDURE_TRACE_STARTED_AGAIN",
    "PERDURE_TRACKER",
    "PERDURE_WINDOWS",
});

constexpr std::size_t name_bytes_max = std::ranges::max(names, {}, &std::string_view::size).size();

// Letters to insert, take away or exchange until one is the other, a name that is known here
// (Levenshtein).
std::size_t slips_between(std::string_view one, std::string_view other) {
  std::array<std::size_t, name_bytes_max + 1> row{};
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t exchanged = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({exchanged, row[j] + 1, diagonal + 1});
    }
  }
  return row[other.size()];
}

// Names that end so are known with any word in place of it.
constexpr std::string_view any = "_NAME";

void say_unknown(std::string_view name) {
  const std::string_view like = variable_like(name);
  std::string line =
      "perdure: the variable " + std::string(name) + " is set, and Perdure reads none of that name";
  if (!like.empty()) line += "; did you mean " + std::string(like) + "?";
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace

std::string environment(const char* name) {
  const char* const text = ::secure_getenv(name);
  return text == nullptr ? "" : text;
}

std::span<const std::string_view> known_variables() {
  return names;
}

bool is_known_variable(std::string_view name) {
  return std::ranges::any_of(names, [name](std::string_view known) {
    if (!known.ends_with(any)) return name == known;
    return name.starts_with(known.substr(0, known.size() - any.size() + 1));
  });
}

std::string_view variable_like(std::string_view name) {
  const std::string_view* nearest = nullptr;
  // One more than is a slip of the keys.
  const std::size_t own = name.size() - std::min(name.size(), prefix.size());
  std::size_t fewest = std::min<std::size_t>(3, 1 + own / 4) + 1;
  for (const std::string_view& known : names) {
    const std::size_t slips = slips_between(name, known);
    if (slips < fewest) {
      fewest = slips;
      nearest = &known;
    }
  }
  return nullptr == nearest ? std::string_view() : *nearest;
}

void say_unknown_variables() {
  static std::atomic<bool> said{false};
  if (said.exchange(true) || place_of_environment().rank != 0) return;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (name.starts_with(prefix) && !is_known_variable(name)) say_unknown(name);
  }
}

}  // namespace perdure
