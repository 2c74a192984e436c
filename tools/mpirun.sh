#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# mpirun.sh MPIEXEC RANKS PROGRAM [ARGUMENT…]: starts an MPI program the same way with every MPI.
# Open MPI runs as root, on fewer cores than ranks, and yields only if it is asked to;
# both end within bounded time because a launcher may ignore a polite SIGTERM.
set -eu
mpiexec=$1 ranks=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
# Between asking the ranks of a failed job to end and killing them its launcher waits, 1 s usually.
export OMPI_MCA_odls_base_sigkill_timeout=0
# Its component for some networks' adapters looks for them for a fifth of a second, in each rank.
export OMPI_MCA_pml=^cm
# Containers often forbid single-copy transfers; one-sided communication then needs the component
# that Debian's configuration of Open MPI 4 excludes.
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_osc=^ucx
# A sanitized build: the MPI libraries leak at exit; unwinding without frame pointers names them.
suppressions=$(dirname "$0")/lsan.supp
export LSAN_OPTIONS="suppressions=$suppressions:fast_unwind_on_malloc=0:print_suppressions=0"
exec timeout -k 5 "${PERDURE_MPI_TIMEOUT:-300}" "$mpiexec" -n "$ranks" "$@"
