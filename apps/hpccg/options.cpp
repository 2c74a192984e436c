// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <map>

#include "job/choices.hpp"
#include "job/ending.hpp"
#include "job/run.hpp"

namespace hpccg {
namespace {

const std::map<std::string, Protection> protections{
    {"none", Protection::none}, {"memcpy", Protection::memcpy}, {"disk", Protection::disk},
    {"copy", Protection::copy}, {"async", Protection::async},   {"twin", Protection::twin},
    {"log", Protection::log}};
const std::map<std::string, Checksum> checksums{
    {"default", Checksum::standard}, {"on", Checksum::on}, {"off", Checksum::off}};
const std::map<std::string, TwinStore> twin_stores{{"cached", TwinStore::cached},
                                                   {"stream", TwinStore::stream}};

void add_problem(CLI::App& app, Options& options) {
  const CLI::Range extent(2, 1 << 20);  // two planes, so that no point is a neighbour twice
  app.add_option("nx", options.nx, "grid points of each rank along x")->check(extent);
  app.add_option("ny", options.ny, "along y")->check(extent);
  app.add_option("nz", options.nz, "along z; the ranks' grids are stacked")->check(extent);
  app.add_option("--iterations", options.iterations, "number of iterations");
  app.add_option("--tolerance", options.tolerance, "end earlier, when |r| / |b| is below");
  app.add_option("--print-every", options.print_every, "print the residual each N iterations");
  app.add_flag("--json", options.json, "end with one JSON object instead of a summary");
}

void add_protection(CLI::App& app, Options& options) {
  job::add_choice(app, "--protect", options.protection, protections, "how the state survives");
  app.add_option("--every", options.every, "commit each N iterations")->check(CLI::PositiveNumber);
  app.add_option(
         "--commit-plan", options.commit_plan,
         "of these, only when this plan of `perdure energy plan` says so (copy, async, twin, "
         "log)")
      ->check(CLI::ExistingFile);
  app.add_option("--pool", options.pool, "directory of the pool (copy, async, twin, log)");
  app.add_option("--disk-dir", options.disk_dir, "directory of the files (disk)");
  job::add_choice(app, "--checksum", options.checksum, checksums, "checksums of the arrays");
  job::add_choice(app, "--twin-store", options.twin_store, twin_stores,
                  "twin: ordinary stores, or blocks past the cache");
  app.add_flag("--windows", options.windows,
               "p is a persistent MPI window, in the pool of x and r (copy, twin, log)");
  job::add_emulation(app, options.emulation);
  app.add_option("--threads", options.threads, "threads that copy and flush")
      ->check(CLI::Range(1, 256));
}

void check_windows(const Options& options) {
  if (!options.windows || options.protection == Protection::copy ||
      options.protection == Protection::twin || options.protection == Protection::log) {
    return;
  }
  throw CLI::ValidationError("--windows", "needs --protect copy, twin or log");
}

void check_plan(const Options& options) {
  const bool has_pool =
      options.protection == Protection::copy || options.protection == Protection::async ||
      options.protection == Protection::twin || options.protection == Protection::log;
  if (options.commit_plan.empty() || (has_pool && !options.windows)) return;
  throw CLI::ValidationError("--commit-plan",
                             "needs --protect copy, async, twin or log, without --windows");
}

}  // namespace

const char* name_of(Protection protection) {
  return job::name_in(protections, protection);
}
const char* name_of(TwinStore store) {
  return job::name_in(twin_stores, store);
}

Options parse_options(int argc, char** argv, bool speaks) {
  Options options;
  CLI::App app("Conjugate gradients on a 27-point grid, with a state that survives");
  app.option_defaults()->always_capture_default();
  add_problem(app, options);
  add_protection(app, options);
  try {
    app.parse(argc, argv);
    check_windows(options);
    check_plan(options);
  } catch (const CLI::ParseError& error) {
    throw job::OptionsEnd{job::ended_at(app, error, speaks)};
  }
  return options;
}

}  // namespace hpccg
