// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/record_line.hpp"

#include <unistd.h>

#include <cstdio>

#include "base/environment.hpp"
#include "base/files.hpp"
#include "mpi/mpi_library.hpp"

namespace perdure {

void append_line(const char* variable, const std::string& line) {
  const std::string prefix = environment(variable);
  if (prefix.empty()) return;
  int rank = 0;
  PMPI_Comm_rank(comm_world(), &rank);
  const Status written = write_output(prefix + "." + std::to_string(rank), line + "\n", true);
  if (written.ok()) return;
  std::fprintf(stderr, "perdure: %s: %s\n", variable, written.message().c_str());
}

std::string node_name() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const std::string pretended = environment("PERDURE_NODE_ID");
  return pretended.empty() ? std::string(host) : std::string(host) + "/" + pretended;
}

}  // namespace perdure
