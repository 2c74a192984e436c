// SPDX-License-Identifier: BSD-3-Clause
//
// A random program of MPI-IO calls: a list of steps, each a kind and a seed.
//
// What a step does follows from its seed, the rank, and the state that earlier steps of the program
// left (session.hpp). So a program from which steps were taken away is a program too, which is how
// a failing one is made shorter. All ranks draw the same program from the same seed.
#ifndef PERDURE_TESTS_MPIIO_ORACLE_PROGRAM_HPP
#define PERDURE_TESTS_MPIIO_ORACLE_PROGRAM_HPP

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace oracle {

enum class Kind {
  open,         // a handle, if its slot is free
  close,        //
  choose,       // the other handle
  set_view,     //
  access,       // at explicit offsets or the individual pointer, of every form
  shared,       // at the shared pointer, one rank after the other
  ordered,      // at the shared pointer, collective
  seek,         // the individual pointer, then says where it is
  seek_shared,  //
  query,        // sizes, extents, modes, views, offsets
  set_size,     //
  preallocate,  //
  settle,       // sync, barrier, sync
  atomicity,    //
  hints,        // set_info, get_info
  wrong,        // arguments that MPI must refuse
  reread,       // the file by POSIX, once it is synchronised
};
constexpr int kinds = static_cast<int>(Kind::reread) + 1;
const char* name_of(Kind kind);

struct Step {
  Kind kind;
  std::uint64_t seed;
};

using Hints = std::map<std::string, std::string>;

// The value of perdure_cache_from where each rank has one of its own: few accesses, or never.
constexpr const char* hint_of_rank = "of-rank";

struct Program {
  std::uint64_t seed = 0;
  bool exists = false;            // the file, before the first open
  std::int64_t bytes_before = 0;  // its size then
  Hints cache;                    // of the cached run
  std::vector<Step> steps;
};

// The `number`th program of a seed.
Program draw_program(std::uint64_t seed, std::uint64_t number);

std::string text_of(const Program& program);

}  // namespace oracle
#endif
