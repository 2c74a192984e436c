// SPDX-License-Identifier: BSD-3-Clause
//
// Windows and attached regions that stay plain under PERDURE_WINDOWS, because they cannot be made
// persistent: the program knows nothing of Perdure, and must not end for it. The first of a process
// is reported on stderr, the others are counted when MPI ends. Threads: any.
#pragma once

#include <string>

#include "base/status.hpp"
#include "rma/window_options.hpp"

namespace perdure {

// Whether a window that failed with `status` is left to the program as MPI made it. What a restart
// might want back (a damaged pool, or another job's) is an error for these programs too.
bool stays_plain(const WindowOptions& options, const Status& status);

// `what` is for people: "window 'window-7'". Of a window rank 0 of its communicator reports.
void report_plain(const std::string& what, const Status& why, bool reports = true);

}  // namespace perdure
