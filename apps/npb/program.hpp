// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs have in common: options, report and exit code. The solver of each is one
// function that run_program calls.
//
// Exit code: 0 if the published numbers were met, or do not apply; 1 if they were not met, or
// after an error. Wrong options end with the codes of CLI11.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "npb/loop.hpp"
#include "npb/state.hpp"
#include "npb/verification.hpp"

namespace npb {

struct Options {
  char problem_class = 'S';      // S, W, A, B or C
  std::uint64_t iterations = 0;  // 0: as many as the class has
  bool json = false;
  StateOptions state;
};

struct Result {
  std::string problem;  // its size in words
  std::vector<Check> checks;
  std::uint64_t iterations = 0;
  std::uint64_t published_iterations = 0;
  double setup_s = 0;  // up to the timed region
  LoopFigures loop;
};

// What is known before the first of the iterations, of which the class has `published`.
Result planned(const Options& options, std::string problem, std::uint64_t published);

// Of a problem on a box of points.
std::string points_text(Index nx, Index ny, Index nz);

// An option of one program, of a few words.
struct Choice {
  std::string flag;
  std::string purpose;
  std::vector<std::string> words;
  std::size_t* chosen;  // an index of them; what it is before is the default
};

struct Program {
  std::string name;
  std::string purpose;
  std::string examples;  // for --help
  std::vector<Choice> choices;
  std::function<Result(const Options&)> solve;
};

// What main() returns.
int run_program(int argc, char** argv, const Program& program);

}  // namespace npb
