// SPDX-License-Identifier: BSD-3-Clause
//
// Synchronisation calls: MPI's own first, then, where the window's rule says so, a commit.
#include <atomic>

#include "perdure/perdure_mpi.h"
#include "rma/direct_access.hpp"
#include "rma/window_calls.hpp"
#include "rma/window_pool.hpp"

namespace perdure {
namespace {

// Of what the threads of a program that may look at it are ordered by their own calls of MPI: a
// store that waits for those before it would cost as much as the rest of a call here.
template <typename Value>
void set(std::atomic<Value>& of, Value to) {
  of.store(to, std::memory_order_release);
}

// The end of an epoch says nothing about the operations of other ranks.
bool is_passive(Trigger trigger) {
  return trigger != Trigger::fence && trigger != Trigger::wait;
}

std::string call_of(Trigger trigger) {
  constexpr const char* calls[trigger_count] = {"MPI_Win_fence", "MPI_Win_wait", "MPI_Win_unlock",
                                                "MPI_Win_unlock_all", "MPI_Win_flush_all"};
  return calls[static_cast<std::size_t>(trigger)];
}

int commit(Window& window, Trigger trigger) {
  auto committed = window.pool->commit(
      is_passive(trigger),
      "the commit of " + call_of(trigger) + " of window '" + window.options.name + "'",
      trigger == Trigger::fence ? WatchedCommit::Call::fence : WatchedCommit::Call::commit);
  return committed.ok() ? MPI_SUCCESS : raise_on_window(window.handle, committed.status());
}

// Counts the call; commits if it is due. The halves of a twin window have no rule of their own:
// which of them a program synchronises last is its own affair.
int reached(Window& window, Trigger trigger) {
  const std::uint64_t every = window.options.commit.of(trigger);
  if (every == 0 || window.whole != nullptr) return MPI_SUCCESS;
  if (++window.reached[static_cast<std::size_t>(trigger)] % every != 0) return MPI_SUCCESS;
  // A neighbour may be waiting for this rank's MPI_Win_complete, so no collective can tell it.
  if (trigger == Trigger::wait && window.pending) {
    return raise_on_window(
        window.handle, {Code::wrong_state, "MPI_Win_wait of window '" + window.options.name +
                                               "' is to commit, but this rank's own epoch is open; "
                                               "call MPI_Win_complete first"});
  }
  return commit(window, trigger);
}

void lock_taken(Window& window, std::size_t first, std::size_t count) {
  set(window.fenced, false);
  note_lock(window, first, count);
  ++window.locks;
}

void epoch_ended(Window& window) {
  if (window.locks.fetch_sub(1) == 1) set(window.pending, false);
}

}  // namespace

int win_fence(int assertion, MPI_Win win) {
  const bool asked = (assertion & PERDURE_MODE_COMMIT) != 0;
  Window* window = find_window(win);
  if (window == nullptr) {
    if (!asked) return WindowCalls::Win_fence::real(assertion, win);
    return raise_on_window(win, {Code::invalid_argument,
                                 "PERDURE_MODE_COMMIT on a window that is not persistent; give its "
                                 "MPI_Info the key perdure_name"});
  }
  assertion &= ~PERDURE_MODE_COMMIT;
  if (window->exposure.shared) assertion &= ~MPI_MODE_NOPRECEDE;  // direct_access.hpp
  const int error = WindowCalls::Win_fence::real(assertion, win);
  if (error != MPI_SUCCESS) return error;
  set(window->pending, false);
  set(window->fenced, (assertion & MPI_MODE_NOSUCCEED) == 0);
  return asked ? commit(*window, Trigger::fence) : reached(*window, Trigger::fence);
}

// Counted before MPI does it: an origin may get to know of it from MPI before this call returns.
int win_post(MPI_Group group, int assertion, MPI_Win win) {
  Window* window = find_window(win);
  if (window != nullptr && window->boards.posts != nullptr) window->boards.posts->post(group);
  return WindowCalls::Win_post::real(group, assertion, win);
}

int win_start(MPI_Group group, int assertion, MPI_Win win) {
  const int error = WindowCalls::Win_start::real(group, assertion, win);
  Window* window = find_window(win);
  if (error != MPI_SUCCESS || window == nullptr) return error;
  set(window->fenced, false);
  if (window->boards.posts != nullptr) window->boards.posts->start(group);
  return error;
}

int win_complete(MPI_Win win) {
  const int error = WindowCalls::Win_complete::real(win);
  Window* window = find_window(win);
  if (error != MPI_SUCCESS || window == nullptr) return error;
  set(window->pending, false);
  if (window->boards.posts != nullptr) window->boards.posts->complete();
  return error;
}

int win_wait(MPI_Win win) {
  const int error = WindowCalls::Win_wait::real(win);
  Window* window = find_window(win);
  if (error != MPI_SUCCESS || window == nullptr) return error;
  return reached(*window, Trigger::wait);
}

int win_test(MPI_Win win, int* flag) {
  const int error = WindowCalls::Win_test::real(win, flag);
  Window* window = find_window(win);
  if (error != MPI_SUCCESS || window == nullptr || *flag == 0) return error;
  return reached(*window, Trigger::wait);
}

int win_lock(int type, int rank, int assertion, MPI_Win win) {
  const int error = WindowCalls::Win_lock::real(type, rank, assertion, win);
  Window* window = find_window(win);
  if (error == MPI_SUCCESS && window != nullptr)
    lock_taken(*window, static_cast<std::size_t>(rank), 1);
  return error;
}

int win_lock_all(int assertion, MPI_Win win) {
  const int error = WindowCalls::Win_lock_all::real(assertion, win);
  Window* window = find_window(win);
  if (error == MPI_SUCCESS && window != nullptr) lock_taken(*window, 0, window->lock_uses.size());
  return error;
}

int win_unlock(int rank, MPI_Win win) {
  Window* window = find_window(win);
  if (window != nullptr && static_cast<std::size_t>(rank) < window->lock_uses.size()) {
    set(window->lock_uses[static_cast<std::size_t>(rank)], 0U);
  }
  const int error = WindowCalls::Win_unlock::real(rank, win);
  if (error != MPI_SUCCESS || window == nullptr) return error;
  epoch_ended(*window);
  return reached(*window, Trigger::unlock);
}

int win_unlock_all(MPI_Win win) {
  Window* window = find_window(win);
  if (window != nullptr) {
    for (std::atomic<std::uint32_t>& uses : window->lock_uses) set(uses, 0U);
  }
  const int error = WindowCalls::Win_unlock_all::real(win);
  if (error != MPI_SUCCESS || window == nullptr) return error;
  epoch_ended(*window);
  return reached(*window, Trigger::unlock_all);
}

int win_flush_all(MPI_Win win) {
  const int error = WindowCalls::Win_flush_all::real(win);
  Window* window = find_window(win);
  if (error != MPI_SUCCESS || window == nullptr) return error;
  set(window->pending, false);
  return reached(*window, Trigger::flush_all);
}

}  // namespace perdure
