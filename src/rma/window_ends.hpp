// SPDX-License-Identifier: BSD-3-Clause
//
// Window ends: persistent windows that the program has not freed when it calls MPI_Finalize
// (base/process_end.hpp). They are freed in the order in which they were made, as the MPI library
// would otherwise end with memory that it does not expect, and their pools are closed. What a
// window's pool holds of it stays, whatever perdure_free says: nobody has asked to erase it. A
// window in an epoch that is open on some rank stays as it is.
//
// At exit() there is nothing to do: all that lasts of a window is in its pool's versions.
//
// Threads: as MPI_Finalize. Failure: MPI's, which nobody hears.
#pragma once

#include "rma/window.hpp"

namespace perdure {

// The window is in the table from now on; no more.
void note_made(Window& window);
void note_freed(const Window& window);

}  // namespace perdure
