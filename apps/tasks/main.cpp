// SPDX-License-Identifier: BSD-3-Clause
//
// tasks: a job whose ranks are never in step, and whose finished tasks survive. README.md shows how
// to run it.
#include <mpi.h>

#include <optional>
#include <vector>

#include "finished.hpp"
#include "job/collective.hpp"
#include "job/run.hpp"
#include "job/stopwatch.hpp"
#include "options.hpp"
#include "report.hpp"
#include "shapes.hpp"

namespace tasks {
namespace {

// Those of all ranks' pools, on every rank. Collective.
std::vector<Finished> all_finished(const FinishedTasks& of_rank) {
  std::vector<Finished> mine = of_rank.own();
  mine.insert(mine.end(), of_rank.of_others().begin(), of_rank.of_others().end());
  constexpr int words = sizeof(Finished) / sizeof(std::uint64_t);
  const int count = static_cast<int>(mine.size()) * words;
  std::vector<int> counts(static_cast<std::size_t>(job::rank_count()));
  MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
  const std::vector<int> starts = job::starts_of(counts);
  std::vector<Finished> all(static_cast<std::size_t>(starts.back() + counts.back()) / words);
  MPI_Allgatherv(mine.data(), count, MPI_UINT64_T, all.data(), counts.data(), starts.data(),
                 MPI_UINT64_T, MPI_COMM_WORLD);
  return all;
}

Known tasks_in(const std::vector<Finished>& finished) {
  Known tasks;
  for (const Finished& each : finished) tasks.insert(each.task);
  return tasks;
}

void place_queens(const Options& options) {
  std::optional<FinishedTasks> finished;
  job::on_every_rank([&] {
    finished.emplace(options.directory, Problem{options.board, options.depth}, job::this_rank(),
                     job::rank_count());
  });
  const std::vector<Finished> before = all_finished(*finished);
  const Queens queens(options.board);
  const job::Stopwatch watch;
  const auto run = options.shape == Shape::master ? run_master : run_divide;
  run(queens, options.depth, tasks_in(before), *finished);
  MPI_Barrier(MPI_COMM_WORLD);
  Outcome outcome;
  outcome.loop_s = watch.seconds();
  const std::vector<Finished> after = all_finished(*finished);
  for (const Finished& each : after) outcome.ways += each.value;
  outcome.tasks = after.size();
  outcome.before = before.size();
  outcome.repeated = after.size() - tasks_in(after).size();
  print_report(options, outcome);
}

}  // namespace
}  // namespace tasks

int main(int argc, char** argv) {
  return job::run(argc, argv, "tasks", [&](bool speaks) {
    tasks::place_queens(tasks::parse_options(argc, argv, speaks));
  });
}
