// SPDX-License-Identifier: BSD-3-Clause
//
// bench_persist: what it costs to make bytes durable on this machine, against libpmem and memcpy.
#include <cstdio>
#include <exception>

#include "persist.hpp"
#include "words.hpp"

int main(int argc, char** argv) try {
  perdure::bench::PersistOptions options;
  std::string only;
  perdure::bench::Words words(
      "Copy and flush primitives against libpmem and memcpy, and commits of many arrays and of few "
      "pages; one JSON line per fact");
  words.flag("--quick", options.quick, "fewer repetitions and flush sizes: under a minute");
  words.directory("--dir", options.directory, "directory of the file that is written");
  words.number("--largest", options.largest_bytes, "largest size in bytes",
               std::uint64_t{64} << 10U, std::uint64_t{1} << 40U);
  words.numbers("--threads", options.threads, "thread counts", 1, 1024);
  words.one_of({"copy", "flush", "arrays", "sparse"}, "--only", only,
               "copy, flush, arrays or sparse");
  if (const auto code = words.parse(argc, argv)) return *code;

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
