// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/served_mpi.hpp"

namespace perdure {
namespace {

Status decide() {
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
