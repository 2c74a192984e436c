// SPDX-License-Identifier: BSD-3-Clause
//
// The oracle: random programs of MPI-IO calls, each run on a plain file and on a cached one. What
// the ranks observe, and the files, must be the same.
//
//   run.sh MPIEXEC RANKS NODES mpiio_oracle_FLAVOUR [--programs N] [--seed S] [--first K]
//                                                   [--hint KEY=VALUE]… [--plant] [--verbose]
//
// A program that differs is run some times more without the cache, each time twice. If MPI by
// itself then does not do the same twice, it is only counted; more than one in fifty is an error.
//
// --hint overrides a hint of the cached run: perdure_cache=off compares MPI with itself. --plant
// makes every program go wrong, in a byte of the cached file or of what a rank read from it, and
// succeeds if a fourth of them notice; about four fifths do.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "program.hpp"
#include "session.hpp"
#include "watchdog.hpp"

namespace oracle {
namespace {

struct Options {
  std::uint64_t programs = 100;
  std::uint64_t seed = 0;
  std::uint64_t first = 0;
  std::string folder;  // of this run alone, with a directory for the pool
  Hints hints;
  bool plant = false;
  bool verbose = false;
};

constexpr int runs_of_mpi_alone = 6;  // of a program that differs

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

bool parse(int argc, char** argv, Options& options) {
  const char* seed = std::getenv("PERDURE_TEST_SEED");
  options.seed = seed != nullptr ? std::strtoull(seed, nullptr, 0) : std::random_device{}();
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--plant") {
      options.plant = true;
    } else if (word == "--verbose") {
      options.verbose = true;
    } else if (value.empty()) {
      return false;
    } else if (++i; word == "--programs") {
      options.programs = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--first") {
      options.first = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--directory") {
      options.folder = value;
    } else if (word == "--hint" && value.find('=') != std::string::npos) {
      options.hints[value.substr(0, value.find('='))] = value.substr(value.find('=') + 1);
    } else {
      return false;
    }
  }
  return !options.folder.empty();
}

// The few lines of a log before one of them.
std::string lines_before(const Session& session, std::size_t line) {
  constexpr std::size_t shown = 8;
  std::string text;
  for (std::size_t i = line - std::min(line, shown); i < line; ++i) {
    text += "\n    step " + std::to_string(session.log()[i].step) + ": " + session.log()[i].text;
  }
  return text;
}

// What this rank saw first that is not the same in both runs, and what went before; "" if all is.
std::string difference(const Session& plain, const Session& cached) {
  const std::size_t both = std::min(plain.log().size(), cached.log().size());
  for (std::size_t i = 0; i < both; ++i) {
    const Session::Line& expected = plain.log()[i];
    const Session::Line& seen = cached.log()[i];
    if (expected == seen) continue;
    return "step " + std::to_string(expected.step) + ": plain \"" + expected.text +
           "\", cached (step " + std::to_string(seen.step) + ") \"" + seen.text + "\" " +
           expected.said + seen.said + ", after" + lines_before(plain, i);
  }
  if (plain.log().size() != cached.log().size()) return "one run did more than the other";
  return "";
}

std::string file_difference(const std::string& plain_path, const std::string& cached_path) {
  bool plain_exists = false;
  bool cached_exists = false;
  const std::vector<char> plain = read_whole(plain_path, plain_exists);
  const std::vector<char> cached = read_whole(cached_path, cached_exists);
  if (plain_exists != cached_exists) return "only one of the files exists at the end";
  if (plain.size() != cached.size()) {
    return "the plain file has " + std::to_string(plain.size()) + " bytes, the cached one " +
           std::to_string(cached.size());
  }
  const auto [at, other] = std::mismatch(plain.begin(), plain.end(), cached.begin());
  if (at == plain.end()) return "";
  return "the files differ from byte " + std::to_string(at - plain.begin()) + " on";
}

void flip_byte(const std::string& path) {
  bool exists = false;
  std::vector<char> bytes = read_whole(path, exists);
  if (bytes.empty()) return;
  ++bytes[bytes.size() / 2];
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::ssize(bytes));
}

