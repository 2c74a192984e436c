#include "mpi/caller_scope.hpp"

#include "mpi/mpi_library.hpp"

namespace perdure {
namespace {

thread_local bool caller_is_library = false;

}  // namespace

CallerScope::CallerScope(const void* return_address) {
  caller_is_library = in_mpi_library(return_address);
}
CallerScope::~CallerScope() {
  caller_is_library = false;
}
bool CallerScope::from_library() {
  return caller_is_library;
}

}  // namespace perdure
