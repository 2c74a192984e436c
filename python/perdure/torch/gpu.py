# SPDX-License-Identifier: BSD-3-Clause
"""Tensors on GPUs: to the array of a pool by the copy engine, and back.

What is saved is what the current stream of torch leaves in the tensors. A snapshot of them is
taken beside them, in memory of torch's own, after which that stream goes on; another stream
transfers it to the pool's mapping, which is registered with the driver. Without room for a snapshot
the current stream waits for the transfer. The host waits for none of it; a commit does.

Nothing here is asked of torch or the driver while all tensors are on the CPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

import perdure
from perdure.api.errors import WrongState

_ALIGN = 256  # of tensors in a snapshot
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

    def copy(self, target: torch.Tensor, source: torch.Tensor, stream: Any) -> None:
        """Within the GPU, by its current stream, which `stream` is."""
        target.copy_(source)

    def fill(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """From memory of the host; returns when all has come."""
        target.copy_(source)


torch_gpu = TorchGpu()


@dataclass(frozen=True)
class Piece:
    """A tensor on a GPU, and the byte of the array that it goes to."""

    tensor: torch.Tensor
    offset: int


class Transfers:
    """From tensors on GPUs to the array of one pool. Goes after the pool is closed, which waits for
    what is under way. One thread at a time."""

    def __init__(self) -> None:
        self._snapshots: dict[torch.device, torch.Tensor] = {}
        self._lacking: dict[torch.device, int] = {}  # saves since there was no room for one
        self._streams: dict[torch.device, Any] = {}
        self._marks: dict[torch.device, Any] = {}  # after the transfers

    def begin(self, pool: perdure.Pool, array: perdure.Array, pieces: Sequence[Piece]) -> None:
        """What the current streams leave in the tensors goes to the working copy. The streams may
        store to the tensors as soon as it has returned."""
        devices: dict[torch.device, list[Piece]] = {}
        for piece in pieces:
            devices.setdefault(piece.tensor.device, []).append(piece)
        for device, of_one in devices.items():
            stream = torch_gpu.current_stream(device)
            snapshot = self._snapshot(device, _places(of_one)[-1])
            if snapshot is None:
                sources = [_contiguous(piece.tensor) for piece in of_one]
            else:
                sources = self._taken(snapshot, of_one, stream)
                stream = self._streams[device]
            pool.stream(stream)
            for piece, source in zip(of_one, sources):
                array._write_from(piece.offset, source.data_ptr(), source.nbytes, source)
            self._marks[device] = torch_gpu.mark(stream)

    def wait(self) -> None:
        """Until all has been transferred."""
        for mark in self._marks.values():
            torch_gpu.wait(mark)

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
        else:
            self._snapshots[device] = made
            self._lacking.pop(device, None)
        return made

    def _taken(
        self, snapshot: torch.Tensor, pieces: Sequence[Piece], stream: Any
    ) -> list[torch.Tensor]:
        """Copies in the snapshot, which the stream of the transfers may read."""
        device = pieces[0].tensor.device
        if device not in self._streams:
            self._streams[device] = torch_gpu.new_stream(device)
        torch_gpu.follow(stream, self._streams[device])  # if the last save failed
        sources = []
        for piece, at in zip(pieces, _places(pieces)):
            part = snapshot[at : at + piece.tensor.nbytes]
            copy = part.view(piece.tensor.dtype).view(piece.tensor.shape)
            torch_gpu.copy(copy, piece.tensor.detach(), stream)
            sources.append(copy)
        torch_gpu.follow(self._streams[device], stream)
        return sources


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


def _places(pieces: Sequence[Piece]) -> list[int]:
    """Where each begins in a snapshot, and its size."""
    places = [0]
    for piece in pieces:
        places.append(places[-1] + -(-piece.tensor.nbytes // _ALIGN) * _ALIGN)
    return places


def _contiguous(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().resolve_conj().resolve_neg().contiguous()
