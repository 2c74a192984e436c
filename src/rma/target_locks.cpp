// SPDX-License-Identifier: BSD-3-Clause
#include "rma/target_locks.hpp"

#include <cerrno>

#include "mpi/machine_memory.hpp"
#include "mpi/mpi_group.hpp"

namespace perdure {
namespace {

bool make(pthread_mutex_t* mutex) {
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  const bool made = ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
                    ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
                    ::pthread_mutex_init(mutex, &attributes) == 0;
  ::pthread_mutexattr_destroy(&attributes);
  return made;
}

}  // namespace

std::unique_ptr<TargetLocks> TargetLocks::create(MPI_Comm comm) {
  int own = 0;
  int ranks = 1;
  PMPI_Comm_rank(comm, &own);
  PMPI_Comm_size(comm, &ranks);
  auto memory = share_memory(comm, sizeof(Lock) * static_cast<std::size_t>(ranks));
  if (memory == nullptr) return nullptr;
  std::unique_ptr<TargetLocks> locks(new TargetLocks(std::move(memory)));
  // Nobody takes a lock before its rank has made it.
  std::uint64_t failed = make(locks->of(static_cast<std::size_t>(own))) ? 0 : 1;
  const int error = max_over_ranks(comm, {&failed, 1});
  return error == MPI_SUCCESS && failed == 0 ? std::move(locks) : nullptr;
}

void TargetLocks::lock(std::size_t target) {
  if (::pthread_mutex_lock(of(target)) == EOWNERDEAD) ::pthread_mutex_consistent(of(target));
}

void TargetLocks::unlock(std::size_t target) {
  ::pthread_mutex_unlock(of(target));
}

}  // namespace perdure
