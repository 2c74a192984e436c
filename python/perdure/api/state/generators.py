# SPDX-License-Identifier: BSD-3-Clause
"""Random generators of Python and numpy, dtypes of numpy.

A generator is kept with its place in its stream and, of numpy's, with what spawn() makes others of.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from perdure.api.state.arrays import decode_dtype, encode_dtype
from perdure.api.state.tree import Decoder, Encoder, Kind, listed, whole

_SEED_BITS_MAX = 65536
_POOL_SIZE_MAX = 64
_BIT_GENERATORS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        np.random.MT19937,
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.Philox,
        np.random.SFC64,
    )
}
# Before that numpy sets the place in a stream alone, not what spawn() makes others of.
_SETS_SEEDS = isinstance(np.random.PCG64(0).__getstate__(), tuple)
_DTYPES = tuple({type(np.dtype(kind)) for kind in np.sctypeDict.values()})


def _decode_random(decoder: Decoder, contents: Any) -> random.Random:
    made = random.Random(0)
    made.setstate(decoder.value(contents))
    return made


def _encode_seeds(encoder: Encoder, value: Any, where: str) -> list[Any]:
    text = [
        encoder.value(getattr(value, name), f"{where}.{name}")
        for name in ("entropy", "spawn_key", "pool_size", "n_children_spawned")
    ]
    _check_seeds(value.entropy, value.spawn_key, value.pool_size, where)
    return text


def _decode_seeds(decoder: Decoder, contents: Any) -> np.random.SeedSequence:
    entropy, spawn_key, pool_size, spawned = decoder.items(contents)
    _check_seeds(entropy, spawn_key, pool_size, "it")
    return np.random.SeedSequence(
        entropy, spawn_key=spawn_key, pool_size=pool_size, n_children_spawned=whole(spawned)
    )


def _check_seeds(entropy: Any, spawn_key: Any, pool_size: Any, where: str) -> None:
    """Of longer ones a generator would take long to make."""
    words = [*np.atleast_1d(np.array(entropy, object)), *spawn_key]
    bits = sum(0 if word is None else max(32, int(word).bit_length()) for word in words)
    if bits > _SEED_BITS_MAX or not 4 <= pool_size <= _POOL_SIZE_MAX:
        raise TypeError(f"{where} has a longer seed than can be kept; use a shorter one")


def _encode_bits(encoder: Encoder, value: Any, where: str) -> list[Any]:
    return [
        type(value).__name__,
        encoder.value(value.state, f"{where}.state"),
        encoder.value(value.seed_seq, f"{where}.seed_seq"),
    ]


def _decode_bits(decoder: Decoder, contents: Any) -> Any:
    name, state_text, seeds_text = listed(contents)
    state, seeds = decoder.value(state_text), decoder.value(seeds_text)
    if seeds is not None and type(seeds) is not np.random.SeedSequence:
        raise ValueError("no seeds")
    # numpy reads at these places without a look.
    if name == "MT19937" and not 0 <= whole(state["state"]["pos"]) <= 624:
        raise ValueError("no place")
    if name == "Philox" and not 0 <= whole(state["buffer_pos"]) <= 4:
        raise ValueError("no place")
    made = _BIT_GENERATORS[name](0 if seeds is None else seeds)
    _set_bits(made, state, seeds)
    return made


def _set_bits(made: Any, state: Any, seeds: Any) -> None:
    made.state = state
    if _SETS_SEEDS:
        made.__setstate__((state, seeds))


def _encode_legacy(encoder: Encoder, value: Any, where: str) -> list[Any]:
    state = value.get_state(legacy=False)
    return [
        encoder.value(value._bit_generator, f"{where}._bit_generator"),
        encoder.value(state["has_gauss"], where),
        encoder.value(state["gauss"], where),
    ]


def _decode_legacy(decoder: Decoder, contents: Any) -> np.random.RandomState:
    bits, has_gauss, gauss = decoder.items(contents)
    _check_bits(bits)
    made = np.random.RandomState(bits)
    made.set_state({**bits.state, "has_gauss": int(bool(has_gauss)), "gauss": float(gauss)})
    return made


def _decode_generator(decoder: Decoder, contents: Any) -> np.random.Generator:
    bits = decoder.value(contents)
    _check_bits(bits)
    return np.random.Generator(bits)


def _check_bits(bits: Any) -> None:
    if type(bits) not in _BIT_GENERATORS.values():
        raise ValueError("no bit generator")


def refill_generator(old: Any, new: Any) -> bool:
    """Whether `old`, of the type of `new`, is at the place of `new` in its stream now."""
    if isinstance(old, random.Random):
        old.setstate(new.getstate())
        return True
    one, other = _bits_of(old), _bits_of(new)
    if one is None or type(one) is not type(other) or not _SETS_SEEDS:
        return False
    _set_bits(one, other.state, other.seed_seq)
    if isinstance(old, np.random.RandomState):
        old.set_state(new.get_state(legacy=False))
    return True


def _bits_of(value: Any) -> Any:
    if isinstance(value, np.random.BitGenerator):
        return value
    if isinstance(value, np.random.Generator):
        return value.bit_generator
    return value._bit_generator if isinstance(value, np.random.RandomState) else None


KINDS = (
    Kind(
        "Random",
        (random.Random,),
        lambda encoder, value, where: encoder.value(value.getstate(), where),
        _decode_random,
        True,
    ),
    Kind("SeedSequence", (np.random.SeedSequence,), _encode_seeds, _decode_seeds, True),
    Kind("BitGenerator", tuple(_BIT_GENERATORS.values()), _encode_bits, _decode_bits, True),
    Kind(
        "Generator",
        (np.random.Generator,),
        lambda encoder, value, where: encoder.value(value.bit_generator, f"{where}.bit_generator"),
        _decode_generator,
        True,
    ),
    Kind("RandomState", (np.random.RandomState,), _encode_legacy, _decode_legacy, True),
    Kind(
        "numpy.dtype",
        _DTYPES,
        lambda _, value, where: encode_dtype(value, where),
        lambda _, text: decode_dtype(text),
    ),
)
"""Of random numbers, and dtypes."""
