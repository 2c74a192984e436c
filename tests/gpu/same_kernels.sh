#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# same_kernels.sh FOLDER: is kernels.ptx what make_kernels.sh makes of kernels.cu? Another compiler
# may make another text of the same meaning, so it is not asked.
set -eu
made=$(mktemp)
trap 'rm -f "$made"' EXIT
"$1/make_kernels.sh" "$made"
if ! grep -qxF "$(grep '^// Made of' "$made")" "$1/kernels.ptx"; then
  echo "skipped: kernels.ptx was made by another compiler than the one here: $(sed -n 3p "$made")"
  exit 77
fi
cmp "$made" "$1/kernels.ptx" || {
  echo "kernels.ptx is not of kernels.cu: src/device/make_kernels.sh makes it anew"
  exit 1
}
