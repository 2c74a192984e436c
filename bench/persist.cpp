// SPDX-License-Identifier: BSD-3-Clause
//
// bench_persist: what it costs to make bytes durable on this machine, against libpmem and memcpy.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "persist.hpp"

int main(int argc, char** argv) try {
  perdure::bench::PersistOptions options;
  std::string only;
  CLI::App app(
      "Copy and flush primitives against libpmem and memcpy, and commits of many arrays and of few "
      "pages; one JSON line per fact");
  app.add_flag("--quick", options.quick, "fewer repetitions and flush sizes: under a minute");
  app.add_option("--dir", options.directory, "directory of the file that is written")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_option("--largest", options.largest_bytes, "largest size in bytes")
      ->check(CLI::Range(std::size_t{64} << 10U, std::size_t{1} << 40U))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "thread counts")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--only", only, "copy, flush, arrays or sparse")
      ->check(CLI::IsMember({"copy", "flush", "arrays", "sparse"}));
  CLI11_PARSE(app, argc, argv);

  perdure::Status status;
  const auto wanted = [&](const char* part) {
    return status.ok() && (only.empty() || only == part);
  };
  if (wanted("copy")) status = perdure::bench::measure_copies(options);
  if (wanted("flush")) status = perdure::bench::measure_flushes(options);
  if (wanted("arrays")) status = perdure::bench::measure_arrays(options);
  if (wanted("sparse")) status = perdure::bench::measure_sparse(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_persist: %s\n", status.message().c_str());
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_persist: %s\n", error.what());
  return 1;
}
