# SPDX-License-Identifier: BSD-3-Clause
"""What stops a command. Verbs raise these; perdure.ending says the sentence and ends with the code.

The text of each says what was seen, and the remedy.
"""

from __future__ import annotations


class Wrong(ValueError):
    """What a user gave cannot be used: nothing was done."""


class Failed(RuntimeError):
    """The work was begun, and what was wanted of it is not there."""


class NoProgram(Failed):
    """The program that was to be run is not there."""


class NotExecutable(Failed):
    """The program that was to be run is there, and can't be started."""


class Stopped(Exception):
    """Ctrl-C came while nothing was finished yet."""

    def __init__(self, sentence: str = "stopped") -> None:
        super().__init__(sentence)
