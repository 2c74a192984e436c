// SPDX-License-Identifier: BSD-3-Clause
#include "rma/window_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <sstream>
#include <string_view>
#include <utility>

#include "pool/array_entry.hpp"
#include "pool/slot_format.hpp"

namespace perdure {
namespace {

constexpr std::string_view prefix = "perdure_";
constexpr unsigned keep_max = 63;
constexpr unsigned threads_max = 256;

Status set_mode(const std::string& key, const std::string& value, WindowMode& mode) {
  return set_choice<WindowMode>(key, value, "copy, log, twin or flush",
                                {{"copy", WindowMode::copy},
                                 {"log", WindowMode::log},
                                 {"twin", WindowMode::twin},
                                 {"flush", WindowMode::flush}},
                                mode);
}

Status set_delay(const std::string& key, const std::string& value, perdure_delay& delay) {
  return set_choice<perdure_delay>(key, value, "virtual, wait or drain",
                                   {{"virtual", PERDURE_DELAY_VIRTUAL},
                                    {"wait", PERDURE_DELAY_WAIT},
                                    {"drain", PERDURE_DELAY_DRAIN}},
                                   delay);
}

Status set_restore(const std::string& key, const std::string& value, WindowPoolOptions& pool) {
  if (value == "newest" || value == "discard") {
    pool.restore = value == "newest" ? RestoreChoice::newest : RestoreChoice::discard;
    return Status::success();
  }
  auto version = parse_number(key, value, 1, (std::uint64_t{1} << 36) - 1);
  if (!version.ok()) return wrong_value(key, value, "newest, discard or a version's number");
  pool.restore = RestoreChoice::version;
  pool.version = version.value();
  return Status::success();
}

Status set_free(const std::string& key, const std::string& value, bool& delete_at_free) {
  if (value != "keep" && value != "delete") return wrong_value(key, value, "keep or delete");
  delete_at_free = value == "delete";
  return Status::success();
}

Status set_commit(const std::string& value, CommitRule& rule) {
  PERDURE_TRY_ASSIGN(rule, parse_commit_rule(value));
  return Status::success();
}

Status set_ranks(const std::string& key, const std::string& value, WindowOptions& options) {
  options.pool.any_ranks = true;
  return set_choice<RankRule>(
      key, value, "rows, same or by_hand",
      {{"rows", RankRule::rows}, {"same", RankRule::same}, {"by_hand", RankRule::by_hand}},
      options.ranks);
}

Status set_box(const std::string& value, WindowOptions& options) {
  options.pool.any_ranks = true;
  PERDURE_TRY_ASSIGN(options.box, parse_window_box(value));
  return Status::success();
}

// One key, `key` with its prefix for messages and `word` without it.
Status apply(const std::string& key, std::string_view word, const std::string& value,
             WindowOptions& options) {
  WindowPoolOptions& pool = options.pool;
  if (word == "name") return set_text(key, value, options.name);
  if (word == "pool") return set_text(key, value, pool.path);
  if (word == "mode") return set_mode(key, value, options.mode);
  if (word == "commit") return set_commit(value, options.commit);
  if (word == "restore") return set_restore(key, value, pool);
  if (word == "keep") return set_unsigned(key, value, keep_max, pool.keep);
  if (word == "levels") return set_text(key, value, pool.levels);
  if (word == "async") return set_bool(key, value, options.asynchronous);
  if (word == "free") return set_free(key, value, options.delete_at_free);
  if (word == "job") return set_text(key, value, pool.job);
  if (word == "emulate") return set_text(key, value, pool.emulate);
  if (word == "delay") return set_delay(key, value, pool.delay);
  if (word == "threads") return set_unsigned(key, value, threads_max, pool.threads);
  if (word == "allow_older") return set_bool(key, value, pool.allow_older);
  if (word == "checksum") return set_bool(key, value, options.checksums);
  if (word == "ranks") return set_ranks(key, value, options);
  if (word == "box") return set_box(value, options);
  return Status(Code::invalid_argument, "unknown key '", key, "'; perdure_mpi.h lists them");
}

bool in_pool(WindowMode mode) {
  return mode == WindowMode::twin || mode == WindowMode::flush;
}

Status check(const WindowOptions& options) {
  if (options.pool.path.empty()) {
    return {Code::invalid_argument,
            "a persistent window needs perdure_pool, the directory of its pool; give the key, or "
            "set PERDURE_POOL"};
  }
  if (options.asynchronous && in_pool(options.mode)) {
    return {Code::invalid_argument,
            "perdure_async is for modes copy and log: the others copy nothing that could be done "
            "later"};
  }
  if (options.box && options.ranks != RankRule::none) {
    return {Code::invalid_argument,
            "perdure_box and perdure_ranks contradict each other: a part of a global array is "
            "divided by its box"};
  }
  if (options.checksums.value_or(false) && options.mode == WindowMode::flush) {
    return {Code::invalid_argument,
            "perdure_checksum=true: mode flush keeps no version whose checksum could hold"};
  }
  return Status::success();
}

bool commits(const CommitRule& rule) {
  return std::any_of(std::begin(rule.every), std::end(rule.every),
                     [](std::uint64_t every) { return every != 0; });
}

// "fence/10": the trigger and every how many.
Status add_trigger(const std::string& item, CommitRule& rule) {
  const std::size_t slash = item.find('/');
  const std::string name = item.substr(0, slash);
  for (std::size_t i = 0; i < trigger_count; ++i) {
    if (name != trigger_name(static_cast<Trigger>(i))) continue;
    if (rule.every[i] != 0) return wrong_value("perdure_commit", item, "to be said twice");
    rule.every[i] = 1;
    if (slash == std::string::npos) return Status::success();
    PERDURE_TRY_ASSIGN(rule.every[i],
                       parse_number("perdure_commit: " + name + "/k, k", item.substr(slash + 1), 1,
                                    std::uint64_t{1} << 32));
    return Status::success();
  }
  return wrong_value("perdure_commit", item,
                     "none, fence, wait, unlock, unlock_all or flush_all, each perhaps with /k");
}

// Numbers with `between` between them.
Result<std::vector<std::uint64_t>> parse_extents(const std::string& what, const std::string& text,
                                                 char between) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(between, begin), text.size());
    PERDURE_TRY_ASSIGN(const auto number,
                       parse_number("perdure_box: " + what, text.substr(begin, end - begin), 0,
                                    std::uint64_t{1} << 48));
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

}  // namespace