// Runs the program twice. Says on every rank what that rank found; collective.
std::string compare(const Program& program, std::uint64_t number, const Options& options) {
  // A name that never comes twice: what one run left behind, another must not find.
  static int runs = 0;
  const std::string prefix = options.folder + "/" + std::to_string(runs++);
  const std::string plain_path = prefix + "plain";
  const std::string cached_path = prefix + "cached";
  Session plain(plain_path, program, {{"perdure_cache", "off"}}, false);
  watch(Run::plain, options.seed, number);
  plain.run();
  const bool in_file = program.seed % 2 == 0;
  Hints hints = program.cache;
  hints["perdure_cache_directory"] = options.folder + "/pool";
  Session cached(cached_path, program, hints, options.plant && !in_file);
  watch(Run::cached, options.seed, number);
  cached.run();
  watch_no_more();
  std::string found = difference(plain, cached);
  if (world_rank() == 0) {
    if (options.plant && in_file) flip_byte(cached_path);
    const std::string in_files = file_difference(plain_path, cached_path);
    if (found.empty()) found = in_files;
    ::unlink(plain_path.c_str());
    ::unlink(cached_path.c_str());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return found;
}

bool any_rank(bool mine) {
  int any = 0;
  const int one = mine ? 1 : 0;
  MPI_Allreduce(&one, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return any != 0;
}

// The program with every step taken away that it fails without; from the end, so that what was
// done with a handle goes before the handle does.
Program shortened(Program program, std::uint64_t number, const Options& options) {
  for (std::size_t i = program.steps.size(); i-- > 0;) {
    Program shorter = program;
    shorter.steps.erase(shorter.steps.begin() + static_cast<std::ptrdiff_t>(i));
    if (any_rank(!compare(shorter, number, options).empty())) program = shorter;
  }
  return program;
}

// What each rank found, in the order of ranks.
void print_found(const std::string& found) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int turn = 0; turn < ranks; ++turn) {
    if (turn == world_rank() && !found.empty()) {
      std::printf("  rank %d of %d: %s\n", turn, ranks, found.c_str());
      std::fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

void report(const Program& program, std::uint64_t number, const std::string& found,
            const Options& options) {
  const bool speaks = world_rank() == 0;
  if (speaks) {
    std::printf("program %llu differs; again: --seed %llu --first %llu --programs 1\n",
                static_cast<unsigned long long>(number),
                static_cast<unsigned long long>(options.seed),
                static_cast<unsigned long long>(number));
  }
  print_found(found);
  if (speaks) std::printf("%s\nshortened:\n", text_of(program).c_str());
  const Program shorter = shortened(program, number, options);
  const std::string found_then = compare(shorter, number, options);
  if (speaks) std::printf("%s\n", text_of(shorter).c_str());
  print_found(found_then);
}

// Whether MPI by itself does not do the same twice, so that there is nothing to compare with.
// Collective.
bool differs_from_itself(Program program, std::uint64_t number, const Options& options) {
  program.cache["perdure_cache"] = "off";
  for (int i = 0; i < runs_of_mpi_alone; ++i) {
    if (any_rank(!compare(program, number, options).empty())) return true;
  }
  return false;
}

int run(const Options& options) {
  std::uint64_t different = 0;
  std::uint64_t by_chance = 0;
  if (world_rank() == 0) {
    std::printf("seed %llu: %llu programs from %llu on\n",
                static_cast<unsigned long long>(options.seed),
                static_cast<unsigned long long>(options.programs),
                static_cast<unsigned long long>(options.first));
    std::fflush(stdout);
  }
  for (std::uint64_t i = 0; i < options.programs; ++i) {
    const std::uint64_t number = options.first + i;
    Program program = draw_program(options.seed, number);
    for (const auto& [key, value] : options.hints) program.cache[key] = value;
    if (options.verbose && world_rank() == 0) {
      std::printf("program %llu: %s\n", static_cast<unsigned long long>(number),
                  text_of(program).c_str());
      std::fflush(stdout);
    }
    const std::string found = compare(program, number, options);
    if (!any_rank(!found.empty())) continue;
    if (!options.plant && differs_from_itself(program, number, options)) {
      ++by_chance;
      continue;
    }
    ++different;
    if (options.plant) continue;
    report(program, number, found, options);
    if (different == 5) break;
  }
  if (world_rank() == 0) {
    std::printf("seed %llu: %llu programs, %llu differ, %llu also without the cache\n",
                static_cast<unsigned long long>(options.seed),
                static_cast<unsigned long long>(options.programs),
                static_cast<unsigned long long>(different),
                static_cast<unsigned long long>(by_chance));
  }
  // A program may ask for what must fail; if nearly all of many do, nothing was compared.
  const bool vacuous =
      options.programs >= 10 && static_cast<std::uint64_t>(Session::opened()) < options.programs;
  if (vacuous && world_rank() == 0)
    std::printf("only %d files could be opened\n", Session::opened());
  if (vacuous) return 1;
  // A program may read nothing, or leave no file, so that there is nothing to be wrong in.
  if (options.plant) return different * 4 >= options.programs ? 0 : 1;
  return different == 0 && by_chance <= 1 + options.programs / 50 ? 0 : 1;
}

// Open MPI 4.1 opens files for the shared pointer with every file. With many ranks these come and
// go without order: an open fails on some ranks and hangs on the others, or a rank dies of SIGBUS.
// So they are left to the component that keeps none of its own until it is used, which it is not:
// Session::shares_pointer() says no.
void leave_out_shared_pointers() {
  const char* ranks = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (ranks == nullptr || std::strcmp(ranks, "1") == 0) return;
  ::setenv("OMPI_MCA_sharedfp", "^sm,lockedfile", 1);
}

}  // namespace
}  // namespace oracle

int main(int argc, char** argv) {
  oracle::leave_out_shared_pointers();
  MPI_Init(&argc, &argv);
  oracle::Options options;
  if (!oracle::parse(argc, argv, options)) {
    std::fprintf(stderr, "mpiio_oracle: see the top of its main.cpp for the options\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Bcast(&options.seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  const int failed = oracle::run(options);
  MPI_Finalize();
  return failed;
}
