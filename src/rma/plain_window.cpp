// SPDX-License-Identifier: BSD-3-Clause
#include "rma/plain_window.hpp"

#include <unistd.h>

#include <atomic>

#include "mpi/at_finalize.hpp"

namespace perdure {
namespace {

std::atomic<long> not_reported{0};

void print_line(const std::string& text) {
  const std::string line = "perdure: " + text + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

void print_count() {
  const long count = not_reported.load();
  if (count == 0) return;
  print_line(std::to_string(count) +
             " more windows and attached regions of this rank were not persistent either");
}

}  // namespace

bool stays_plain(const WindowOptions& options, const Status& status) {
  if (!options.by_environment) return false;
  return status.code() == Code::no_space || status.code() == Code::unsupported;
}

void report_plain(const std::string& what, const Status& why, bool reports) {
  if (!reports) return;
  static std::atomic<bool> said{false};
  if (said.exchange(true)) {
    ++not_reported;
    return;
  }
  print_line(what + " is not persistent, and is empty after a restart: " + why.message());
  int initialised = 0;
  PMPI_Initialized(&initialised);
  if (initialised != 0) at_finalize<print_count>();
}

}  // namespace perdure