Result<WindowBox> parse_window_box(const std::string& text) {
  const std::size_t of = text.find(" of ");
  const std::size_t at = text.find(" at ");
  const char* const form =
      "OWN of GLOBAL at FIRST, such as '16x64 of 64x64 at 16,0', in displacement units";
  if (of == std::string::npos || at == std::string::npos || at < of + 4) {
    return wrong_value("perdure_box", text, form);
  }
  WindowBox box;
  PERDURE_TRY_ASSIGN(box.own, parse_extents("own extents", text.substr(0, of), 'x'));
  PERDURE_TRY_ASSIGN(box.global,
                     parse_extents("global extents", text.substr(of + 4, at - of - 4), 'x'));
  PERDURE_TRY_ASSIGN(box.first, parse_extents("first cell", text.substr(at + 4), ','));
  const std::size_t dimensions = box.own.size();
  if (dimensions >= dimensions_max || box.global.size() != dimensions ||
      box.first.size() != dimensions) {
    return wrong_value("perdure_box", text, form);
  }
  for (std::size_t i = 0; i < dimensions; ++i) {
    if (box.first[i] <= box.global[i] && box.own[i] <= box.global[i] - box.first[i]) continue;
    return Status(Code::invalid_argument, "perdure_box='", text, "' reaches beyond the global ",
                  box.global[i], " cells of dimension ", i);
  }
  return box;
}

const char* trigger_name(Trigger trigger) {
  constexpr std::array<const char*, trigger_count> names = {"fence", "wait", "unlock", "unlock_all",
                                                            "flush_all"};
  return names[static_cast<std::size_t>(trigger)];
}

