#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# heat.sh HEAT: the Fortran program in one run, and in two runs on another pool, must end with the
# same sum; and in every tier.
set -eu
heat=$1
folder=$(mktemp -d "${TMPDIR:-/tmp}/perdure-ipv-heat-XXXXXX")
trap 'rm -rf "$folder"' EXIT
whole=$("$heat" "$folder/whole" 40 | tail -n 1)
for tier in copy stream auto; do
  export PERDURE_IPV="tier=$tier"
  "$heat" "$folder/$tier" 17 >"$folder/first"
  "$heat" "$folder/$tier" 40 >"$folder/again"
  grep -q '^version 0 step 0$' "$folder/first"
  grep -q '^version 17 step 17$' "$folder/again"
  again=$(tail -n 1 "$folder/again")
  if [ "$again" != "$whole" ]; then
    echo "$tier: '$again' instead of '$whole'"
    exit 1
  fi
done
echo "$whole"
