// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <random>

#include "job/collective.hpp"
#include "shapes.hpp"

namespace tasks {
namespace {

// Each rank's list of tasks that were divided off and that nobody works on, in a window, and on
// rank 0 how many tasks of the whole job are unfinished. A rank adds and takes at the end of its
// own list, which so has at most board_max tasks for each queen; others take at its beginning.
class TaskLists {
 public:
  using Word = std::uint64_t;

  TaskLists() {
    MPI_Win_allocate(words * sizeof(Word), sizeof(Word), MPI_INFO_NULL, MPI_COMM_WORLD, &memory_,
                     &window_);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, job::this_rank(), 0, window_);
    std::fill_n(memory_, words, Word{0});
    MPI_Win_unlock(job::this_rank(), window_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  // To free it is collective, and where an error ends this rank the others do not come.
  ~TaskLists() {
    if (std::uncaught_exceptions() == 0) MPI_Win_free(&window_);
  }
  TaskLists(const TaskLists&) = delete;
  TaskLists& operator=(const TaskLists&) = delete;

  void add(Task task) {
    const Locked own(window_, MPI_LOCK_EXCLUSIVE, job::this_rank());
    const Word end = own.get(end_at);
    own.put(place_of(end), task);
    own.put(end_at, end + 1);
  }

  std::optional<Task> take(int rank) {
    const Locked list(window_, MPI_LOCK_EXCLUSIVE, rank);
    const Word begin = list.get(begin_at);
    const Word end = list.get(end_at);
    if (begin == end) return std::nullopt;
    const bool own = rank == job::this_rank();
    own ? list.put(end_at, end - 1) : list.put(begin_at, begin + 1);
    return list.get(place_of(own ? end - 1 : begin));
  }

  // Returns how many there are then.
  Word change_unfinished(std::int64_t by) {
    const Locked first(window_, MPI_LOCK_SHARED, 0);
    const auto change = static_cast<Word>(by);
    Word before = 0;
    MPI_Fetch_and_op(&change, &before, MPI_UINT64_T, 0, unfinished_at, MPI_SUM, window_);
    MPI_Win_flush(0, window_);
    return before + change;
  }

 private:
  static constexpr MPI_Aint begin_at = 0, end_at = 1, unfinished_at = 2, first_at = 3;
  static constexpr Word tasks_max = board_max * board_max;
  static constexpr MPI_Aint words = first_at + tasks_max;
  static MPI_Aint place_of(Word number) {
    return first_at + static_cast<MPI_Aint>(number % tasks_max);
  }

  class Locked {
   public:
    Locked(MPI_Win window, int kind, int rank) : window_(window), rank_(rank) {
      MPI_Win_lock(kind, rank, 0, window);
    }
    ~Locked() { MPI_Win_unlock(rank_, window_); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    Word get(MPI_Aint at) const {
      Word word = 0;
      MPI_Get(&word, 1, MPI_UINT64_T, rank_, at, 1, MPI_UINT64_T, window_);
      MPI_Win_flush(rank_, window_);
      return word;
    }
    void put(MPI_Aint at, Word word) const {
      MPI_Put(&word, 1, MPI_UINT64_T, rank_, at, 1, MPI_UINT64_T, window_);
      MPI_Win_flush(rank_, window_);
    }

   private:
    MPI_Win window_;
    int rank_;
  };

  Word* memory_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

// The own list's last one, else the first one of the list of some other rank that has one.
std::optional<Task> next_task(TaskLists& lists, std::minstd_rand& random) {
  const int ranks = job::rank_count();
  if (auto task = lists.take(job::this_rank())) return task;
  const int start = std::uniform_int_distribution<int>(0, ranks - 1)(random);
  for (int i = 0; i < ranks; ++i) {
    const int victim = (start + i) % ranks;
    if (victim == job::this_rank()) continue;
    if (auto task = lists.take(victim)) return task;
  }
  return std::nullopt;
}

}  // namespace

void run_divide(const Queens& queens, int depth, const Known& known, FinishedTasks& finished) {
  constexpr useconds_t pause_us = 200;
  TaskLists lists;
  std::minstd_rand random(static_cast<unsigned>(job::this_rank()) + 1);
  if (job::this_rank() == 0) {
    lists.change_unfinished(1);
    lists.add(Queens::all);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (;;) {
    const auto task = next_task(lists, random);
    if (!task) {
      if (lists.change_unfinished(0) == 0) return;
      ::usleep(pause_us);
      continue;
    }
    if (Queens::placed(*task) == depth) {
      if (!known.contains(*task)) finished.add({*task, queens.ways(*task)});
      lists.change_unfinished(-1);
      continue;
    }
    // Counted before somebody can take them, so that the count is 0 only at the end.
    const std::vector<Task> parts = queens.parts(*task);
    lists.change_unfinished(static_cast<std::int64_t>(parts.size()) - 1);
    for (const Task part : parts) lists.add(part);
  }
}

}  // namespace tasks
