// SPDX-License-Identifier: BSD-3-Clause
#include "rma/post_board.hpp"

#include <numeric>

#include "mpi/machine_memory.hpp"

namespace perdure {

std::unique_ptr<PostBoard> PostBoard::create(MPI_Comm comm) {
  int own = 0;
  int count = 1;
  PMPI_Comm_rank(comm, &own);
  PMPI_Comm_size(comm, &count);
  const auto ranks = static_cast<std::uint32_t>(count);
  if (ranks > ranks_max) return nullptr;
  auto memory = share_memory(comm, sizeof(std::atomic<std::uint32_t>) * ranks * ranks);
  if (memory == nullptr) return nullptr;
  MPI_Group group{};
  PMPI_Comm_group(comm, &group);
  return std::unique_ptr<PostBoard>(
      new PostBoard(std::move(memory), group, static_cast<std::uint32_t>(own), ranks));
}

PostBoard::~PostBoard() {
  int finalized = 0;
  PMPI_Finalized(&finalized);
  if (finalized == 0) PMPI_Group_free(&ranks_);
}

// As the window numbers them.
std::vector<int> PostBoard::ranks_of(MPI_Group group) const {
  int count = 0;
  PMPI_Group_size(group, &count);
  std::vector<int> in_group(static_cast<std::size_t>(count));
  std::vector<int> found(in_group.size());
  std::iota(in_group.begin(), in_group.end(), 0);
  PMPI_Group_translate_ranks(group, count, in_group.data(), ranks_, found.data());
  return found;
}

void PostBoard::post(MPI_Group group) {
  for (const int origin : ranks_of(group)) {
    if (origin < 0 || static_cast<std::size_t>(origin) >= starts_.size()) continue;
    posts(own_, static_cast<std::size_t>(origin)).fetch_add(1, std::memory_order_release);
  }
}

void PostBoard::start(MPI_Group group) {
  ++epoch_;
  for (const int target : ranks_of(group)) {
    if (target < 0 || static_cast<std::size_t>(target) >= starts_.size()) continue;
    Start& start = starts_[static_cast<std::size_t>(target)];
    ++start.number;
    start.epoch = epoch_;
  }
}

}  // namespace perdure
