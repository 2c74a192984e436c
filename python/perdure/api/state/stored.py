# SPDX-License-Identifier: BSD-3-Clause
"""A state as the bytes of one array of a pool.

    magic, bytes of the text, number of blocks      8 bytes each, little-endian
    bytes of each block                             8 bytes each
    text, then the blocks                           each padded with zeros to a multiple of 8

docs/format.md has it as well. Bytes from elsewhere are not believed: what they count is compared
with what is there.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perdure.api.errors import Damaged
from perdure.api.state import arrays, generators, tree

NAME_PREFIX = "perdure.state."
"""Of the arrays that hold states."""
KINDS = (*tree.KINDS, *arrays.KINDS, *generators.KINDS)
"""Of everything that needs no torch."""
_BY_TYPE = tree.by_type(KINDS)
_MAGIC = b"PRDSTAT1"
_HEAD = struct.Struct("<8sQQ")
_ALIGN = 8


def pack(state: Any, where: str) -> bytes:
    """The bytes; raises TypeError for what can't be kept, with its place."""
    encoder = tree.Encoder(_BY_TYPE)
    text = tree.dumps(encoder.value(state, where))
    blocks = [bytes(block) for block in encoder.blocks]
    head = _HEAD.pack(_MAGIC, len(text), len(blocks))
    lengths = struct.pack(f"<{len(blocks)}Q", *map(len, blocks))
    return b"".join((head, lengths, *(of + bytes(-len(of) % _ALIGN) for of in (text, *blocks))))


def is_empty(raw: NDArray[np.uint8]) -> bool:
    """Whether no state was ever stored there: the version lacks it."""
    return not raw.any()


def unpack(raw: NDArray[np.uint8], source: str) -> Any:
    """What pack() was given. Raises Damaged."""
    text, blocks = parts(raw, source)
    return tree.Decoder(KINDS, blocks.__getitem__).state(text, source)


def parts(raw: NDArray[np.uint8], source: str) -> tuple[bytes, list[NDArray[np.uint8]]]:
    """The text and the blocks. Raises Damaged."""
    wrong = Damaged(f"{source}: its {raw.size} bytes are no state; they were damaged")
    if raw.size < _HEAD.size:
        raise wrong
    magic, text_bytes, count = _HEAD.unpack(raw[: _HEAD.size].tobytes())
    if magic != _MAGIC or count > (raw.size - _HEAD.size) // 8:
        raise wrong
    at = _HEAD.size + 8 * count
    sizes = raw[_HEAD.size : at].tobytes()
    found = []
    for size in (text_bytes, *struct.unpack(f"<{count}Q", sizes)):
        if size > raw.size - at:
            raise wrong
        found.append(raw[at : at + size])
        at += size + -size % _ALIGN
    if at != raw.size:
        raise wrong
    return found[0].tobytes(), found[1:]
