// SPDX-License-Identifier: BSD-3-Clause
#include <CLI/CLI.hpp>
#include <map>

#include "npb/state.hpp"
#include "perdure/perdure_ipv.h"

namespace npb {
namespace {

const std::map<std::string, Protection> protections{{"none", Protection::none},
                                                    {"disk", Protection::disk},
                                                    {"flush", Protection::flush},
                                                    {"ipv", Protection::ipv}};
const std::map<std::string, int> tiers{
    {"auto", PERDURE_IPV_AUTO}, {"copy", PERDURE_IPV_COPY}, {"stream", PERDURE_IPV_STREAM}};

}  // namespace

const char* name_of(Protection protection) {
  for (const auto& [name, named] : protections) {
    if (named == protection) return name.c_str();
  }
  return "?";
}

void add_state_options(CLI::App& app, StateOptions& options) {
  app.add_option("--protect", options.protection,
                 "how the state survives: none, disk (files), flush (copied and flushed), ipv "
                 "(in-place versioning)")
      ->transform(CLI::CheckedTransformer(protections))
      ->default_str("none");
  app.add_option("--pool", options.pool,
                 "directory of the pool, or of the files; what it holds is "
                 "gone on with");
  app.add_option("--tier", options.tier, "ipv: how contents come into the next version")
      ->transform(CLI::CheckedTransformer(tiers))
      ->default_str("auto");
  app.add_flag("--discard", options.discard, "begin anew, whatever the pool holds");
  job::add_emulation(app, options.emulation);
  app.add_option("--threads", options.threads, "threads that copy and flush")
      ->check(CLI::Range(1, 256));
  app.add_option("--ipv-report", options.report, "ipv: write there what was done, as JSON");
  app.parse_complete_callback(
      [&options] { objects_on_huge_pages = options.protection == Protection::ipv; });
}

}  // namespace npb
