// SPDX-License-Identifier: BSD-3-Clause
#include "base/commit_watch.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/guests.hpp"
#include "base/quantity.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::size_t named_max = 8;

Result<std::uint64_t> parse(const char* name, const char* text, std::uint64_t otherwise) {
  if (text == nullptr || *text == '\0') return otherwise;
  if (std::string_view(text) == "off") return std::uint64_t{0};
  const auto time_ns = parse_time_ns(text);
  if (!time_ns || *time_ns == 0) {
    return Status(Code::invalid_argument, name, "=", text,
                  " is neither a time, such as 30s or 10min, nor off");
  }
  return *time_ns;
}

// "rank 3", "ranks 1, 3 and 5", "ranks 1, 3 and 70 more".
std::string names_of(const std::vector<std::uint64_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const std::size_t named = ranks.size() > named_max ? named_max : ranks.size();
  for (std::size_t i = 0; i < named; ++i) {
    const bool last = i + 1 == ranks.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + std::to_string(ranks[i]);
  }
  if (named < ranks.size()) text += " and " + std::to_string(ranks.size() - named) + " more";
  return text;
}

std::string seconds_of(std::uint64_t ns) {
  return std::to_string(ns / second_ns) + " s";
}

}  // namespace

Result<CommitPatience> parse_commit_patience(const char* patience, const char* limit) {
  CommitPatience parsed;
  PERDURE_TRY_ASSIGN(parsed.said_after_ns,
                     parse("PERDURE_COMMIT_PATIENCE", patience, parsed.said_after_ns));
  PERDURE_TRY_ASSIGN(parsed.ended_after_ns, parse("PERDURE_COMMIT_LIMIT", limit, 0));
  return parsed;
}

Result<CommitPatience> commit_patience_of_environment() {
  return parse_commit_patience(environment("PERDURE_COMMIT_PATIENCE").c_str(),
                               environment("PERDURE_COMMIT_LIMIT").c_str());
}

CommitWatch::CommitWatch(std::string pool, const CommitPatience& patience, CommitLines lines)
    : pool_(std::move(pool)), patience_(patience), lines_(std::move(lines)) {}

CommitWatch::~CommitWatch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// The program's signals are for its own threads.
void CommitWatch::start() {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits it
  thread_ = start_own_thread([this] { work(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void CommitWatch::enter(std::string doing, Call call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  since_ns_ = monotonic_ns();
  doing_ = std::move(doing);
  call_ = call;
  said_ = false;
  CommitLine& own = line(lines_.own);
  own.waits.store(1, std::memory_order_relaxed);
  own.commits.fetch_add(1, std::memory_order_release);
  if (call != Call::fence && !thread_.joinable() && !patience_.endless()) start();
}

void CommitWatch::leave() {
  const std::lock_guard<std::mutex> lock(mutex_);
  since_ns_ = 0;
  line(lines_.own).waits.store(0, std::memory_order_release);
}

std::optional<std::string> CommitWatch::sentence(std::uint64_t waited_ns) const {
  const std::uint64_t commits = line(lines_.own).commits.load(std::memory_order_relaxed);
  std::vector<std::uint64_t> waiting;
  std::vector<std::uint64_t> missing;
  for (std::uint32_t i = 0; i < lines_.count; ++i) {
    const std::uint64_t theirs = line(i).commits.load(std::memory_order_acquire);
    if (theirs < commits) missing.push_back(line(i).rank);
    const bool waits = theirs == commits && line(i).waits.load(std::memory_order_acquire) != 0;
    if (waits && i < lines_.own) return std::nullopt;  // that rank says it
    if (waits) waiting.push_back(line(i).rank);
  }
  const bool known = lines_.count == lines_.ranks || call_ == Call::other;
  if (missing.empty() && known) return std::nullopt;  // all came: one is slow
  const bool one = waiting.size() == 1;
  return "Perdure: " + names_of(waiting) + (one ? " has" : " have") + " waited " +
         seconds_of(waited_ns) + " in " + doing_ + " (pool " + pool_ + ") for " +
         (missing.empty() ? "a rank of another node" : names_of(missing)) +
         ". It needs all ranks of the pool, so all must come to it, equally often "
         "(docs/windows.md)";
}

void CommitWatch::work() {
  const std::uint64_t first_ns =
      patience_.said_after_ns != 0 ? patience_.said_after_ns : patience_.ended_after_ns;
  const auto look_again = std::chrono::nanoseconds(
      std::clamp<std::uint64_t>(first_ns / 4, second_ns / 20, 5 * second_ns));
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, look_again, [this] { return stopping_; })) {
    if (since_ns_ == 0) continue;
    const std::uint64_t waited_ns = monotonic_ns() - since_ns_;
    const bool over = patience_.ended_after_ns != 0 && waited_ns >= patience_.ended_after_ns &&
                      call_ != Call::other;
    const bool late = patience_.said_after_ns != 0 && waited_ns >= patience_.said_after_ns;
    if (!over && (!late || said_)) continue;
    const auto text = sentence(waited_ns);
    said_ = said_ || text.has_value();
    if (text && over) {
      std::fprintf(stderr, "%s; PERDURE_COMMIT_LIMIT ends the job\n", text->c_str());
      std::_Exit(EXIT_FAILURE);
    }
    if (text) {
      std::fprintf(stderr, "%s; it goes on waiting, unless PERDURE_COMMIT_LIMIT is set\n",
                   text->c_str());
    }
  }
}

}  // namespace perdure
