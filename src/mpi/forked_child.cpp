// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/forked_child.hpp"

#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

namespace perdure {
namespace {

// Stands for a function of any arguments: its caller takes them away again.
int refused_call() {
  static std::atomic<bool> said{false};
  constexpr std::string_view line =
      "perdure: a process that was forked off can't use the persistent windows or cached files of "
      "its parent, nor MPI; the call failed, and the parent goes on\n";
  if (!said.exchange(true)) (void)!::write(STDERR_FILENO, line.data(), line.size());
  return MPI_ERR_OTHER;
}

}  // namespace

void refuse_in_child(TakenCall& taken) {
  void* refusal = reinterpret_cast<void*>(&refused_call);
  taken.to.store(refusal, std::memory_order_relaxed);
  taken.to_profiled.store(refusal, std::memory_order_relaxed);
}

}  // namespace perdure
