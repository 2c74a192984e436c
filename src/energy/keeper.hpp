// SPDX-License-Identifier: BSD-3-Clause
//
// Keeper: a process that outlives its owner and takes the owner's cap away.
//
// It has a session of its own, so that SIGKILL to the owner's process group spares it, and reads a
// pipe whose other end only the owner holds: when that is closed, for whatever reason, it releases
// the cap and ends. What kills the keeper as well (a control group that is ended) leaves the
// journal, which the next process that caps, or `perdure energy restore --stale`, applies.
//
// It is the program perdure-keeper: $PERDURE_KEEPER ("off": none), or beside the library or
// module that holds this code, or in its ../libexec/perdure.
//
// Threads: one at a time. Failure: without a keeper the cap is as safe as the journal is.
#pragma once

#include <string>

#include "base/file_handle.hpp"
#include "base/status.hpp"
#include "energy/owner.hpp"

namespace perdure::energy {

class Keeper {
 public:
  Keeper() = default;
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Once; later calls do nothing.
  Status start(const std::string& state_directory, const Owner& owner);
  bool running() const { return pipe_.fd() >= 0; }

 private:
  // Its end is the keeper's, which finds nothing to do if the cap was released before.
  FileHandle pipe_;
};

// The main function of perdure-keeper.
int run_keeper(int argc, char** argv);

}  // namespace perdure::energy
