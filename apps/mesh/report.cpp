// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <cinttypes>
#include <cstdio>

#include "job/collective.hpp"
#include "job/facts.hpp"

namespace mesh {

void print_report(const Options& options, const Outcome& outcome) {
  if (job::this_rank() != 0) return;
  if (options.json) {
    const job::Facts facts("mesh", options.pool.empty() ? "none" : "pool",
                           {{"levels", options.levels},
                            {"steps", options.steps},
                            {"ranks", job::rank_count()},
                            {"old_ranks", outcome.stepped.old_ranks},
                            {"first_step", outcome.stepped.first_step}});
    facts.print("blocks", outcome.blocks, "1", {{"hash", job::hex(outcome.hash)}});
    facts.print("loop", outcome.stepped.loop_s, "s");
  } else {
    std::printf("steps %" PRIu64 " to %" PRIu64 ": %" PRIu64 " blocks, hash %s, %.3f s\n",
                outcome.stepped.first_step, options.steps, outcome.blocks,
                job::hex(outcome.hash).c_str(), outcome.stepped.loop_s);
  }
  std::fflush(stdout);
}

}  // namespace mesh
