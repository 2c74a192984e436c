#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# run.sh MPIEXEC RANKS NODES PROGRAM [ARGUMENT…]: the oracle on so many ranks, which believe that
# they are on so many nodes, in a directory of its own, also when it is killed. No parts of
# files may be left.
set -eu
mpiexec=$1 ranks=$2 nodes=$3 program=$4
shift 4
here=$(dirname "$0")
place=$(mktemp -d "${PERDURE_TEST_DIR:-/dev/shm}/perdure-oracle-XXXXXX")
trap 'rm -rf "$place"' EXIT
trap 'exit 1' INT TERM
mkdir "$place/pool"
code=0
"$here/../../../tools/mpirun.sh" "$mpiexec" "$ranks" "$here/../on_fake_nodes.sh" "$nodes" \
  "$program" --directory "$place" "$@" || code=$?
left=$(find "$place/pool" -type f)
if [ "$code" = 0 ] && [ -n "$left" ]; then
  echo "run.sh: parts of files are left behind: $left" >&2
  code=1
fi
exit "$code"
