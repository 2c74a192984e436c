// SPDX-License-Identifier: BSD-3-Clause
//
// What every process needs whose files are cached, done while MPI begins: the calls are bound, and
// the table of files that stand aside is joined (aside_table.hpp). So the first file that it opens
// waits for no more than the others.
//
// Only where PERDURE_CACHE is set, as by perdure run --cache. Hints are known at the opening.
//
// Threads: as MPI_Init. Failure: none; the opening does it, and reports what is wrong.
#pragma once

namespace perdure {

void prepare_files();

}  // namespace perdure
