# SPDX-License-Identifier: BSD-3-Clause
"""Long computations that Ctrl-C ends early, with what there is by then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from signal import SIGINT, getsignal, signal
from typing import TYPE_CHECKING

from perdure.failures import Stopped

if TYPE_CHECKING:
    from rich.progress import Progress


class Watch:
    """Shows how far the replays are, and tells them when the user wants them to stop."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self.stopped = False

    def of(self, what: str) -> Callable[[int, int], bool]:
        """A callback for one replay, from any thread."""
        task = self._bar.add_task(what, total=None)

        def show(accesses: int, of_all: int) -> bool:
            self._bar.update(task, completed=accesses, total=of_all or None)
            return not self.stopped

        return show

    def check(self) -> None:
        """Raises Stopped if the user wanted an end."""
        if self.stopped:
            raise Stopped

    def count(self, what: str, total: int) -> Callable[[], None]:
        """A callback that says that one of `total` is finished."""
        task = self._bar.add_task(what, total=total)
        return lambda: self._bar.update(task, advance=1)


@contextmanager
def watching() -> Iterator[Watch]:
    """A progress bar on a terminal; Ctrl-C sets `stopped` instead of ending the process."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    screen = Console(stderr=True, markup=False, highlight=False, emoji=False)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(show_speed=True),
        TimeRemainingColumn(),
    )
    before = getsignal(SIGINT)
    with Progress(
        *columns, console=screen, transient=True, disable=not screen.is_terminal
    ) as bar:
        watch = Watch(bar)

        def stop(_signal: int, _frame: object) -> None:
            watch.stopped = True

        signal(SIGINT, stop)
        try:
            yield watch
        finally:
            signal(SIGINT, before)
