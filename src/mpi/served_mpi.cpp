// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/served_mpi.hpp"

#include <dlfcn.h>

namespace perdure {
namespace {

// libperdure_preload.so has loaded this library because it serves.
bool was_chosen() {
  auto* serves = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "perdure_preload_serves"));
  return serves != nullptr && serves() == static_cast<int>(served_abi);
}

Status decide() {
  if (was_chosen()) return Status::success();
  const std::string reason = reason_to_stand_aside(find_process_mpi(), served_abi);
  if (!reason.empty()) {
    say_standing_aside(reason);
    return {Code::unsupported, reason};
  }
  make_mpi_global();
  return Status::success();
}

}  // namespace

const Status& mpi_is_served() {
  static const Status& decided = *new Status(decide());  // calls may come while the program ends
  return decided;
}

}  // namespace perdure
