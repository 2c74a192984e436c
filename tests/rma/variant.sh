#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# variant.sh VARIANT LIBRARY MPIEXEC RANKS PROGRAM [ARGUMENT…]: runs an MPI program that knows
# nothing of Perdure
#   plain       by itself
#   preloaded   with LIBRARY loaded, and a pool named that nothing may be put into
#   copy|log|flush|halves   with every window made persistent, in mode twin for halves, and with
#               epochs that commit
#   twin        mode twin without commits
# and then looks whether the pool is as it must be: absent, or there.
set -eu
variant=$1 library=$2 mpiexec=$3 ranks=$4
shift 4
place=$(mktemp -d "${PERDURE_TEST_DIR:-/dev/shm}/perdure-rma-XXXXXX")
trap 'rm -rf "$place"' EXIT
export PERDURE_SUITE_VARIANT="$variant"
unset PERDURE_WINDOWS PERDURE_POOL || true

tests=$(dirname "$0")/..
preload="$tests/add_preload.sh ${PERDURE_PRELOAD_FIRST:+$PERDURE_PRELOAD_FIRST:}$library"
case $variant in
  plain) preload= ;;
  preloaded) export PERDURE_POOL="$place/pool" ;;
  copy | log | flush)
    export PERDURE_WINDOWS="pool=$place/pool;mode=$variant;commit=fence,wait,unlock_all" ;;
  halves)
    export PERDURE_WINDOWS="pool=$place/pool;mode=twin;commit=fence,wait,unlock_all;halves=asked" ;;
  twin) export PERDURE_WINDOWS="pool=$place/pool;mode=twin;commit=none" ;;
  *)
    echo "variant.sh: '$variant' is none of plain, preloaded, copy, log, flush, halves, twin" >&2
    exit 2 ;;
esac

# Only the ranks are to have it, not their launcher.
"$tests/../tools/mpirun.sh" "$mpiexec" "$ranks" $preload "$@"

made=$(find "$place" -name job | wc -l)
case $variant in
  plain | preloaded) wanted=no ;;
  *) wanted=yes ;;
esac
if [ "$wanted" = yes ] && [ "$made" = 0 ]; then
  echo "variant.sh: $variant made no pool: no window was persistent" >&2
  exit 1
elif [ "$wanted" = no ] && [ "$made" != 0 ]; then
  echo "variant.sh: $variant made a pool, but was asked for none" >&2
  exit 1
fi
