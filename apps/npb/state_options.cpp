// SPDX-License-Identifier: BSD-3-Clause
#include <CLI/CLI.hpp>
#include <map>

#include "job/choices.hpp"
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
  return job::name_in(protections, protection);
}

void add_state_options(CLI::App& app, StateOptions& options) {
  job::add_choice(app, "--protect", options.protection, protections,
                  "how the state survives: none, disk (files), flush (copied and flushed), ipv "
                  "(in-place versioning)");
  app.add_option("--pool", options.pool,
                 "directory of the pool, or of the files; what it holds is "
                 "gone on with");
  job::add_choice(app, "--tier", options.tier, tiers,
                  "ipv: how contents come into the next version");
  app.add_flag("--discard", options.discard, "begin anew, whatever the pool holds");
  job::add_emulation(app, options.emulation);
  app.add_option("--threads", options.threads, "threads that copy and flush")
      ->check(CLI::Range(1, 256));
  app.add_option("--ipv-report", options.report, "ipv: write there what was done, as JSON");
  app.parse_complete_callback(
      [&options] { objects_on_huge_pages = options.protection == Protection::ipv; });
}

}  // namespace npb
