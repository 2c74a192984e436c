// SPDX-License-Identifier: BSD-3-Clause
//
// Emulation: the options --emulate and --delay of every application.
#pragma once

#include <string>

#include "perdure/perdure.h"

namespace CLI {
class App;
}

namespace job {

struct Emulation {
  std::string model;              // a memory model of `perdure devices`; empty: $PERDURE_EMULATE
  std::string delay = "virtual";  // as the hint perdure_delay

  perdure_delay mode() const {
    if (delay == "wait") return PERDURE_DELAY_WAIT;
    return delay == "drain" ? PERDURE_DELAY_DRAIN : PERDURE_DELAY_VIRTUAL;
  }
};

void add_emulation(CLI::App& app, Emulation& emulation);

}  // namespace job
