#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# make_kernels.sh [FILE]: makes FILE, by default kernels.ptx beside this script, of kernels.cu, by
# clang 19 alone: no part of CUDA is needed. Whoever changes kernels.cu calls it and commits both;
# tests/gpu compares them.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
clang=${CLANG:-clang++-19}
made=${1:-$folder/kernels.ptx}
# PTX 6.3 for devices from 2017 (Volta) on: later drivers and devices take it as well.
version=$("$clang" --version | sed -n '1s/.*version \([0-9.]*\).*/\1/p')
text=$("$clang" -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 --cuda-feature=+ptx63 \
  -nocudainc -nocudalib -std=c++17 -O3 -Wall -Wextra -Werror -S -o - "$folder/kernels.cu")
{
  printf '// SPDX-License-Identifier: BSD-3-Clause\n//\n'
  printf '// Made of kernels.cu by make_kernels.sh with clang %s.\n' "$version"
  # Without the compiler's remarks.
  printf '%s\n' "$text" | sed -e 's|//.*||' -e 's/^\t/  /' -e 's/\t/ /g' -e 's/ *$//' -e '/^$/d'
} >"$made"
