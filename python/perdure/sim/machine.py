"""What a trace is replayed on: devices, and how the command line names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from signal import SIGINT, getsignal, signal
from typing import Any

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from perdure.core import load_core
from perdure.screen import console

DEFAULT_PRESET = "hosogaya2008"


@dataclass(frozen=True)
class Options:
    """How a trace is read and what its accesses cost."""

    devices: Any
    clean: bool = False  # a first touch is read from swap, and has a replica there
    region: str = ""
    compute_ns: float | None = None


def devices_named(
    preset: str, dram: str | None, mram: str | None, flash: str | None, mix_levels: bool
) -> Any:
    """The parts of a preset, each replaced by the one that is named. Raises _core.Error."""
    core = load_core()
    presets = {each.name: each for each in core.device_presets()}
    if preset not in presets:
        raise ValueError(f"there is no preset '{preset}'; there are {', '.join(presets)}")
    chosen = presets[preset]
    return core.devices_of(
        dram or chosen.dram, mram or chosen.mram, flash or chosen.flash, mix_levels
    )


class Stopped(Exception):
    """Ctrl-C came while nothing was finished yet."""


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
    screen = console(stderr=True)
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

