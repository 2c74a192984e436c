// SPDX-License-Identifier: BSD-3-Clause
//
// Options of the command line.
#pragma once

#include <cstdint>
#include <string>

#include "job/emulation.hpp"

namespace hpccg {

// memcpy protects nothing: it measures what a plain copy of the state takes.
enum class Protection { none, memcpy, disk, copy, async, twin, log };
enum class Checksum { standard, on, off };  // standard: the library's default for the mode
enum class TwinStore { cached, stream };

const char* name_of(Protection protection);
const char* name_of(TwinStore store);

struct Options {
  std::uint32_t nx = 64, ny = 64, nz = 64;  // grid of each rank
  std::uint64_t iterations = 100;
  double tolerance = 0;  // of |r| / |b|; 0: always all iterations
  Protection protection = Protection::none;
  std::uint64_t every = 1;  // iterations between commits
  std::string commit_plan;  // empty: by `every`; else of these, those that the plan says are due
  std::string pool = "hpccg.pool";
  std::string disk_dir = "hpccg.disk";
  Checksum checksum = Checksum::standard;
  TwinStore twin_store = TwinStore::cached;
  bool windows = false;  // p is a persistent MPI window instead of an array
  job::Emulation emulation;
  unsigned threads = 1;  // that copy and flush
  std::uint64_t print_every = 0;
  bool json = false;
};

// Throws job::OptionsEnd after --help and after a mistake, which only `speaks` prints.
Options parse_options(int argc, char** argv, bool speaks);

}  // namespace hpccg
