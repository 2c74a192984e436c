// SPDX-License-Identifier: BSD-3-Clause
//
// A job of persistent windows that is killed at any moment and started again (perdure bench kill).
//
// Every rank holds cells; a step mixes each with its number and with what the left neighbour put
// into the first ones, and puts the own first ones into the right neighbour. So the contents after
// n steps depend on all before, on all ranks, bit for bit, and a restart from a version that is not
// whole, or not the same on all ranks, ends with another hash.
//
//   fence    fence, put, fence; every second fence commits      pscw      MPI_Win_wait commits
//   passive  lock_all, put, flush_all, which commits            dynamic   attached memory,
//   lock_all, two      half of the cells in a second window (twin) of perdure_win_commit
//            the pool; a fence with PERDURE_MODE_COMMIT
//   list     as dynamic, one region for each 64 cells, and more of them with every step
//   accumulate  lock_all; each of MPI's atomic calls in place of the put (accumulates.hpp). In mode
//            flush, which has no versions, they go to a window that each step fills anew, and whose
//            contents it then mixes into cells in mode copy
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "perdure/perdure_mpi.h"
#include "windows/accumulates.hpp"

namespace {

constexpr std::size_t put_cells = 16;   // that the left neighbour puts
constexpr std::size_t node_cells = 64;  // of pattern list

struct Options {
  std::string pattern = "fence";
  std::string mode = "copy";
  std::string pool = "window_job.pool";
  std::uint64_t iterations = 16;
  std::size_t cells = std::size_t{1} << 14;
  bool async = false;
};

int rank = 0;
int ranks = 1;

void check(int code, const char* what) {
  if (code == PERDURE_OK) return;
  throw std::runtime_error(std::string(what) + ": " + perdure_last_error());
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + 0x9E3779B97F4A7C15U * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

// One persistent window with the cells from which a step reads, and to which it writes.
class Cells {
 public:
  Cells(const Options& options, const std::string& name, const std::string& mode,
        const std::string& commit)
      : twin_(mode == "twin"),
        count_(options.cells),
        landing_(options.pattern == "accumulate" ? Accumulates::landing : put_cells) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "perdure_name", name.c_str());
    MPI_Info_set(info, "perdure_pool", options.pool.c_str());
    MPI_Info_set(info, "perdure_mode", mode.c_str());
    MPI_Info_set(info, "perdure_commit", commit.c_str());
    if (options.async) MPI_Info_set(info, "perdure_async", "true");
    if (options.pattern == "dynamic" || options.pattern == "list") {
      MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &window_);
      make_memory();
      list_ = options.pattern == "list";
      step_cells_ = count_ / 2 / options.iterations / node_cells * node_cells;
      if (list_) count_ = 0;
      if (!list_) attach(0, count_);
    } else {
      void* base = nullptr;
      MPI_Win_allocate(static_cast<MPI_Aint>(count_ * 8), 8, info, MPI_COMM_WORLD,
                       static_cast<void*>(&base), &window_);
    }
    MPI_Info_free(&info);
  }
  ~Cells() { MPI_Win_free(&window_); }
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;

  MPI_Win window() const { return window_; }
  std::size_t count() const { return count_; }

  // Cells that the left neighbour changes.
  std::size_t landing() const { return landing_; }

  std::uint64_t* written() const {
    if (!memory_.empty()) return const_cast<std::uint64_t*>(memory_.data());
    return base_of(half(true));
  }
  const std::uint64_t* read() const { return twin_ ? base_of(half(false)) : written(); }

  // Pattern list: the list has the nodes of step `step`. Those that a restored version has come
  // back as they were.
  void grow(std::uint64_t step) {
    const std::size_t wanted = memory_.size() / 2 + step * step_cells_;
    for (; list_ && count_ < wanted; count_ += node_cells) attach(count_, node_cells);
  }

  // The first own cells to the right neighbour's landing cells.
  void put() const {
    const int right = (rank + 1) % ranks;
    const auto to = addresses_.empty() ? 0 : addresses_[static_cast<std::size_t>(right)];
    MPI_Put(written() + landing_, static_cast<int>(landing_), MPI_UINT64_T, right, to,
            static_cast<int>(landing_), MPI_UINT64_T, window_);
  }

 private:
  void attach(std::size_t first, std::size_t cells) {
    MPI_Win_attach(window_, &memory_[first], static_cast<MPI_Aint>(cells * 8));
  }
  // What a region holds when it is attached for the first time is what step 0 began with.
  void make_memory() {
    for (std::size_t i = 0; i < count_; ++i) {
      memory_.push_back(mix(static_cast<std::uint64_t>(rank), i));
    }
    MPI_Aint mine = 0;
    MPI_Get_address(memory_.data(), &mine);
    addresses_.resize(static_cast<std::size_t>(ranks));
    MPI_Allgather(&mine, 1, MPI_AINT, addresses_.data(), 1, MPI_AINT, MPI_COMM_WORLD);
  }
  MPI_Win half(bool working) const {
    if (!twin_) return window_;
    MPI_Win halves[2] = {MPI_WIN_NULL, MPI_WIN_NULL};
    check(perdure_win_halves(window_, &halves[0], &halves[1]), "perdure_win_halves");
    return halves[working ? 1 : 0];
  }
  static std::uint64_t* base_of(MPI_Win window) {
    std::uint64_t* base = nullptr;
    int found = 0;
    MPI_Win_get_attr(window, MPI_WIN_BASE, static_cast<void*>(&base), &found);
    return base;
  }

  bool twin_;
  std::size_t count_;
  std::size_t landing_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::uint64_t> memory_;  // of regions
  bool list_ = false;
  std::size_t step_cells_ = 0;
  std::vector<MPI_Aint> addresses_;
};

