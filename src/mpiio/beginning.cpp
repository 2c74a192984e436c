// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/beginning.hpp"

#include "base/environment.hpp"
#include "cache/aside_table.hpp"
#include "mpi/served_mpi.hpp"
#include "mpiio/cache_options.hpp"
#include "mpiio/file_aside.hpp"
#include "mpiio/file_calls.hpp"
#include "mpiio/file_ends.hpp"

namespace perdure {
void prepare_files() {
  say_unknown_variables();
  const auto environment = read_cache_environment();
  if (!environment.ok() || !environment.value() || !mpi_is_served().ok()) return;
  bind_file_calls();
  const CacheOptions& options = environment.value()->options;
  if (!may_stand_aside(options)) return;
  const auto directory = aside_directory(options);
  if (directory && AsideTable::of(*directory).ok()) end_files_with_process();
}

}  // namespace perdure
