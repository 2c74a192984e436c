#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# same_file.sh VARIANT LIBRARY MPIEXEC RANKS COMPARE PROGRAM: runs PROGRAM FILE by itself and in a
# variant of variant.sh, and compares the two files by COMPARE (cmp, h5diff, …).
set -eu
variant=$1 library=$2 mpiexec=$3 ranks=$4 compare=$5 program=$6
here=$(dirname "$0")
files=$(mktemp -d "${PERDURE_FILES_DIR:-${PERDURE_TEST_DIR:-/dev/shm}}/perdure-mpiio-XXXXXX")
trap 'rm -rf "$files"' EXIT
"$here/variant.sh" plain "$library" "$mpiexec" "$ranks" "$program" "$files/plain"
"$here/variant.sh" "$variant" "$library" "$mpiexec" "$ranks" "$program" "$files/$variant"
"$compare" "$files/plain" "$files/$variant"
