// SPDX-License-Identifier: BSD-3-Clause
//
// File ends: cached files that the program has not closed when it ends (base/process_end.hpp).
//
//   MPI_Finalize  closes them, each handle in the order in which they were opened, as the program
//                 would have: it is collective, and all ranks come.
//   exit()        hands over to each file what its part has, and gives the part up. The last
//                 process of the node that has it removes it; others go on with it. Of a file on
//                 several nodes a process first tells the others that it asks them nothing any
//                 more, and serves those that still ask it for up to `linger_ms`; its part stays,
//                 handed over, as the others' knowledge of the file must not be older (cache.P14).
//                 A file that is committed with a pool is left as a crash leaves it: it goes back
//                 to the pool's version, and what has been written since is not made to look like
//                 one.
//
// Threads: any. Failure: said on stderr, with where the bytes are and what saves them; the process
// does not end with 0.
#pragma once

#include "mpiio/open_file.hpp"

namespace perdure {

// The handle is in the table from now on; no more.
void note_opened(OpenFile& open);
void note_closed(const OpenFile& open);
// Also where no file was opened yet: the process may have joined the table of files aside.
void end_files_with_process();
// After the MPI library's first opening of a file: what it registers there for its own end (as
// ROMIO does, which frees what its files need) comes after all that is registered later.
void end_files_before_library();

}  // namespace perdure
