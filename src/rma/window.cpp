#include "rma/window.hpp"

namespace perdure {

HandleTable<MPI_Win, Window> window_table;

}  // namespace perdure
