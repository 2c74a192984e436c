# SPDX-License-Identifier: BSD-3-Clause
"""The first lines of the command, before anything that takes long to import."""

from __future__ import annotations

import os
import signal
import sys

HELD = {signal.SIGUSR1, signal.SIGUSR2}


def prepare() -> None:
    """Fills closed standard descriptors, and keeps signals for `run` until its bell is there.

    A file that takes the number of standard error would get the messages. A signal that is passed
    on to the job later, as a scheduler's warning is, would end the launcher now.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
    if sys.argv[1:2] == ["run"]:
        signal.pthread_sigmask(signal.SIG_BLOCK, HELD)


def main() -> None:
    """Entry point of the console script."""
    prepare()
    from perdure.cli import main as command

    command()
