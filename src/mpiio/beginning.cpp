// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/beginning.hpp"

#include <cstdlib>

#include "base/fork_guard.hpp"
#include "cache/aside_table.hpp"
#include "mpi/served_mpi.hpp"
#include "mpiio/cache_options.hpp"
#include "mpiio/file_aside.hpp"
#include "mpiio/file_calls.hpp"

namespace perdure {
namespace {

// A program that opens no file leaves the table here. A forked child has no number in it.
void leave_tables_at_exit() {
  static const ForkGuard process;
  (void)std::atexit([] {
    if (!process.in_child()) AsideTable::leave_all();
  });
}

}  // namespace

void prepare_files() {
  const auto environment = read_cache_environment();
  if (!environment.ok() || !environment.value() || !mpi_is_served().ok()) return;
  bind_file_calls();
  const CacheOptions& options = environment.value()->options;
  if (!may_stand_aside(options)) return;
  const auto directory = aside_directory(options);
  if (directory && AsideTable::of(*directory).ok()) leave_tables_at_exit();
}

}  // namespace perdure
