#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# run.sh MPIEXEC RANKS NODES PROGRAM [ARGUMENT…]: the oracle on so many ranks, which believe that
# they are on so many nodes, in a directory of its own, also when it is killed. No parts of
# files may be left.
#   PERDURE_ORACLE_ROOM  the parts are on a device with room for so many KiB of blocks, on all nodes
#                        together; 77 where it can't be mounted
#   PERDURE_ORACLE_RUNS  so many times, each with a device of its own: what the ranks of several
#                        nodes closed one by one is served, and takes room, until MPI_Finalize
set -eu
mpiexec=$1 ranks=$2 nodes=$3 program=$4
shift 4
here=$(dirname "$0")
place=$(mktemp -d "${PERDURE_TEST_DIR:-/dev/shm}/perdure-oracle-XXXXXX")
trap 'umount "$place/pool" 2>/dev/null || true; rm -rf "$place"' EXIT
trap 'exit 1' INT TERM
mkdir "$place/pool"
for _ in $(seq "${PERDURE_ORACLE_RUNS:-1}"); do
  if [ -n "${PERDURE_ORACLE_ROOM:-}" ]; then
    # What a part needs besides blocks: header, journal and a page of its table.
    size=$((nodes * 1100 + PERDURE_ORACLE_ROOM))k
    umount "$place/pool" 2>/dev/null || true
    mount -t tmpfs -o "size=$size,mode=0700" none "$place/pool" || exit 77
  fi
  code=0
  "$here/../../../tools/mpirun.sh" "$mpiexec" "$ranks" "$here/../on_fake_nodes.sh" "$nodes" \
    "$program" --directory "$place" "$@" || code=$?
  left=$(find "$place/pool" -type f)
  if [ "$code" = 0 ] && [ -n "$left" ]; then
    echo "run.sh: parts of files are left behind: $left" >&2
    code=1
  fi
  [ "$code" = 0 ] || exit "$code"
done
