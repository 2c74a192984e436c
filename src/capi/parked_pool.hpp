// SPDX-License-Identifier: BSD-3-Clause
//
// Parked pool: one that stays open in this process though nothing of the program uses it, so that
// it need not be opened anew, as that of PERDURE_WINDOWS without a window (rma/window_pool.hpp). A
// program that opens it by its path gets it: it is closed first.
//
// Threads: set before the first is parked. Failure: none.
#pragma once

#include <functional>
#include <string>

#include "base/group.hpp"

namespace perdure {

// Local: what closes the parked pool of that directory, if it is one of the group's ranks;
// collective over the group then. Empty: there is none.
using FindParkedPool = std::function<void()> (*)(const std::string& directory, Group& group);

void set_parked_pools(FindParkedPool find);

// [collective] Closes it where all ranks of the group have it; they go on in agreement. `path` may
// be null.
Status close_parked_pool(const char* path, Group& group, const Status& local);

}  // namespace perdure
