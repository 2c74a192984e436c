// SPDX-License-Identifier: BSD-3-Clause
//
// The command line and the report of eddy. They need no optimiser, so they are compiled once for
// all of its programs.
#pragma once

#include <cstdint>
#include <optional>

#include "eddy/exact.hpp"
#include "eddy/flow_step.hpp"
#include "npb/loop.hpp"

namespace eddy {

struct Options {
  Index n = 256;
  std::uint64_t steps = 100;
  double dt = 0;  // 0: an eighth of the distance of points
  bool json = false;
  npb::StateOptions state;
};

struct Result {
  double h = 0, dt = 0, time = 0;
  double setup_s = 0;
  npb::LoopFigures loop;
  Flow error{};
  double divergence = 0;
};

// Nothing if the program has to end, with `code`.
std::optional<Options> parse(int argc, char** argv, int& code);

// Whether the errors are below what the method's order allows.
bool verified(const Result& result);

void print_json(const Options& options, const Result& result, std::uint64_t array_bytes);
void print_text(const Options& options, const Result& result, std::uint64_t array_bytes);

}  // namespace eddy
