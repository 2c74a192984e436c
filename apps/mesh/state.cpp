// SPDX-License-Identifier: BSD-3-Clause
#include "state.hpp"

#include "job/collective.hpp"

namespace mesh {

State::State(const std::string& pool, int finest) : asked_(finest), finest_(finest) {
  if (pool.empty()) return;
  // The opening fails on all ranks or on none; what follows it is each rank's own.
  job::on_every_rank([&] {
    pool_ = perdure::open_mpi(MPI_COMM_WORLD, pool, {.any_ranks = true});
    old_ranks_ = pool_->status().old_ranks;
    pool_->array("blocks", blocks_, perdure::Mode::copy, {.ranks = perdure::Ranks::rows});
    pool_->scalar("iteration", step);
    pool_->scalar("finest", finest_);
  });
}

bool State::restore() {
  if (!pool_ || pool_->restart() == 0) return false;
  job::on_every_rank([&] {
    if (finest_ == asked_) return;
    throw std::runtime_error("the pool is of --levels " + std::to_string(finest_));
  });
  return true;
}

void State::commit() {
  if (pool_) pool_->commit();
}

}  // namespace mesh
