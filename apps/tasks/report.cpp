// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <cinttypes>
#include <cstdio>

#include "job/collective.hpp"
#include "job/facts.hpp"

namespace tasks {

void print_report(const Options& options, const Outcome& outcome) {
  if (job::this_rank() != 0) return;
  if (options.json) {
    const job::Facts facts("tasks", name_of(options.shape),
                           {{"board", options.board},
                            {"depth", options.depth},
                            {"ranks", job::rank_count()},
                            {"before", outcome.before},
                            {"repeated", outcome.repeated}});
    facts.print("ways", outcome.ways, "1");
    facts.print("tasks", outcome.tasks, "1");
    facts.print("loop", outcome.loop_s, "s");
  } else {
    std::printf("%" PRIu64 " ways to place %d queens; %" PRIu64 " tasks, %" PRIu64
                " of them finished by jobs before, %" PRIu64 " more than once; %.3f s\n",
                outcome.ways, options.board, outcome.tasks, outcome.before, outcome.repeated,
                outcome.loop_s);
  }
  std::fflush(stdout);
}

}  // namespace tasks
