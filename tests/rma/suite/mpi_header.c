/* What coverage.py looks for declarations in. */
#include <mpi.h>
