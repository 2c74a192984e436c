// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/caller_scope.hpp"

#include "mpi/process_mpi.hpp"

namespace perdure {
namespace {

thread_local bool caller_is_library = false;

}  // namespace

CallerScope::CallerScope(const void* return_address) : outer_(caller_is_library) {
  if (!in_perdure(return_address)) caller_is_library = in_mpi_library(return_address);
}
CallerScope::~CallerScope() {
  caller_is_library = outer_;
}
bool CallerScope::from_library() {
  return caller_is_library;
}

}  // namespace perdure
