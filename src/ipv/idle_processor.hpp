// SPDX-License-Identifier: BSD-3-Clause
//
// Idle processor: whether a helper takes nothing from the computation.
#pragma once

#include "base/group.hpp"
#include "base/status.hpp"

namespace perdure {

// Collective; each rank's own answer. A rank may run on the processors that its launcher has bound
// it to, and shares them with the ranks of its node that are bound to the same; each computes with
// as many threads as OMP_NUM_THREADS says, else one. So a rank that has a whole core to itself has
// the core's other hardware thread idle, whatever other ranks and nodes do. Ranks whose processors
// overlap without being the same count as apart. False where the processors are not known.
Result<bool> processor_is_idle(Group& group);

}  // namespace perdure
