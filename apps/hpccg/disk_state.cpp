// SPDX-License-Identifier: BSD-3-Clause
#include "disk_state.hpp"

#include "job/collective.hpp"
#include "job/stopwatch.hpp"

namespace hpccg {
namespace {

constexpr std::uint64_t magic = 0x324b534447434350U;  // "PCCGDSK2"

job::CheckpointFiles::Problem problem_of(const Grid& grid) {
  return {magic,
          grid.nx,
          grid.ny,
          grid.nz,
          static_cast<std::uint64_t>(grid.rank),
          static_cast<std::uint64_t>(grid.ranks)};
}

}  // namespace

DiskState::DiskState(const Grid& grid, const std::string& directory)
    : MemoryState(grid),
      grid_(grid),
      files_(directory, grid.rank, problem_of(grid), {"another problem", ""}),
      kill_(grid.rank) {
  files_.make_directory();
}

std::vector<job::CheckpointFiles::Piece> DiskState::pieces() {
  const Vectors vectors = target();
  const std::size_t bytes = grid_.points() * sizeof(double);
  return {{&scalars_, sizeof scalars_},
          {vectors.x, bytes},
          {vectors.r, bytes},
          {vectors.p, grid_.points_with_halo() * sizeof(double)}};
}

std::uint64_t DiskState::restore() {
  version_ = job::min_over_ranks(files_.newest());
  if (version_ > 0) files_.read(version_, pieces());
  files_.remove_beyond(version_);
  MPI_Barrier(MPI_COMM_WORLD);
  return version_;
}

void DiskState::commit() {
  const job::Stopwatch watch;
  const auto die = [&](const char* point) { kill_.die_if_due(point, scalars_.iteration); };
  committed_bytes_ += files_.write(++version_, pieces(), die);
  MPI_Barrier(MPI_COMM_WORLD);
  blocking_s_.push_back(watch.seconds());
}

}  // namespace hpccg
