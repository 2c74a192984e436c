#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.hpp"
#include "mpi/mpi_library.hpp"
#include "mpiio/open_file.hpp"

namespace perdure {

// One line of JSON for each handle, appended to PREFIX.RANK.
void report_file(const OpenFile& open, const Status& closed) {
  const char* prefix = std::getenv("PERDURE_CACHE_REPORT");
  if (prefix == nullptr || *prefix == '\0') return;
  int rank = 0;
  PMPI_Comm_rank(comm_world(), &rank);
  CachedFile& file = *open.file;
  const CacheTally& tally = file.tally();
  nlohmann::ordered_json line;
  line["file"] = file.path();
  line["cached"] = true;
  line["rank"] = rank;
  line["nodes"] = file.nodes();
  line["open_s"] = static_cast<double>(monotonic_ns() - open.opened_ns) * 1e-9;
  line["reads"] = tally.reads.load();
  line["read_bytes"] = tally.read_bytes.load();
  line["writes"] = tally.writes.load();
  line["written_bytes"] = tally.written_bytes.load();
  line["remote_bytes"] = tally.remote_bytes.load();
  line["filled_bytes"] = tally.filled_bytes;
  line["written_back_bytes"] = tally.written_back_bytes;
  line["error"] = closed.ok() ? nlohmann::ordered_json() : nlohmann::ordered_json(closed.message());
  std::ofstream out(std::string(prefix) + "." + std::to_string(rank), std::ios::app);
  out << line.dump() << "\n";
}

}  // namespace perdure
