// SPDX-License-Identifier: BSD-3-Clause
//
// MPI group: the ranks of a communicator as the group that commits together (base/group.hpp).
//
// Calls only PMPI_*, so that tools and Perdure's own interposition never see its messages, and only
// from the thread that uses the pool, unless MPI was initialised with MPI_THREAD_MULTIPLE. The
// communicator is a duplicate of the user's, with errors returned.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <span>

#include "base/group.hpp"
#include "base/status.hpp"

namespace perdure {

// A Status with MPI's own text.
Status mpi_status(const char* call, int error);

// Replaces each word by the largest of all ranks', as unsigned numbers. Collective; a code of MPI.
int max_over_ranks(MPI_Comm comm, std::span<std::uint64_t> values);

class MpiGroup final : public Group {
 public:
  // Collective over `comm`. MPI must be initialised.
  static Result<std::unique_ptr<MpiGroup>> create(MPI_Comm comm);
  // The same, but one for all who ask with this communicator while it lives: a duplicate costs as
  // much as opening a small file. Where threads may make collective calls at the same time
  // (MPI_THREAD_MULTIPLE) each has its own, as they may come in another order on another rank.
  static Result<std::shared_ptr<MpiGroup>> shared(MPI_Comm comm);
  ~MpiGroup() override;  // collective unless MPI is already finalized
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;

  bool ends_with_mpi() const override { return true; }
  std::uint32_t rank() const override { return rank_; }
  std::uint32_t ranks() const override { return ranks_; }
  Status all_max(std::span<std::uint64_t> values) override;
  Status send(std::uint32_t to, std::span<const std::byte> bytes) override;
  Status receive(std::uint32_t from, std::span<std::byte> bytes) override;
  Result<std::unique_ptr<Transfer>> start_send(std::uint32_t to,
                                               std::span<const std::byte> bytes) override;
  Result<std::unique_ptr<Transfer>> start_receive(std::uint32_t from,
                                                  std::span<std::byte> bytes) override;
  Result<std::unique_ptr<Transfer>> start_all_max(std::span<std::uint64_t> values) override;
  Result<std::vector<std::uint32_t>> nodes() override;
  bool may_be_used_beside() const override { return beside_; }

  // The duplicate, for collective calls of its own kind; errors are returned.
  MPI_Comm comm() const { return comm_; }

 private:
  explicit MpiGroup(MPI_Comm own);
  MPI_Comm comm_;
  std::uint32_t rank_ = 0;
  std::uint32_t ranks_ = 1;
  bool beside_ = false;
};

}  // namespace perdure
