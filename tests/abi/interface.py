# SPDX-License-Identifier: BSD-3-Clause
"""The binary interfaces of the libraries that programs link, as libabigail writes them.

    python3 tests/abi/interface.py BUILD     writes LIBRARY.abi of each library of that build here

tests/python/test_abi.py compares them with what is built. A program that was linked with a release
must run with every later one of the same SONAME.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
INCLUDE = HERE.parents[1] / "include/perdure"
# Of each library the folder below a build's src/, and one of its functions.
LIBRARIES = {
    "libperdure": ("capi", "perdure_commit"),
    "libperdure_mpi_mpich": ("capi", "perdure_commit"),
    "libperdure_mpi_openmpi": ("capi", "perdure_commit"),
    "libperdure_veloc_mpich": ("veloc", "VELOC_Checkpoint"),
    "libperdure_veloc_openmpi": ("veloc", "VELOC_Checkpoint"),
}
OPTIONS = [
    *("--headers-dir", str(INCLUDE), "--drop-private-types", "--exported-interfaces-only"),
    *("--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed"),
    *("--suppr", str(HERE / "interface.suppr")),
]


def describe(library: Path) -> str:
    """Functions, variables and types that programs see of it; not where it was built."""
    done = subprocess.run(
        ["abidw", *OPTIONS, library], capture_output=True, text=True, timeout=120, check=True
    )
    return re.sub(r"(<abi-instr [^>]*? path=')[^']*?(src/[^']*')", r"\1\2", done.stdout)


def built_at(build: Path, name: str) -> Path:
    return build / "src" / LIBRARIES[name][0] / f"{name}.so"


def main() -> None:
    build = Path(sys.argv[1])
    for name in LIBRARIES:
        library = built_at(build, name)
        if library.exists():
            (HERE / f"{name}.abi").write_text(describe(library), encoding="utf-8")
            print(f"{name}.abi")


if __name__ == "__main__":
    main()
