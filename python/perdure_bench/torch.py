# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench torch`: perdure.torch.Checkpoint against torch.save() and fsync.

All save the same state dict of float32 tensors, by turns, in a new random order each round; every
element has changed since the save before. `memory` is a pool on tmpfs beside a file on tmpfs, and
`disk` the same pool beside a file on a disk, where a program without a pool would save.

    ratio_to_torch_save   of the time that save() keeps the program, durable when it returns
    ratio_background      the same with wait=False: the program goes on meanwhile
    save, torch_save, load, torch_load   in milliseconds
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.files import open_new
from perdure.programs import ProgramFailed
from perdure.progress import progress
from perdure_bench.facts import Fact, take_turns
from perdure_bench.solver import disk_directory, pool_directory

if TYPE_CHECKING:
    import torch

SUMMARY = "checkpoints of PyTorch in a pool, over torch.save() and fsync"
_TENSORS = 16
_WAYS = 4
_SIZES = (("64MiB", 64 << 20), ("4MiB", 4 << 20))


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come; `quick` is a check within a minute. Raises ProgramFailed."""
    try:
        import perdure.torch  # noqa: F401  whether it is there
    except ImportError as missing:
        raise ProgramFailed(f"{missing}") from None
    rounds = 7 if quick else 41
    with (
        pool_directory() as memory,
        progress("bench torch", _WAYS * (rounds + 1) * len(_SIZES)) as advance,
    ):
        disk = disk_directory() / "torch"
        disk.mkdir(parents=True, exist_ok=True)
        for size, size_bytes in _SIZES:
            files = {"memory": memory / "state.pt", "disk": disk / "state.pt"}
            yield from _facts(size, size_bytes, memory / size, files, rounds, advance)
            for path in files.values():
                path.unlink()


def _facts(
    size: str,
    size_bytes: int,
    pool: Path,
    files: dict[str, Path],
    rounds: int,
    advance: Callable[[], None],
) -> Iterator[Fact]:
    import torch

    from perdure.torch import Checkpoint

    elements = size_bytes // _TENSORS // 4
    state = {f"t{number}": torch.zeros(elements) for number in range(_TENSORS)}
    with Checkpoint(pool) as kept:
        saves: dict[str, Callable[[], object]] = {
            "save": partial(kept.save, state),
            "background": partial(kept.save, state, wait=False),
        }
        saves |= {place: partial(_save, state, path) for place, path in files.items()}
        numbers = count()
        ways = {way: partial(_changed_and_saved, state, numbers, save, kept.wait)
                for way, save in saves.items()}  # fmt: skip
        spent = take_turns(ways, rounds, advance)  # the first round makes the files
        loads = [_ms(kept.load) for _ in range(rounds)]
    for place, path in files.items():
        case = f"save-{size}-{place}"
        for metric, way in (("ratio_to_torch_save", "save"), ("ratio_background", "background")):
            ratios = [ours / theirs for ours, theirs in zip(spent[way], spent[place])]
            yield Fact.of("torch", case, metric, ratios)
        yield Fact.of("torch", case, "torch_save", spent[place], "ms")
        theirs = [_ms(partial(torch.load, path)) for _ in range(rounds)]
        yield Fact.of("torch", case, "torch_load", theirs, "ms")
    yield Fact.of("torch", f"save-{size}", "save", spent["save"], "ms")
    yield Fact.of("torch", f"save-{size}", "load", loads, "ms")


def _changed_and_saved(
    state: dict[str, torch.Tensor],
    numbers: Iterator[int],
    save: Callable[[], object],
    settle: Callable[[], object],
) -> float:
    """Milliseconds of the save alone."""
    number = next(numbers)
    for tensor in state.values():
        tensor.fill_(number)
    took = _ms(save)
    settle()
    return took


def _save(state: dict[str, Any], path: Path) -> None:
    """Whole and durable, as Checkpoint.save() is when it returns."""
    import torch

    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with open_new(fresh) as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _ms(call: Callable[[], object]) -> float:
    began = time.monotonic_ns()
    call()
    return (time.monotonic_ns() - began) / 1e6
