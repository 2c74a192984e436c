// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/report.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "mpi/mpi_library.hpp"
#include "mpiio/file_record.hpp"

namespace perdure {

namespace {

int world_rank() {
  int rank = 0;
  PMPI_Comm_rank(comm_world(), &rank);
  return rank;
}

}  // namespace

void append_line(const char* variable, const nlohmann::ordered_json& line) {
  const char* prefix = std::getenv(variable);
  if (prefix == nullptr || *prefix == '\0') return;
  const std::string path = std::string(prefix) + "." + std::to_string(world_rank());
  const Status written = write_output(path, line.dump() + "\n", true);
  if (written.ok()) return;
  std::fprintf(stderr, "perdure: %s: %s\n", variable, written.message().c_str());
}

void report_file(const OpenFile& open, const Status& closed) {
  const char* prefix = std::getenv("PERDURE_CACHE_REPORT");
  if (open.record == nullptr && (prefix == nullptr || *prefix == '\0')) return;
  CachedFile& file = *open.file;
  const CacheTally& tally = file.tally();
  nlohmann::ordered_json line;
  line["file"] = file.path();
  line["cached"] = true;
  line["rank"] = world_rank();
  line["nodes"] = file.nodes();
  line["open_s"] = static_cast<double>(monotonic_ns() - open.opened_ns) * 1e-9;
  line["reads"] = tally.reads.load();
  line["read_bytes"] = tally.read_bytes.load();
  line["writes"] = tally.writes.load();
  line["written_bytes"] = tally.written_bytes.load();
  line["remote_bytes"] = tally.remote_bytes.load();
  line["filled_bytes"] = tally.filled_bytes;
  line["passed_bytes"] = tally.passed_bytes;
  line["evicted_bytes"] = tally.evicted_bytes;
  line["aside"] = tally.aside;
  line["aside_accesses"] = tally.aside_accesses.load();
  line["aside_bytes"] = tally.aside_bytes.load();
  line["written_back_bytes"] = tally.written_back_bytes;
  line["error"] = closed.ok() ? nlohmann::ordered_json() : nlohmann::ordered_json(closed.message());
  append_line("PERDURE_CACHE_REPORT", line);
  if (open.record != nullptr) open.record->add_cache_fields(line);
}

}  // namespace perdure
