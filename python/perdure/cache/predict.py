# SPDX-License-Identifier: BSD-3-Clause
"""The time of a run's I/O with and without the cache, from its record. Pure.

Malinowski and Czarnul name this prediction as future work (section 5 of their paper). Of one file,
in seconds of a rank, with n nodes, p ranks, and sums over the classes of accesses:

    local    = sum calls (wrapper + device latency) / p + sum bytes / min(copy, device) / p
    link     = (n - 1)/n (sum calls 2 latency / p + sum bytes / bandwidth / p)
    memory   = touched bytes / first touch / p
    fetch    = bytes of touched blocks that the file had / backing
    writing  = dirty bytes / backing; 0 if read only or deleted on close
    opening  = what opening and closing cost without the cache, and the parts' cost on top
    other    = sync, set_size, preallocate, set_view: as measured

`without` is what the record measured, or, of a cached record with a given latency of stock calls,
sum calls latency / p + sum bytes / backing + opening + other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from perdure.cache.record import AccessClass, FileUse

_LARGE_LOG2 = 16  # from 64 KiB on, what an access takes is mostly its bytes
_WORTH = 0.95  # a cache that saves less than this leaves is noise
LINKS = {  # nominal rates of one port; latencies of one message by recollection
    "infiniband-edr": (12.5e9, 1.0e-6),
    "infiniband-hdr": (25e9, 0.8e-6),
    "ethernet-10": (1.25e9, 15e-6),
    "ethernet-100": (12.5e9, 5e-6),
}


@dataclass(frozen=True)
class Machine:
    """What the cache costs here; measured by perdure.cache.calibrate. Seconds, bytes per second."""

    read_s: float  # of a call that reads next to nothing
    write_s: float
    copy_bytes_per_s: float
    touch_bytes_per_s: float  # memory's first touch, on top of the copy
    open_close_s: float  # of the parts, on top of the file's own
    write_back_bytes_per_s: float = 0.0  # 0: not measured
    device: int = 0  # of the file system where that was measured


@dataclass(frozen=True)
class Target:
    """The devices that are predicted for; 0 bytes per second: no limit."""

    read_latency_s: float = 0.0
    write_latency_s: float = 0.0
    read_bytes_per_s: float = 0.0
    write_bytes_per_s: float = 0.0
    link_bytes_per_s: float = 0.0
    link_latency_s: float = 0.0


@dataclass(frozen=True)
class Prediction:
    """Of one file, in seconds of a rank."""

    path: str
    calls: int
    without_s: float
    access_without_s: float
    local_s: float = 0.0
    link_s: float = 0.0
    memory_s: float = 0.0
    fetch_s: float = 0.0
    write_back_s: float = 0.0
    open_close_s: float = 0.0
    other_s: float = 0.0
    setup_s: float = 0.0  # of open_close_s, what the cache adds
    cached: bool = False

    @property
    def with_s(self) -> float:
        transfers = self.local_s + self.link_s + self.memory_s + self.fetch_s + self.write_back_s
        return transfers + self.open_close_s + self.other_s

    @property
    def saved_s(self) -> float:
        return self.without_s - self.with_s

    @property
    def cost_s(self) -> float:
        """What the accesses have to pay for."""
        return self.memory_s + self.fetch_s + self.write_back_s + self.setup_s

    @property
    def break_even_calls(self) -> float | None:
        """Calls of such accesses that pay for the cost; None: an access saves nothing.

        cost / ((accesses without - local - link) / calls)
        """
        gain = self.access_without_s - self.local_s - self.link_s
        return self.cost_s / gain * self.calls if gain > 0 else None


def backing_of(uses: Iterable[FileUse]) -> float | None:
    """Bytes per second of the file system, from the record's own large accesses; None: it has none.

    Of each file, bytes / (seconds / ranks), as its ranks use it at once; weighted by bytes.
    """
    moved = seconds = 0.0
    for use in uses:
        large = [kind for kind in use.accesses if kind.size_log2 >= _LARGE_LOG2]
        if not use.cached:
            moved += sum(kind.bytes for kind in large)
            seconds += sum(kind.seconds for kind in large) / use.ranks
    return moved / seconds if moved and seconds > 0 else None


def _slower(one: float, other: float) -> float:
    return min((rate for rate in (one, other) if rate > 0), default=float("inf"))


def access_s(kind: AccessClass, machine: Machine, target: Target) -> float:
    """Accesses of one class to this node's part: calls (wrapper + latency) + bytes / bandwidth."""
    call = machine.write_s if kind.write else machine.read_s
    latency = target.write_latency_s if kind.write else target.read_latency_s
    device = target.write_bytes_per_s if kind.write else target.read_bytes_per_s
    rate = _slower(machine.copy_bytes_per_s, device)
    return kind.calls * (call + latency) + kind.bytes / rate


def predict(
    use: FileUse,
    machine: Machine,
    target: Target,
    backing_bytes_per_s: float,
    stock_latency_s: float | None = None,
) -> Prediction:
    """The prediction for one use of a file. See the top of this module."""
    moved = sum(kind.bytes for kind in use.accesses)
    link_s = 0.0
    if use.nodes > 1:
        round_trips = use.calls * 2 * target.link_latency_s
        link_s = (round_trips + moved / _slower(target.link_bytes_per_s, 0)) / use.ranks
        link_s *= (use.nodes - 1) / use.nodes
    kept = not (use.read_only or use.delete_on_close)
    setup_s = machine.open_close_s
    written_s = use.dirty_bytes / backing_bytes_per_s if kept else 0.0
    own_s = max(use.open_close_s - setup_s - written_s, 0) if use.cached else use.open_close_s
    access = use.access_s
    if use.cached and stock_latency_s is not None:
        access = use.calls * stock_latency_s / use.ranks + moved / backing_bytes_per_s
    return Prediction(
        use.path,
        use.calls,
        without_s=access + own_s + use.other_s,
        access_without_s=access,
        local_s=sum(access_s(kind, machine, target) for kind in use.accesses) / use.ranks,
        link_s=link_s,
        memory_s=use.touched_bytes / machine.touch_bytes_per_s / use.ranks,
        fetch_s=use.fetched_bytes / backing_bytes_per_s,
        write_back_s=written_s,
        open_close_s=own_s + setup_s,
        other_s=use.other_s,
        setup_s=setup_s,
        cached=use.cached,
    )


_SUMMED = ("without_s", "access_without_s", "local_s", "link_s", "memory_s", "fetch_s",
           "write_back_s", "open_close_s", "other_s", "setup_s", "calls")  # fmt: skip


def by_file(predictions: Iterable[Prediction]) -> list[Prediction]:
    """The predictions of each path summed, in the order of the first ones."""
    files: dict[str, Prediction] = {}
    for one in predictions:
        known = files.get(one.path)
        if known is not None:
            sums = {name: getattr(known, name) + getattr(one, name) for name in _SUMMED}
            one = replace(one, **sums)
        files[one.path] = one
    return list(files.values())


def advice(prediction: Prediction, use: FileUse) -> str:
    """What to do with a file, and with which hints."""
    if prediction.with_s >= _WORTH * prediction.without_s:
        return "don't cache it"
    words = ["cache it"]
    if use.size_at_open and use.fetched_bytes >= 0.8 * use.size_at_open:
        words.append("perdure_cache_fetch=open")
    if prediction.write_back_s > 0.1 * prediction.with_s:
        words.append("MPI_MODE_DELETE_ON_CLOSE if nobody needs it later")
    return "; ".join(words)
