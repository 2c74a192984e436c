// SPDX-License-Identifier: BSD-3-Clause
//
// Script sweep: runs commits, restores, deletions and changes of the set of arrays, and of the
// first one's size, on the crash device, recovers from images of a crash at every fence and
// agreement, and compares the newest version, and every other one that can be restored, with the
// ledger. Two ranks are cut wherever a crash can meet them both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ledger.hpp"
#include "sweep.hpp"

namespace perdure {

enum class Act {
  commit,
  rest,    // commit after changes of the first array alone
  staged,  // commit_staged, and stores to all buffers right after it
  wait,    // for the staged one
  restore,
  erase_version,
  open,   // the third array
  close,  // it, keeping its contents
  erase,  // it
  resize  // the first array
};

struct Line {
  Act act;
  std::uint64_t version = 0;  // of restore and erase_version; of resize: words
};

struct ScriptOptions {
  std::string name;
  ArrayMode mode = ArrayMode::copy;  // of the first two arrays; the third is twin, or as they are
  bool compare = false;
  bool staged = false;  // all arrays; otherwise there is one in flush mode as well
  std::uint32_t keep = 1;
  std::vector<Line> lines;
  AtomicityModel model = AtomicityModel::prefix;
  std::size_t line_bytes = 64;
  std::uint64_t images_per_moment = 16;
  std::uint64_t seed = 1;
  std::uint64_t slot_bytes = 1024;  // 256: the catalogue is always a tree
  std::uint32_t others = 0;         // arrays with long names, of which each commit changes one
};

// For people.
std::string text_of(const std::vector<Line>& lines);

// The scripts that tests and benchmarks run, without model and bounds.
std::vector<ScriptOptions> all_scripts(std::uint64_t seed);

SweepResult sweep_script(const ScriptOptions& options);
SweepResult sweep_script_of_two_ranks(const ScriptOptions& options);

}  // namespace perdure
