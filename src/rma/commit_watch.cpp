// SPDX-License-Identifier: BSD-3-Clause
#include "rma/commit_watch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/quantity.hpp"
#include "mpi/mpi_library.hpp"
#include "rma/mpi_calls.hpp"

namespace perdure {

// As large as two cache lines, so that no rank's commits disturb another's. MPI promises no more
// than the alignment of words.
struct CommitWatch::Line {
  std::atomic<std::uint64_t> commits;  // that the rank has come to
  std::atomic<std::uint64_t> waits;    // 1: it is in one
  std::atomic<std::uint64_t> rank;     // of the pool
  std::uint64_t unused[13];
};

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::size_t named_max = 8;

Result<std::uint64_t> parse(const char* name, const char* text, std::uint64_t otherwise) {
  if (text == nullptr || *text == '\0') return otherwise;
  if (std::string_view(text) == "off") return std::uint64_t{0};
  const auto time_ns = parse_time_ns(text);
  if (!time_ns || *time_ns == 0) {
    return Status(Code::invalid_argument,
                  std::string(name) + "=" + text + " is no time such as 30s or 10min, nor off");
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

std::unique_ptr<CommitWatch> CommitWatch::create(MPI_Comm comm, const std::string& pool,
                                                 const CommitPatience& patience) {
  if (patience.said_after_ns == 0 && patience.ended_after_ns == 0) return nullptr;
  std::unique_ptr<CommitWatch> watch(new CommitWatch(pool, patience));
  if (!watch->share(comm)) return nullptr;
  watch->thread_ = std::thread([own = watch.get()] { own->work(); });
  return watch;
}

// MPI's calls fail on all ranks or on none.
bool CommitWatch::share(MPI_Comm comm) {
  int rank = 0;
  int ranks = 1;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &ranks);
  ranks_ = static_cast<std::uint32_t>(ranks);
  MPI_Comm machine = comm_null();
  if (PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, info_null(), &machine) !=
      MPI_SUCCESS) {
    return false;
  }
  int own = 0;
  int lines = 1;
  PMPI_Comm_rank(machine, &own);
  PMPI_Comm_size(machine, &lines);
  void* mine = nullptr;
  const int error = WindowCalls::Win_allocate_shared::real(sizeof(Line), 1, info_null(), machine,
                                                           static_cast<void*>(&mine), &win_);
  if (error == MPI_SUCCESS) {
    MPI_Aint bytes = 0;
    int unit = 0;
    void* first = nullptr;
    WindowCalls::Win_shared_query::real(win_, 0, &bytes, &unit, static_cast<void*>(&first));
    line_ = static_cast<Line*>(first);
    own_ = static_cast<std::uint32_t>(own);
    lines_ = static_cast<std::uint32_t>(lines);
    new (&line_[own_]) Line{};
    line_[own_].rank = static_cast<std::uint64_t>(rank);
    PMPI_Barrier(machine);  // the others' are made too
  }
  PMPI_Comm_free(&machine);
  return line_ != nullptr;
}

CommitWatch::~CommitWatch() {
  if (thread_.joinable()) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  int finalized = 0;
  PMPI_Finalized(&finalized);
  if (line_ != nullptr && finalized == 0) WindowCalls::Win_free::real(&win_);
}

void CommitWatch::enter(const char* call, const std::string& window) {
  const std::lock_guard<std::mutex> lock(mutex_);
  since_ns_ = monotonic_ns();
  doing_.assign(call).append(" of window '").append(window).append("'");
  said_ = false;
  line_[own_].waits.store(1, std::memory_order_relaxed);
  line_[own_].commits.fetch_add(1, std::memory_order_release);
}

void CommitWatch::leave() {
  const std::lock_guard<std::mutex> lock(mutex_);
  since_ns_ = 0;
  line_[own_].waits.store(0, std::memory_order_release);
}

std::optional<std::string> CommitWatch::sentence(std::uint64_t waited_ns) const {
  const std::uint64_t commits = line_[own_].commits.load(std::memory_order_relaxed);
  std::vector<std::uint64_t> waiting;
  std::vector<std::uint64_t> missing;
  for (std::uint32_t i = 0; i < lines_; ++i) {
    const std::uint64_t theirs = line_[i].commits.load(std::memory_order_acquire);
    if (theirs < commits) missing.push_back(line_[i].rank);
    const bool waits = theirs == commits && line_[i].waits.load(std::memory_order_acquire) != 0;
    if (waits && i < own_) return std::nullopt;  // that rank says it
    if (waits) waiting.push_back(line_[i].rank);
  }
  if (missing.empty() && lines_ == ranks_) return std::nullopt;  // all came: one is slow
  const bool one = waiting.size() == 1;
  return "Perdure: " + names_of(waiting) + (one ? " has" : " have") + " waited " +
         seconds_of(waited_ns) + " in the commit of " + doing_ + " (pool " + pool_ + ") for " +
         (missing.empty() ? "a rank of another node" : names_of(missing)) +
         ". A commit needs all ranks of the pool, so all must reach it equally often "
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
    const bool over = patience_.ended_after_ns != 0 && waited_ns >= patience_.ended_after_ns;
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
