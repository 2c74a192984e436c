# SPDX-License-Identifier: BSD-3-Clause
"""Signals of the launcher: wakes its loop, and hands over what is to be passed on."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FORWARDED = (*ENDING, signal.SIGUSR1, signal.SIGUSR2)


class Bell:
    """While entered, signals are collected instead of acted on. One per process, main thread."""

    def __enter__(self) -> Bell:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._received: list[int] = []
        self._before = {}
        self._before_wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in (*FORWARDED, signal.SIGCHLD, signal.SIGWINCH):
            if signal.getsignal(number) is signal.SIG_IGN and number != signal.SIGCHLD:
                continue  # nohup, or a shell's background job: stays ignored
            self._before[number] = signal.signal(number, self._note)
        # What came since the launcher was started is noted now (start.py).
        self._before_mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        return self

    def __exit__(self, *_: object) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before_mask)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._before_wakeup)
        os.close(self._reader)
        os.close(self._writer)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number in FORWARDED:
            self._received.append(number)

    def wait(self, seconds: float) -> None:
        """Sleeps until a signal comes or `seconds` have passed."""
        if select.select([self._reader], [], [], max(0.0, seconds))[0]:
            with suppress(BlockingIOError):
                os.read(self._reader, 4096)

    @property
    def rings_for_the_end(self) -> bool:
        """Whether a signal that is to end the job waits to be taken."""
        return any(number in ENDING for number in self._received)

    def take(self) -> list[int]:
        """The signals to pass on that have come since the last call, in their order."""
        taken, self._received = self._received, []
        return taken
