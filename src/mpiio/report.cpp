// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/report.hpp"

#include <cstdlib>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "mpi/mpi_library.hpp"
#include "mpi/record_line.hpp"
#include "mpiio/file_record.hpp"

namespace perdure {

namespace {

int world_rank() {
  int rank = 0;
  PMPI_Comm_rank(comm_world(), &rank);
  return rank;
}

}  // namespace

void report_file(const OpenFile& open, const Status& closed) {
  if (open.record == nullptr && environment("PERDURE_CACHE_REPORT").empty()) return;
  CachedFile& file = *open.file;
  const CacheTally& tally = file.tally();
  CacheCounts counts;
  counts.file = file.path();
  counts.rank = world_rank();
  counts.nodes = file.nodes();
  counts.open_s = static_cast<double>(monotonic_ns() - open.opened_ns) * 1e-9;
  counts.reads = tally.reads.load();
  counts.read_bytes = tally.read_bytes.load();
  counts.writes = tally.writes.load();
  counts.written_bytes = tally.written_bytes.load();
  counts.remote_bytes = tally.remote_bytes.load();
  counts.filled_bytes = tally.filled_bytes;
  counts.passed_bytes = tally.passed_bytes;
  counts.evicted_bytes = tally.evicted_bytes;
  counts.aside = tally.aside;
  counts.aside_accesses = tally.aside_accesses.load();
  counts.aside_bytes = tally.aside_bytes.load();
  counts.written_back_bytes = tally.written_back_bytes;
  if (!closed.ok()) counts.error = closed.message();
  append_line("PERDURE_CACHE_REPORT", line_of(counts));
  if (open.record != nullptr) open.record->add_cache_counts(std::move(counts));
}

}  // namespace perdure
