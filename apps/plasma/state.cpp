// SPDX-License-Identifier: BSD-3-Clause
#include "state.hpp"

#include "job/collective.hpp"

namespace plasma {

State::State(const Rows& rows, const std::string& pool) : potential_(rows.cell_count()) {
  if (pool.empty()) return;
  // The opening fails on all ranks or on none; what follows it is each rank's own.
  job::on_every_rank([&] {
    pool_ = perdure::open_mpi(MPI_COMM_WORLD, pool, {.any_ranks = true});
    old_ranks_ = pool_->status().old_ranks;
    open_arrays(rows);
  });
}

void State::open_arrays(const Rows& rows) {
  pool_->array("particles", particles_, perdure::Mode::copy, {.ranks = perdure::Ranks::rows});
  const auto cells = static_cast<std::uint64_t>(rows.cells);
  const auto count = static_cast<std::uint64_t>(rows.count());
  auto potential = pool_->array<double>("potential", {count, cells}, perdure::Mode::copy,
                                        {.buffer = potential_});
  potential.box({cells, cells}, {static_cast<std::uint64_t>(rows.first()), 0});
  pool_->scalar("iteration", step);
}

bool State::restore() {
  return pool_ && pool_->restart() != 0;
}

void State::commit() {
  if (pool_) pool_->commit();
}

}  // namespace plasma