void start(const Cells& cells) {
  for (std::size_t i = 0; i < cells.count(); ++i) {
    cells.written()[i] = mix(static_cast<std::uint64_t>(rank), i);
  }
}

// In mode twin the landing cells of the new half come from the neighbour alone, or, where it
// accumulates, from those of the old half first.
void compute(const Cells& cells, std::uint64_t step, bool first, bool lands_on_old) {
  const std::uint64_t* from = first ? cells.written() : cells.read();
  std::uint64_t* to = cells.written();
  const std::size_t landing = cells.landing();
  for (std::size_t i = landing; i < cells.count(); ++i) {
    to[i] = mix(from[i] ^ from[i % landing], step);
  }
  for (std::size_t i = 0; lands_on_old && i < landing; ++i) to[i] = mix(from[i], step);
}

std::string commit_rule(const Options& options) {
  if (options.pattern == "fence") return "fence/2";
  if (options.pattern == "pscw") return "wait";
  return options.pattern == "passive" ? "flush_all" : "none";
}

class Job {
 public:
  explicit Job(const Options& options)
      : options_(options),
        accumulates_(rank, (rank + 1) % ranks),
        cells_(options, "cells", options.mode == "flush" ? "copy" : options.mode,
               commit_rule(options)) {
    if (options.mode == "flush") {
      scratch_ = std::make_unique<Cells>(options, "scratch", options.mode, "none");
    }
    if (options.pattern == "two") {
      more_ = std::make_unique<Cells>(options, "more cells", "twin", "none");
    }
    perdure_pool* pool = nullptr;
    check(perdure_win_restart(cells_.window(), &version_), "perdure_win_restart");
    check(perdure_win_pool(cells_.window(), &pool), "perdure_win_pool");
    check(perdure_scalar(pool, "iteration", &iteration_, sizeof iteration_), "perdure_scalar");
    cells_.grow(iteration_ == 0 ? 0 : iteration_ - 1);
    if (version_ == 0) start(cells_);
    if (version_ == 0 && more_) start(*more_);
    if (passive()) MPI_Win_lock_all(0, cells_.window());
    if (scratch_) MPI_Win_lock_all(0, scratch_->window());
    make_groups();
  }
  ~Job() {
    if (scratch_) MPI_Win_unlock_all(scratch_->window());
    if (passive()) MPI_Win_unlock_all(cells_.window());
    MPI_Group_free(&right_);
    MPI_Group_free(&left_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void run() {
    bool first = version_ == 0;
    while (iteration_ < options_.iterations) {
      cells_.grow(iteration_);
      compute(cells_, iteration_, first, accumulating());
      if (more_) compute(*more_, iteration_, first, false);
      ++iteration_;  // part of the version that the step ends with
      exchange_and_commit();
      first = false;
    }
  }
  std::uint64_t restored_version() const { return version_; }
  std::uint64_t hash() const {
    std::uint64_t hash = hash_of(cells_);
    if (more_) hash = mix(hash, hash_of(*more_));
    std::vector<std::uint64_t> all(static_cast<std::size_t>(ranks));
    MPI_Allgather(&hash, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD);
    for (const std::uint64_t each : all) hash = mix(each, hash);
    MPI_Bcast(&hash, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return hash;
  }

 private:
  bool passive() const {
    return options_.pattern == "passive" || options_.pattern == "dynamic" ||
           options_.pattern == "list" || accumulating();
  }
  bool accumulating() const { return options_.pattern == "accumulate"; }

  void make_groups() {
    MPI_Group all{};
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    const int right = (rank + 1) % ranks;
    const int left = (rank + ranks - 1) % ranks;
    MPI_Group_incl(all, 1, &right, &right_);
    MPI_Group_incl(all, 1, &left, &left_);
    MPI_Group_free(&all);
  }

  // What the calls returned goes to a cell that nobody accumulates in.
  void accumulate_and_commit() {
    const Cells& target = scratch_ ? *scratch_ : cells_;
    std::uint64_t* cells = cells_.written();
    for (std::size_t i = 0; scratch_ && i < Accumulates::landing; ++i) {
      scratch_->written()[i] = mix(i, iteration_);
    }
    MPI_Win_sync(target.window());
    MPI_Barrier(MPI_COMM_WORLD);
    cells[cells_.count() - 1] ^=
        accumulates_.run(target.window(), cells + Accumulates::landing, iteration_);
    if (scratch_) {
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Win_sync(target.window());
      for (std::size_t i = 0; i < Accumulates::landing; ++i) cells[i] ^= scratch_->written()[i];
    }
    check(perdure_win_commit(cells_.window(), nullptr), "perdure_win_commit");
  }

  void exchange_and_commit() {
    MPI_Win window = cells_.window();
    if (accumulating()) {
      accumulate_and_commit();
    } else if (options_.pattern == "fence") {
      MPI_Win_fence(0, window);
      cells_.put();
      MPI_Win_fence(0, window);
    } else if (options_.pattern == "pscw") {
      MPI_Win_post(left_, 0, window);
      MPI_Win_start(right_, 0, window);
      cells_.put();
      MPI_Win_complete(window);
      MPI_Win_wait(window);
    } else if (passive()) {
      MPI_Barrier(MPI_COMM_WORLD);  // the neighbour has read what this put replaces
      cells_.put();
      if (options_.pattern == "passive") {
        MPI_Win_flush_all(window);
      } else {
        check(perdure_win_commit(window, nullptr), "perdure_win_commit");
      }
    } else {
      MPI_Win_fence(0, window);
      MPI_Win_fence(0, more_->window());
      cells_.put();
      more_->put();
      MPI_Win_fence(0, more_->window());
      MPI_Win_fence(PERDURE_MODE_COMMIT, window);
    }
  }

  static std::uint64_t hash_of(const Cells& cells) {
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < cells.count(); ++i) hash = mix(hash ^ cells.read()[i], i);
    return hash;
  }

  const Options& options_;
  Accumulates accumulates_;
  Cells cells_;
  std::unique_ptr<Cells> more_;
  std::unique_ptr<Cells> scratch_;  // pattern accumulate in mode flush
  MPI_Group left_{};
  MPI_Group right_{};
  std::uint64_t version_ = 0;
  std::uint64_t iteration_ = 0;
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("A job of persistent windows, to be killed and restarted");
  app.add_option("--pattern", options.pattern)
      ->check(CLI::IsMember({"fence", "pscw", "passive", "dynamic", "list", "two", "accumulate"}));
  app.add_option("--mode", options.mode)->check(CLI::IsMember({"copy", "log", "twin", "flush"}));
  app.add_option("--pool", options.pool);
  app.add_option("--iterations", options.iterations);
  app.add_option("--cells", options.cells)->check(CLI::Range(64, 1 << 24));
  app.add_flag("--async", options.async);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  const bool accumulates = options.pattern == "accumulate";
  if (options.mode == "flush" && !accumulates) {
    throw std::runtime_error("mode flush is for pattern accumulate");
  }
  if (accumulates && options.cells <= Accumulates::landing + Accumulates::many) {
    throw std::runtime_error("too few cells to accumulate in");
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  try {
    const Options options = parse(argc, argv);
    Job job(options);
    const auto begun = std::chrono::steady_clock::now();
    job.run();
    const std::chrono::duration<double> loop = std::chrono::steady_clock::now() - begun;
    const std::uint64_t hash = job.hash();
    if (rank == 0) {
      std::printf(
          "{\"program\": \"window_job\", \"loop_s\": %.6f, \"restored_version\": %llu, "
          "\"hash\": \"%016llx\"}\n",
          loop.count(), static_cast<unsigned long long>(job.restored_version()),
          static_cast<unsigned long long>(hash));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "window_job: rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
