#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# calls.sh PROGRAM: runs it on a pool of its own.
set -e
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$1" "$place/pool" | tee "$place/out"
grep -q "verdict: right" "$place/out"
