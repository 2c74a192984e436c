// SPDX-License-Identifier: BSD-3-Clause
#include "disk_state.hpp"

#include "job/collective.hpp"
#include "job/stopwatch.hpp"
#include "problem.hpp"

namespace pagerank {
namespace {

constexpr std::uint64_t magic = 0x324b53444b524750U;  // "PGRKDSK2"

}  // namespace

DiskState::DiskState(const Graph& graph, const Options& options)
    : MemoryState(graph),
      files_(options.disk_dir, job::this_rank(),
             {magic, problem_of(graph, options), graph.values()},
             {"another graph, damping or number of ranks; choose another --disk-dir",
              "; see --disk-dir"}),
      kill_(job::this_rank()) {
  job::on_every_rank([&] { files_.make_directory(); });
}

std::vector<job::CheckpointFiles::Piece> DiskState::pieces() {
  return {{&scalars_, sizeof scalars_}, {current_values(), bytes()}};
}

std::uint64_t DiskState::restore() {
  std::uint64_t newest = 0;
  job::on_every_rank([&] { newest = files_.newest(); });
  version_ = job::min_over_ranks(newest);
  job::on_every_rank([&] {
    if (version_ > 0) files_.read(version_, pieces());
    files_.remove_beyond(version_);
  });
  return version_;
}

void DiskState::commit() {
  const job::Stopwatch watch;
  const auto die = [&](const char* point) { kill_.die_if_due(point, scalars_.iteration); };
  job::on_every_rank([&] {  // which is a barrier too
    committed_bytes_ += files_.write(version_ + 1, pieces(), die);
  });
  ++version_;
  commit_s_.push_back(watch.seconds());
}

}  // namespace pagerank
