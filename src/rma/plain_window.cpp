// SPDX-License-Identifier: BSD-3-Clause
#include "rma/plain_window.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "mpi/mpi_library.hpp"

namespace perdure {
namespace {

std::atomic<long> not_reported{0};
pid_t reporting = 0;  // a forked child counts nothing

void print_line(const std::string& text) {
  const std::string line = "perdure: " + text + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

void print_count() {
  const long count = not_reported.load();
  if (count == 0 || ::getpid() != reporting) return;
  print_line(std::to_string(count) +
             " more windows and attached regions of this rank were not persistent either");
}

}  // namespace

bool agree_stays_plain(MPI_Comm comm, const Status& local, std::initializer_list<Code> lacks) {
  std::int64_t worst = 0;
  if (!local.ok() && local.code() != Code::peer_failed) {
    worst = std::ranges::find(lacks, local.code()) == lacks.end() ? 2 : 1;
  }
  std::int64_t all = 2;
  PMPI_Allreduce(&worst, &all, 1, type_int64(), op_max(), comm);
  return all == 1;
}

void report_plain_window(MPI_Comm comm, const std::string& what, const Status& why) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  if (rank == 0) report_plain(what, why);
}

void report_plain(const std::string& what, const Status& why) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) {
    ++not_reported;
    return;
  }
  print_line(what + " is not persistent, and is empty after a restart: " + why.message());
  reporting = ::getpid();
  std::atexit(print_count);  // a program of Sessions does not call MPI_Finalize
}

}  // namespace perdure
