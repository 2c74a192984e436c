// SPDX-License-Identifier: BSD-3-Clause
/* What coverage.py looks for declarations in. */
#include <mpi.h>
