# SPDX-License-Identifier: BSD-3-Clause
"""Makes the command's man pages for what is installed.

    python man_pages.py FOLDER VERSION     perdure.1 and others, in FOLDER/man1
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from perdure.cli import command_line
from perdure.manual import write_pages


def main() -> None:
    folder, version = Path(sys.argv[1]), sys.argv[2]
    shutil.rmtree(folder, ignore_errors=True)
    write_pages(folder, command_line(), f"Perdure {version}")


if __name__ == "__main__":
    main()
