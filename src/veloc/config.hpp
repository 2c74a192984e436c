// SPDX-License-Identifier: BSD-3-Clause
//
// The file that VELOC_Init is given: lines "key = value", as VELOC's user guide has them.
//
// What has a meaning here is taken; what has none is named in one line each (`notes`), so that
// nobody relies on it. A key that is in no guide, or a value that cannot be, is a Failure.
#pragma once

#include <string>
#include <vector>

namespace perdure_veloc {

struct Config {
  std::string scratch;            // pools are made there, one for each name
  std::string persistent;         // versions are drained there
  bool drained = true;            // persistent_interval is not -1
  bool redundant = true;          // ec_interval is not -1
  bool checksums = false;         // chksum
  bool waits = false;             // mode is sync
  unsigned scratch_versions = 2;  // that a pool keeps
  unsigned persistent_versions = 1000;
  std::vector<std::string> notes;

  // perdure_options.levels
  std::string levels() const;
};

Config read_config(const std::string& path);
// Of `text`, for tests; `path` is for the sentences.
Config parse_config(const std::string& text, const std::string& path);

}  // namespace perdure_veloc
