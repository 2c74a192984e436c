// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/node_map.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/environment.hpp"
#include "base/quantity.hpp"
#include "mpi/mpi_group.hpp"
#include "mpi/mpi_library.hpp"

namespace perdure {
namespace {

// PERDURE_NODE_ID, or 0.
Result<int> pretended_node(std::string& text) {
  text = environment("PERDURE_NODE_ID");
  if (text.empty()) return 0;
  const auto id = number_in<int>(text);
  if (id && *id >= 0) return *id;
  return Status(Code::invalid_argument, "PERDURE_NODE_ID='", text, "' is not a number from 0 on");
}

// The lowest rank of `comm` on this rank's node.
Result<int> find_leader(MPI_Comm comm, int pretended, bool& one_machine) {
  int rank = 0;
  int ranks = 0;
  int sharing = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &ranks);
  MPI_Comm shared = comm_null();
  int error = PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, info_null(), &shared);
  if (error != MPI_SUCCESS) return mpi_status("MPI_Comm_split_type", error);
  PMPI_Comm_size(shared, &sharing);
  one_machine = sharing == ranks;
  MPI_Comm node = comm_null();
  error = PMPI_Comm_split(shared, pretended, rank, &node);
  PMPI_Comm_free(&shared);
  if (error != MPI_SUCCESS) return mpi_status("MPI_Comm_split", error);
  int leader = rank;
  error = PMPI_Bcast(&leader, sizeof leader, type_byte(), 0, node);
  PMPI_Comm_free(&node);
  if (error != MPI_SUCCESS) return mpi_status("MPI_Bcast", error);
  return leader;
}

}  // namespace

Status gather_all(MPI_Comm comm, const void* own, std::size_t bytes, std::vector<char>& all) {
  int ranks = 1;
  PMPI_Comm_size(comm, &ranks);
  all.resize(bytes * static_cast<std::size_t>(ranks));
  const int error = PMPI_Allgather(own, static_cast<int>(bytes), type_byte(), all.data(),
                                   static_cast<int>(bytes), type_byte(), comm);
  return error == MPI_SUCCESS ? Status::success() : mpi_status("MPI_Allgather", error);
}

Result<NodeMap> map_nodes(MPI_Comm comm) {
  NodeMap map;
  auto pretended = pretended_node(map.pretended);
  // A wrong text is reported after the collective calls, which all ranks make.
  PERDURE_TRY_ASSIGN(auto leader,
                     find_leader(comm, pretended.ok() ? pretended.value() : 0, map.one_machine));
  const int own = leader;
  std::vector<char> gathered;
  PERDURE_TRY(gather_all(comm, &own, sizeof own, gathered));
  if (!pretended.ok()) return pretended.status();
  std::vector<int> leader_of(gathered.size() / sizeof(int));
  std::memcpy(leader_of.data(), gathered.data(), gathered.size());
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  map.local_ranks = 0;
  for (std::size_t r = 0; r < leader_of.size(); ++r) {
    if (leader_of[r] == static_cast<int>(r)) map.leaders.push_back(static_cast<std::uint32_t>(r));
    if (leader_of[r] != own) continue;
    ++map.local_ranks;
    if (static_cast<int>(r) < rank) ++map.local_rank;
  }
  map.nodes = static_cast<std::uint32_t>(map.leaders.size());
  map.node = static_cast<std::uint32_t>(
      std::ranges::find(map.leaders, static_cast<std::uint32_t>(own)) - map.leaders.begin());
  return map;
}

}  // namespace perdure
