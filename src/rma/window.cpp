// SPDX-License-Identifier: BSD-3-Clause
#include "rma/window.hpp"

namespace perdure {

HandleTable<MPI_Win, Window, window_slots> window_table;

}  // namespace perdure
