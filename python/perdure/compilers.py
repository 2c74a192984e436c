# SPDX-License-Identifier: BSD-3-Clause
"""perdure-clang and its kin of a wheel, whose package has them: pip's scripts lead there.

A prefix and a build tree have them in a folder of their own (`perdure config --bindir`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from perdure.programs import PACKAGE


def main() -> None:
    """Becomes the compiler under whose name it was called."""
    compiler = PACKAGE / "bin" / Path(sys.argv[0]).name
    try:
        os.execv(compiler, [str(compiler), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{compiler.name}: {compiler}: {error.strerror}; install the wheel again")
