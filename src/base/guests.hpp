// SPDX-License-Identifier: BSD-3-Clause
//
// Guests: threads and signal handlers of the process that are not the program's own, and memory
// that the program has lent.
//
//   threads    Perdure's, each from when it says so until it ends; and the MPI library's, which it
//              had when its MPI_Init returned and not before. A thread that was not there at any
//              question in between is forgotten: its number may be another's by now
//   handlers   those that MPI_Init installed, and others of the MPI library's: UCX has some when it
//              is loaded
//   lent       given to a call of MPI after which somebody may still read it: a send that is
//              pending, a window, a collective beside the program. It counts as lent for good:
//              when such a call is complete is not followed
//
// Threads: any. Nothing here fails; what can't be asked is no guest.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace perdure {

// The calling thread is one of Perdure's until it ends.
void note_own_thread();
// A thread that does `work`, and that is noted so when this returns: nobody sees it as the
// program's meanwhile. std::system_error: as of std::thread.
std::thread start_own_thread(std::function<void()> work);

// What the kernel says: the numbers of the threads. Empty: it can't be asked.
std::vector<pid_t> threads_of_process();
// Of the text of /proc/self/status. None: there is no such key.
std::optional<std::uint64_t> number_in(const std::string& status, const char* key, int base);

struct ProcessGuests {
  std::vector<pid_t> threads;        // sorted
  std::array<void*, 65> handlers{};  // by signal; null: none, or not asked for
  std::uint64_t pinned_kib = 0;      // VmPin
  static ProcessGuests now();
};
// What is there now, and was not `before`, is the MPI library's; and so are handlers in its code.
void note_mpi_begun(const ProcessGuests& before, bool (*is_code_of_mpi)(const void*));
// Whether calls of MPI come through Perdure, which says what is lent.
bool mpi_is_watched();
std::uint64_t pinned_kib_of_mpi();

// Of these numbers of threads, all are guests', or the caller's.
bool are_guests(const std::vector<pid_t>& threads);
bool is_guest_handler(int signal, void* handler);
void* handler_of(int signal);

void lend(std::uintptr_t low, std::uintptr_t high);
void lend_all();
bool is_lent(std::uintptr_t low, std::uintptr_t high);

}  // namespace perdure