Result<CommitRule> parse_commit_rule(const std::string& text) {
  CommitRule rule;
  if (text == "none") return rule;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    PERDURE_TRY(add_trigger(text.substr(begin, comma - begin), rule));
    begin = comma + 1;
  }
  return rule;
}

Result<std::optional<WindowOptions>> parse_window_info(const KeyValues& keys,
                                                       const std::string& default_pool) {
  WindowOptions options;
  options.pool.path = default_pool;
  for (const auto& [key, value] : keys) {
    if (!key.starts_with(prefix)) continue;
    PERDURE_TRY(apply(key, std::string_view(key).substr(prefix.size()), value, options));
    options.given[key] = value;
  }
  if (options.given.empty()) return std::optional<WindowOptions>();
  if (options.name.empty()) {
    return Status(Code::invalid_argument, options.given.begin()->first,
                  " is given without perdure_name, which makes a window persistent");
  }
  PERDURE_TRY(check(options));
  return std::optional<WindowOptions>(std::move(options));
}

const char* mode_name(WindowMode mode) {
  constexpr const char* names[] = {"copy", "log", "twin", "flush"};
  return names[static_cast<int>(mode)];
}

std::string said_by_all(const WindowOptions& options) {
  constexpr const char* rules[] = {"none", "rows", "same", "by_hand"};
  std::ostringstream said;
  if (!options.by_environment) said << "perdure_name=" << quoted(options.name) << ", ";
  said << "perdure_mode=" << mode_name(options.mode);
  for (std::size_t i = 0; i < trigger_count; ++i) {
    const std::uint64_t every = options.commit.every[i];
    if (every == 0) continue;
    said << ", a commit each " << every << " calls of " << trigger_name(static_cast<Trigger>(i));
  }
  if (options.asynchronous) said << ", perdure_async=true";
  if (options.checksums) said << ", perdure_checksum=" << (*options.checksums ? "true" : "false");
  if (options.ranks != RankRule::none)
    said << ", perdure_ranks=" << rules[static_cast<int>(options.ranks)];
  if (options.delete_at_free) said << ", perdure_free=delete";
  const WindowPoolOptions& pool = options.pool;
  if (!pool.job.empty()) said << ", perdure_job=" << quoted(pool.job);
  if (pool.keep != 0) said << ", perdure_keep=" << pool.keep;
  if (pool.restore == RestoreChoice::discard) said << ", perdure_restore=discard";
  if (pool.restore == RestoreChoice::version) said << ", perdure_restore=" << pool.version;
  if (pool.allow_older) said << ", perdure_allow_older=true";
  if (options.by_environment) said << ", by PERDURE_WINDOWS";
  if (options.by_environment && options.halves) said << " with halves=asked";
  return said.str();
}

Result<WindowOptions> parse_window_environment(const std::string& text) {
  WindowOptions options;
  options.by_environment = true;
  options.delete_at_free = true;
  options.halves = false;
  PERDURE_TRY_ASSIGN(const auto items,
                     split_key_values(text, "PERDURE_WINDOWS", "pool=/mnt/pmem/job;commit=fence"));
  for (const auto& [word, value] : items) {
    if (word == "halves" && value == "asked") {
      options.halves = true;
      continue;
    }
    if (word == "name") {
      return Status(Code::invalid_argument,
                    "PERDURE_WINDOWS: windows are named by us, name= can't be given");
    }
    if (word == "box") {
      return Status(Code::invalid_argument,
                    "PERDURE_WINDOWS: box= is each rank's own and one window's; give the window "
                    "its info key perdure_box, or say ranks=rows, same or by_hand");
    }
    PERDURE_TRY(apply("PERDURE_WINDOWS: " + word, word, value, options));
  }
  if (options.mode == WindowMode::twin && commits(options.commit) && !options.halves) {
    return Status(
        Code::invalid_argument,
        "PERDURE_WINDOWS: after a commit in mode=twin the window's memory is another one, "
        "which only a program that calls perdure_win_halves() notices; say halves=asked "
        "if this one does, or use copy, log or flush");
  }
  PERDURE_TRY(check(options));
  return options;
}

}  // namespace perdure
