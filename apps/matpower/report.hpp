// SPDX-License-Identifier: BSD-3-Clause
//
// Report: what a run ends with, for people or as facts: lines of JSON with the keys of every
// benchmark here (bench, case, metric, value, unit, low, high, n, target, holds) and what the run
// was.
#pragma once

#include "job.hpp"
#include "options.hpp"

namespace matpower {

// Collective. Times are the slowest rank's, bytes and calls are sums over the ranks; rank 0 prints.
void print_report(const Options& options, const Outcome& outcome);

}  // namespace matpower
