#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# variant.sh VARIANT LIBRARY MPIEXEC RANKS PROGRAM [ARGUMENT…]: runs an MPI program that knows
# nothing of Perdure
#   plain       by itself
#   preloaded   with LIBRARY loaded, and no file to cache
#   cached      with every file cached, from the first byte on
#   aside       where each file stands aside until it pays to cache it
#   later       the same, after three accesses
#   parts       the same, in equal parts that are fetched whole at open
#   sync_nvm    the same, where MPI_File_sync waits for the nodes' parts only
#   nodes       the same, with each rank on a node of its own, as far as two
# and then looks whether files were cached as they should be, and nothing is left behind.
# The program's own temporary files go to TMPDIR.
set -eu
variant=$1 library=$2 mpiexec=$3 ranks=$4
shift 4
place=$(mktemp -d "${PERDURE_TEST_DIR:-/dev/shm}/perdure-mpiio-XXXXXX")
trap 'umount "$place/small" 2>/dev/null || true; rm -rf "$place"' EXIT
mkdir "$place/pool" "$place/files" "$place/small"
# A device of 16 MiB, where mounting is allowed.
if mount -t tmpfs -o size=16m,mode=0700 none "$place/small" 2>/dev/null; then
  export PERDURE_SMALL_POOL="$place/small"
fi
export TMPDIR="$place/files" PERDURE_SUITE_VARIANT="$variant"
export PERDURE_CACHE_REPORT="$place/report"
unset PERDURE_CACHE PERDURE_NODE_ID || true

tests=$(dirname "$0")/..
preload="$tests/add_preload.sh ${PERDURE_PRELOAD_FIRST:+$PERDURE_PRELOAD_FIRST:}$library"
aside="files=*;directory=$place/pool"
request="$aside;from=0"
case $variant in
  plain) preload= ;;
  preloaded) ;;
  cached) export PERDURE_CACHE="$request" ;;
  aside) export PERDURE_CACHE="$aside" ;;
  later) export PERDURE_CACHE="$aside;from=3" ;;
  parts) export PERDURE_CACHE="$request;layout=parts;fetch=open" ;;
  sync_nvm) export PERDURE_CACHE="$request;sync=nvm" ;;
  nodes) export PERDURE_CACHE="$request" ;;
  *)
    echo "variant.sh: '$variant' is none of plain, preloaded, cached, aside, later, parts," \
      "sync_nvm, nodes" >&2
    exit 2 ;;
esac

# Only the ranks are to have it, not their launcher.
if [ "$variant" = nodes ]; then
  # Which rank it is, a process learns from its launcher: MPICH's and Open MPI's names of it.
  node='PERDURE_NODE_ID=$((${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-0}} % 2))'
  "$tests/../tools/mpirun.sh" "$mpiexec" "$ranks" $preload \
    sh -c "$node exec \"\$@\"" sh "$@"
else
  "$tests/../tools/mpirun.sh" "$mpiexec" "$ranks" $preload "$@"
fi

case $variant in
  plain | preloaded) wanted=no ;;
  *) wanted=yes ;;
esac
cached=no
if ls "$place"/report.* >/dev/null 2>&1; then cached=yes; fi
if [ "$cached" != "$wanted" ]; then
  echo "variant.sh: $variant: were files cached: $cached; should they be: $wanted" >&2
  exit 1
fi
left=$(find "$place/pool" -type f)
if [ -n "$left" ]; then
  echo "variant.sh: $variant left parts of files: $left" >&2
  exit 1
fi
