# SPDX-License-Identifier: BSD-3-Clause
"""Tensors on GPUs: to the array of a pool by the copy engine, and back.

What is saved is what the current stream of torch leaves in the tensors. A snapshot of them is
taken beside them, in memory of torch's own, after which that stream goes on; another stream
transfers it to the pool's mapping, which is registered with the driver. Without room for a snapshot
the current stream waits for the transfer. The host waits for none of it; a commit does. What may
have to be kept, and may not, is in the snapshot until that is known.

Nothing here is asked of torch or the driver while all tensors are on the CPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import perdure
from perdure.api.errors import WrongState

_ALIGN = 256  # of tensors in a snapshot
_GAP_BYTES = 64  # that blocks in the array are aligned to
_SMALL_BYTES = 1 << 20  # are copied together
_PLACE_BYTES = 8 << 20  # of two, through which what is read goes to a GPU
_LOOKS_AGAIN = 16  # each so many saves that lacked one, for room


class TorchGpu:
    """What is asked of torch."""

    def has(self, tensor: torch.Tensor) -> bool:
        """Whether it is in memory of a GPU that the driver knows."""
        return bool(tensor.is_cuda)

    def is_gpu(self, device: torch.device | None) -> bool:
        """Whether it is such a GPU."""
        return device is not None and device.type == "cuda"

    def current_stream(self, device: torch.device) -> Any:
        """That of the program. Raises WrongState while it is captured."""
        with torch.cuda.device(device):
            if torch.cuda.is_current_stream_capturing():
                raise WrongState(
                    "the current stream is being captured into a graph: save before the capture"
                    " begins, or after it has ended"
                )
        return torch.cuda.current_stream(device)

    def new_stream(self, device: torch.device) -> Any:
        """Another one."""
        return torch.cuda.Stream(device)

    def follow(self, stream: Any, other: Any) -> None:
        """What `stream` is asked for from now on waits for what `other` was asked for."""
        stream.wait_stream(other)

    def mark(self, stream: Any) -> Any:
        """What it was asked for until now."""
        event = torch.cuda.Event()
        event.record(stream)
        return event

    def wait(self, mark: Any) -> None:
        """The host waits for that."""
        mark.synchronize()

    def memory(self, size: int, device: torch.device) -> torch.Tensor | None:
        """Bytes there; None: there is no room."""
        try:
            return torch.empty(size, dtype=torch.uint8, device=device)
        except torch.cuda.OutOfMemoryError:
            return None

    def room(self, device: torch.device) -> int:
        """How many bytes are free there."""
        return int(torch.cuda.mem_get_info(device)[0])

    def clear(self, memory: torch.Tensor) -> None:
        """All of it is zero, by the current stream."""
        memory.zero_()

    def copy(
        self, targets: Sequence[torch.Tensor], sources: Sequence[torch.Tensor], stream: Any
    ) -> None:
        """Within the GPU, by its current stream, which `stream` is. Small ones go together: to ask
        for one copy takes as long as to copy a megabyte."""
        small: list[tuple[torch.Tensor, torch.Tensor]] = []
        for target, source in zip(targets, sources):
            if source.nbytes <= _SMALL_BYTES and _is_bytes(source):
                small.append((_as_bytes(target), _as_bytes(source)))
            else:
                target.copy_(source)
        if small:
            torch._foreach_copy_([target for target, _ in small], [source for _, source in small])

    def on_host(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy in ordinary memory, for which the host waits."""
        return torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)

    def fill(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """From registered memory of the host; returns when all has come."""
        target.copy_(source)

    def pinned(self, size: int) -> torch.Tensor | None:
        """Bytes of the host that the copy engine reaches; None: there are none to be had."""
        try:
            return torch.empty(size, dtype=torch.uint8, pin_memory=True)
        except RuntimeError:
            return None

    def send(self, target: torch.Tensor, source: torch.Tensor, stream: Any) -> None:
        """From pinned memory, by the current stream, which `stream` is. The host goes on."""
        target.copy_(source, non_blocking=True)

    def put(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """From ordinary memory, also of another dtype; returns when that may be changed."""
        target.copy_(source)


torch_gpu = TorchGpu()


@dataclass(frozen=True)
class Piece:
    """A tensor on a GPU, and the byte of the array that it goes to; None: it is copied only."""

    tensor: torch.Tensor
    offset: int | None


@dataclass
class _Run:
    """Bytes that are together in the array, and in a snapshot."""

    offset: int
    at: int
    size: int


class _Places:
    """Where pieces are in a snapshot: those that follow each other in the array do so there."""

    def __init__(self, pieces: Sequence[Piece]):
        self.runs: list[_Run] = []
        self.at = [0] * len(pieces)
        self.size = 0
        offsets = [-1 if piece.offset is None else piece.offset for piece in pieces]
        for number in sorted(range(len(pieces)), key=offsets.__getitem__):
            size, offset = pieces[number].tensor.nbytes, pieces[number].offset
            at = -(-self.size // _ALIGN) * _ALIGN
            if offset is not None:
                run = self.runs[-1] if self.runs else None
                if run is not None and 0 <= offset - (run.offset + run.size) < _GAP_BYTES:
                    at = run.at + offset - run.offset
                    run.size = offset + size - run.offset
                else:
                    self.runs.append(_Run(offset, at, size))
            self.at[number], self.size = at, at + size


class Transfers:
    """From tensors on GPUs to arrays of pools. Goes after they are closed, which waits for what is
    under way. One thread at a time."""

    def __init__(self) -> None:
        self._snapshots: dict[torch.device, torch.Tensor] = {}
        self._lacking: dict[torch.device, int] = {}  # saves since there was no room for one
        self._streams: dict[torch.device, Any] = {}
        self._marks: dict[torch.device, Any] = {}  # after the transfers

    def begin(
        self, pool: perdure.Pool, array: perdure.Array, pieces: Sequence[Piece], beside: bool = True
    ) -> list[torch.Tensor | None]:
        """What the current streams leave in the tensors goes to the working copy. The streams may
        store to the tensors as soon as it has returned.

        Of a piece without an offset there is a copy: in the snapshot, where it is when wait() has
        returned, until the next begin() beside the tensors; in ordinary memory, if there is no room
        for a snapshot. `beside` False: without one, as pieces may be parts of such copies.
        """
        copies: list[torch.Tensor | None] = [None] * len(pieces)
        for device, numbers in _by_device(pieces).items():
            of_one = [pieces[number] for number in numbers]
            stream, places = torch_gpu.current_stream(device), _Places(of_one)
            snapshot = self._snapshot(device, places.size) if beside else None
            if snapshot is None:
                made = _transfer_each(pool, array, of_one, stream)
            else:
                made = self._taken(snapshot, of_one, places, stream)
                stream = self._streams[device]
                pool.stream(stream)
                for run in places.runs:
                    part = snapshot[run.at : run.at + run.size]
                    array._write_from(run.offset, part.data_ptr(), run.size, part)
            self._marks[device] = torch_gpu.mark(stream)
            for number, copy in zip(numbers, made):
                if pieces[number].offset is None:
                    copies[number] = copy
        return copies

    def begin_copies(
        self, pool: perdure.Pool, array: perdure.Array, pieces: Sequence[Piece]
    ) -> None:
        """Copies of begin(), after wait(), go to the working copy as they are."""
        for device, numbers in _by_device(pieces).items():
            stream = self._stream(device)
            pool.stream(stream)
            for number in numbers:
                offset, copy = pieces[number].offset, pieces[number].tensor
                assert offset is not None
                array._write_from(offset, copy.data_ptr(), copy.nbytes, copy)
            self._marks[device] = torch_gpu.mark(stream)

    def wait(self) -> None:
        """Until all has been transferred and copied."""
        for mark in self._marks.values():
            torch_gpu.wait(mark)
        self._marks = {}

    def _stream(self, device: torch.device) -> Any:
        if device not in self._streams:
            self._streams[device] = torch_gpu.new_stream(device)
        return self._streams[device]

    def _snapshot(self, device: torch.device, size: int) -> torch.Tensor | None:
        """Memory for one, which is kept for the next save. Where there was none it is asked for
        again only if it is there, as that has torch give up what it keeps free; and if as much is
        left to the program, which may need some of it."""
        kept = self._snapshots.get(device)
        if kept is not None and kept.nbytes == size:
            return kept
        if device in self._lacking:
            self._lacking[device] += 1
            if self._lacking[device] % _LOOKS_AGAIN or torch_gpu.room(device) < 2 * size:
                return None
        if device in self._marks:
            torch_gpu.wait(self._marks[device])
        self._snapshots.pop(device, None)
        del kept
        made = torch_gpu.memory(size, device)
        if made is None:
            self._lacking.setdefault(device, 0)
            return None
        torch_gpu.clear(made)  # what is between pieces goes to the array, too
        self._snapshots[device] = made
        self._lacking.pop(device, None)
        return made

    def _taken(
        self, snapshot: torch.Tensor, pieces: Sequence[Piece], places: _Places, stream: Any
    ) -> list[torch.Tensor]:
        """Copies in the snapshot, which the stream of the transfers may read."""
        own = self._stream(pieces[0].tensor.device)
        torch_gpu.follow(stream, own)  # if the last save failed
        copies = [
            snapshot[at : at + of.nbytes].view(of.dtype).view(of.shape)
            for at, of in zip(places.at, (piece.tensor for piece in pieces))
        ]
        torch_gpu.copy(copies, [piece.tensor.detach() for piece in pieces], stream)
        torch_gpu.follow(own, stream)
        return copies


def wait_for(device: torch.device) -> None:
    """The host waits for what the program's stream there was asked for."""
    torch_gpu.wait(torch_gpu.mark(torch_gpu.current_stream(device)))


def put(target: torch.Tensor, source: torch.Tensor) -> None:
    """To a tensor of any device, from ordinary memory."""
    if torch_gpu.has(target):
        torch_gpu.put(target, source)
    else:
        target.copy_(source)


def passed(target: torch.Tensor, read: Callable[[int, NDArray[np.uint8]], None]) -> bool:
    """Whether a tensor has what `read` gives from a byte on: a contiguous one on a GPU. The copy
    engine has one of two places in the host's memory while `read` fills the other one."""
    if not torch_gpu.has(target) or not _is_bytes(target):
        return False
    size = min(_PLACE_BYTES, target.nbytes)
    places = []
    for _ in range(1 if size == target.nbytes else 2):
        place = torch_gpu.pinned(size)
        if place is None:
            return False
        places.append(place)
    whole, stream = _as_bytes(target), torch_gpu.current_stream(target.device)
    marks: dict[int, Any] = {}  # by place: after what it was sent for
    try:
        for number, begin in enumerate(range(0, target.nbytes, size)):
            turn = number % 2
            if turn in marks:
                torch_gpu.wait(marks.pop(turn))
            part = whole[begin : begin + size]
            place = places[turn][: part.nbytes]
            read(begin, place.numpy())
            torch_gpu.send(part, place, stream)
            marks[turn] = torch_gpu.mark(stream)
    finally:
        for mark in marks.values():
            torch_gpu.wait(mark)
    return True


def _transfer_each(
    pool: perdure.Pool, array: perdure.Array, pieces: Sequence[Piece], stream: Any
) -> list[torch.Tensor | None]:
    """Without a snapshot, by the program's stream."""
    pool.stream(stream)
    copies: list[torch.Tensor | None] = []
    for piece in pieces:
        if piece.offset is None:
            copies.append(torch_gpu.on_host(piece.tensor.detach()))
            continue
        source = piece.tensor.detach().resolve_conj().resolve_neg().contiguous()
        array._write_from(piece.offset, source.data_ptr(), source.nbytes, source)
        copies.append(None)
    return copies


def _by_device(pieces: Sequence[Piece]) -> dict[torch.device, list[int]]:
    """The numbers of the pieces that each has."""
    found: dict[torch.device, list[int]] = {}
    for number, piece in enumerate(pieces):
        found.setdefault(piece.tensor.device, []).append(number)
    return found


def _is_bytes(tensor: torch.Tensor) -> bool:
    """Whether its memory is that of its elements, row-major."""
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def _as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(-1).view(torch.uint8)


def fill_from(
    pool: perdure.Pool, array: perdure.Array, offset: int, target: torch.Tensor
) -> None:
    """A contiguous tensor on a GPU gets what is committed from byte `offset` on, straight from the
    pool's mapping, which is registered for that."""
    pool.stream(torch_gpu.current_stream(target.device))
    array._write_from(0, target.data_ptr(), 0, target)
    size = target.nbytes
    held = (ctypes.c_char * size).from_address(array._consistent_address() + offset)
    torch_gpu.fill(target, torch.frombuffer(held, dtype=target.dtype).view(target.shape))
