// SPDX-License-Identifier: BSD-3-Clause
#include "window_state.hpp"

#include <algorithm>
#include <string>

#include "job/collective.hpp"
#include "job/pool_calls.hpp"
#include "job/stopwatch.hpp"
#include "problem.hpp"

namespace pagerank {
namespace {

using job::check;

Window make_window(const Graph& graph, const Options& options) {
  MPI_Info hints = MPI_INFO_NULL;
  MPI_Info_create(&hints);
  const auto set = [&](const char* key, const std::string& value) {
    job::check_mpi(MPI_Info_set(hints, key, value.c_str()), key);
  };
  set("perdure_name", "shares");
  set("perdure_pool", options.pool);
  set("perdure_job", "pagerank");
  set("perdure_mode", name_of(options.protection));
  if (!options.emulation.model.empty()) set("perdure_emulate", options.emulation.model);
  set("perdure_delay", options.emulation.delay);
  Window window(graph.values(), hints);
  MPI_Info_free(&hints);
  return window;
}

double* base_of(MPI_Win window) {
  void* base = nullptr;
  int found = 0;
  job::check_mpi(MPI_Win_get_attr(window, MPI_WIN_BASE, static_cast<void*>(&base), &found),
                 "MPI_Win_get_attr");
  if (found == 0) throw std::runtime_error("MPI_Win_get_attr: a half has no MPI_WIN_BASE");
  return static_cast<double*>(base);
}

}  // namespace

WindowState::WindowState(const Graph& graph, const Options& options)
    : State(graph),
      twin_(options.protection == Protection::twin),
      problem_(problem_of(graph, options)),
      problem_of_pool_(problem_),
      window_(make_window(graph, options)) {}

std::uint64_t WindowState::restore() {
  std::uint64_t version = 0;
  check(perdure_win_restart(window_.handle(), &version), "perdure_win_restart");
  check(perdure_win_pool(window_.handle(), &pool_), "perdure_win_pool");
  const auto scalar = [&](const char* name, void* address, std::size_t bytes) {
    check(perdure_scalar(pool_, name, address, bytes), "perdure_scalar");
  };
  scalar("iteration", &scalars_.iteration, sizeof scalars_.iteration);
  scalar("dangling", &scalars_.dangling, sizeof scalars_.dangling);
  scalar("total", &scalars_.total, sizeof scalars_.total);
  scalar("change", &scalars_.change, sizeof scalars_.change);
  scalar("problem", &problem_of_pool_, sizeof problem_of_pool_);
  job::on_every_rank([&] {
    if (problem_of_pool_ != problem_) {
      throw job::SharedError("the pool holds another graph or damping; choose another --pool");
    }
    if (version > 0 && scalars_.iteration == 0) {
      throw job::SharedError("version " + std::to_string(version) +
                             " of the pool has no iteration");
    }
  });
  find_halves();
  in_place_ = version == 0 || !twin_;
  return version;
}

void WindowState::find_halves() {
  working_ = window_.values();
  if (!twin_) return;
  MPI_Win consistent = MPI_WIN_NULL;
  MPI_Win working = MPI_WIN_NULL;
  check(perdure_win_halves(window_.handle(), &consistent, &working), "perdure_win_halves");
  working_ = base_of(working);
  consistent_ = base_of(consistent);
}

double* WindowState::next() {
  if (!in_place_) return working_;
  beside_.resize(graph_.own);  // twin: not needed if each iterate is committed
  return beside_.data();
}

void WindowState::advance() {
  if (in_place_) std::copy_n(beside_.data(), graph_.own, working_);
  ghosts_.put(window_.handle(), working_);
  in_place_ = true;
}

bool WindowState::commit_due() {
  return job::commit_due(pool_, ends_);
}

void WindowState::commit() {
  const job::Stopwatch watch;
  check(perdure_win_commit(window_.handle(), nullptr), "perdure_win_commit");
  find_halves();
  in_place_ = !twin_;
  commit_s_.push_back(watch.seconds());
}

std::uint64_t WindowState::committed_bytes() const {
  return job::status_of(pool_).committed_bytes;
}
std::uint64_t WindowState::model_ns() const {
  return job::status_of(pool_).model_ns;
}

}  // namespace pagerank
