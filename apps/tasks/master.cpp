// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include <vector>

#include "job/collective.hpp"
#include "shapes.hpp"

namespace tasks {
namespace {

constexpr Task no_more = ~Task{0};

std::vector<Task> tasks_to_do(const Queens& queens, int depth, const Known& known) {
  std::vector<Task> tasks{Queens::all};
  for (int placed = 0; placed < depth; ++placed) {
    std::vector<Task> next;
    for (const Task task : tasks) {
      for (const Task part : queens.parts(task)) next.push_back(part);
    }
    tasks = std::move(next);
  }
  std::erase_if(tasks, [&](Task task) { return known.contains(task); });
  return tasks;
}

void send_next(int worker, std::vector<Task>& tasks) {
  const Task task = tasks.empty() ? no_more : tasks.back();
  if (!tasks.empty()) tasks.pop_back();
  MPI_Send(&task, 1, MPI_UINT64_T, worker, 0, MPI_COMM_WORLD);
}

void hand_out(std::vector<Task> tasks) {
  const auto to_do = tasks.size();
  for (int worker = 1; worker < job::rank_count(); ++worker) send_next(worker, tasks);
  for (std::size_t answers = 0; answers < to_do; ++answers) {
    MPI_Status status;
    MPI_Recv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
    send_next(status.MPI_SOURCE, tasks);
  }
}

// An answer is sent when the task is finished for good.
void work(const Queens& queens, FinishedTasks& finished) {
  for (;;) {
    Task task = 0;
    MPI_Recv(&task, 1, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (task == no_more) return;
    finished.add({task, queens.ways(task)});
    MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
}

}  // namespace

void run_master(const Queens& queens, int depth, const Known& known, FinishedTasks& finished) {
  if (job::this_rank() != 0) return work(queens, finished);
  const std::vector<Task> tasks = tasks_to_do(queens, depth, known);
  if (job::rank_count() > 1) return hand_out(tasks);
  for (const Task task : tasks) finished.add({task, queens.ways(task)});
}

}  // namespace tasks
