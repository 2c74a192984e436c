// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/watch_commits.hpp"

#include "mpi/machine_memory.hpp"
#include "mpi/mpi_group.hpp"
#include "mpi/mpi_library.hpp"

namespace perdure {
namespace {

// Collective over the ranks of one machine.
CommitLines share_lines(MPI_Comm machine, int rank, int ranks) {
  int own = 0;
  int count = 1;
  PMPI_Comm_rank(machine, &own);
  PMPI_Comm_size(machine, &count);
  CommitLines lines;
  lines.own = static_cast<std::uint32_t>(own);
  lines.count = static_cast<std::uint32_t>(count);
  lines.ranks = static_cast<std::uint32_t>(ranks);
  const auto memory = share_memory(machine, sizeof(CommitLine) * lines.count);
  if (memory == nullptr) return lines;
  lines.first = {memory, reinterpret_cast<CommitLine*>(memory.get())};
  lines.first.get()[own].rank = static_cast<std::uint64_t>(rank);
  PMPI_Barrier(machine);  // the others' numbers are there too
  return lines;
}

}  // namespace

std::unique_ptr<CommitWatch> watch_commits(MPI_Comm comm, const std::string& pool,
                                           const CommitPatience& patience) {
  int rank = 0;
  int ranks = 1;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &ranks);
  std::uint64_t watched = patience.endless() ? 0 : 1;  // not every launcher gives it to all ranks
  if (ranks == 1 || max_over_ranks(comm, {&watched, 1}) != MPI_SUCCESS || watched == 0) {
    return nullptr;
  }
  MPI_Comm machine = comm_null();
  if (PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, info_null(), &machine) !=
      MPI_SUCCESS) {
    return nullptr;
  }
  CommitLines lines = share_lines(machine, rank, ranks);
  PMPI_Comm_free(&machine);
  return lines.first == nullptr ? nullptr
                                : std::make_unique<CommitWatch>(pool, patience, std::move(lines));
}

}  // namespace perdure
