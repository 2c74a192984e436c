// SPDX-License-Identifier: BSD-3-Clause
#include "job/emulation.hpp"

#include <CLI/CLI.hpp>

namespace job {

void add_emulation(CLI::App& app, Emulation& emulation) {
  app.add_option("--emulate", emulation.model, "memory model of `perdure devices` to emulate");
  app.add_option("--delay", emulation.delay,
                 "how the emulated memory's time passes: counted (virtual), waited for (wait), or "
                 "waited for as far as the program did not work meanwhile (drain)")
      ->check(CLI::IsMember({"virtual", "wait", "drain"}))
      ->capture_default_str();
}

}  // namespace job
