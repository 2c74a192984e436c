# SPDX-License-Identifier: BSD-3-Clause
"""Plain values and the standard containers, as JSON.

JSON's own null, true, false, strings, finite floats and integers of 64 bits stand for themselves;
everything else is an object with one member, the name of its kind. An object that is in a state
more than once is written once, and `{"same": N}` where it comes again: N counts the objects of
kinds that are shared, in the order in which they were finished.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perdure.api.errors import Damaged, Error

DEPTH_MAX = 100
"""Of containers in each other. A text that is nested deeper than this writes is damaged."""
BYTES_IN_TEXT_MAX = 1024
_SAME = "same"
UNFIT = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
)
"""What reading a text that was never written may raise."""
_JSON = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)
_PLAIN = (type(None), bool, int, float, str)
_FACTORIES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
} | {"OrderedDict": OrderedDict, "Counter": Counter, "deque": deque}


@dataclass(frozen=True)
class Kind:
    """How values of exactly these types are written and read.

    `encode` gets the encoder, the value and its place; `decode` gets back what that returned, and
    may raise anything that an unfit text makes it raise. Both go through what is inside in the same
    order. `is_shared`: an object of this kind is the same one at all its places.
    """

    name: str
    types: tuple[type, ...]
    encode: Callable[[Encoder, Any, str], Any]
    decode: Callable[[Decoder, Any], Any]
    is_shared: bool = False


class Encoder:
    """Of one state. What does not fit into text becomes a block, and its number stands for it."""

    def __init__(self, kinds: Mapping[type, Kind]):
        self.blocks: list[Any] = []
        self._kinds = kinds
        self._numbers: dict[int, int] = {}  # by id(), of shared objects that are finished
        self._finished: list[Any] = []  # so that no id() is given twice
        self._open: set[int] = set()
        self._depth = 0

    def add_block(self, contents: Any) -> int:
        """Its number."""
        self.blocks.append(contents)
        return len(self.blocks) - 1

    def value(self, value: Any, where: str) -> Any:
        """What JSON can hold of it. Raises TypeError for what can't be kept, with its place."""
        if _stands_for_itself(value):
            return value
        kind = self._kinds.get(type(value))
        if kind is None:
            raise TypeError(_refusal(value, where))
        if self._depth == DEPTH_MAX:
            raise TypeError(f"{_short(where)} is nested deeper than {DEPTH_MAX}; flatten it")
        self._depth += 1
        made = self._shared(kind, value, where) if kind.is_shared else None
        if made is None:
            made = {kind.name: kind.encode(self, value, where)}
        self._depth -= 1
        return made

    def _shared(self, kind: Kind, value: Any, where: str) -> Any:
        number = self._numbers.get(id(value))
        if number is not None:
            return {_SAME: number}
        if id(value) in self._open:
            raise TypeError(f"{_short(where)} contains itself; keep a number in its place")
        self._open.add(id(value))
        made = {kind.name: kind.encode(self, value, where)}
        self._open.remove(id(value))
        self._numbers[id(value)] = len(self._finished)
        self._finished.append(value)
        return made

    def items(self, values: Iterable[Any], where: str) -> list[Any]:
        """Of a sequence or set."""
        return [
            item if _stands_for_itself(item) else self.value(item, f"{where}[{number}]")
            for number, item in enumerate(values)
        ]

    def pairs(self, values: Mapping[Any, Any], where: str) -> list[list[Any]]:
        """Of a mapping; keys may be of any kind that is hashable."""
        return [
            [
                key if _stands_for_itself(key) else self.value(key, f"{where}'s key {key!r}"),
                item if _stands_for_itself(item) else self.value(item, f"{where}[{key!r}]"),
            ]
            for key, item in values.items()
        ]

    def attributes(self, value: Any, where: str) -> list[list[Any]]:
        """Those that a program has set, such as `_metadata` of a module's state dict."""
        found = getattr(value, "__dict__", None)
        if not found:
            return []
        return [[name, self.value(item, f"{where}.{name}")] for name, item in found.items()]


class Decoder:
    """Of one state; `block` gives the bytes of a block, which are copied here."""

    def __init__(self, kinds: Iterable[Kind], block: Callable[[int], NDArray[np.uint8]]):
        self.block = block
        self.place: list[Any] = []
        """Keys and numbers that lead to what is read now."""
        self._kinds = {kind.name: kind for kind in kinds}
        self._finished: list[Any] = []

    def state(self, text: bytes, source: str) -> Any:
        """What Encoder.value() was given, from the text of dumps(). Raises Damaged."""
        try:
            return self.value(json.loads(text.decode("ascii"), parse_constant=_no_constant))
        except Error:
            raise
        except UNFIT:
            raise Damaged(
                f"{source}: its text is not what perdure writes; it was damaged"
            ) from None

    def value(self, text: Any) -> Any:
        """Of one value in it."""
        if isinstance(text, _PLAIN):
            return text
        [(name, contents)] = text.items()
        if name == _SAME:
            return self._finished[whole(contents)]
        kind = self._kinds[name]
        made = kind.decode(self, contents)
        if kind.is_shared:
            self._finished.append(made)
        return made

    def items(self, texts: Any) -> list[Any]:
        """As Encoder.items()."""
        return [self._at(number, text) for number, text in enumerate(listed(texts))]

    def pairs(self, texts: Any) -> list[tuple[Any, Any]]:
        """As Encoder.pairs()."""
        return [self._pair(key, item) for key, item in listed(texts)]

    def set_attributes(self, made: Any, texts: Any) -> None:
        """As Encoder.attributes()."""
        for name, item in listed(texts):
            made.__dict__[_text(name)] = self._at(name, item)

    def _pair(self, key: Any, item: Any) -> tuple[Any, Any]:
        made = self._at(None, key)
        return made, self._at(made, item)

    def _at(self, key: Any, text: Any) -> Any:
        if isinstance(text, _PLAIN):
            return text
        self.place.append(key)
        made = self.value(text)
        self.place.pop()
        return made


def by_type(kinds: Iterable[Kind]) -> dict[type, Kind]:
    """For an Encoder."""
    return {of: kind for kind in kinds for of in kind.types}


def dumps(tree: Any) -> bytes:
    """The text of what Encoder.value() returned."""
    return _JSON.encode(tree).encode("ascii")


def whole(text: Any) -> int:
    """An integer that is not negative; raises ValueError."""
    if type(text) is not int or text < 0:
        raise ValueError("no number")
    return text


def wholes(texts: Any) -> list[int]:
    """A list of them."""
    return [whole(text) for text in listed(texts)]


def listed(text: Any) -> list[Any]:
    """A list; raises ValueError."""
    if not isinstance(text, list):
        raise ValueError("no list")
    return text


def _text(text: Any) -> str:
    if not isinstance(text, str):
        raise ValueError("no text")
    return text


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _stands_for_itself(value: Any) -> bool:
    kind = type(value)
    if kind is int:
        return bool(-(2**63) <= value < 2**63)
    if kind is float:
        return math.isfinite(value)
    return kind is str or kind is bool or value is None


def _refusal(value: Any, where: str) -> str:
    name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    remedy = "keep what it is made of"
    for base in (int, float, complex, str, bytes, dict, list, tuple, set, frozenset, np.ndarray):
        if isinstance(value, base):
            ours = "numpy.array" if base is np.ndarray else base.__name__
            remedy = f"keep {ours}(…) of it, and make it anew after a restart"
            break
    if hasattr(value, "to_local"):
        remedy = "it is distributed over processes: use perdure.torch.PoolWriter"
    return (
        f"{_short(where)} is {name}, which could not come back as it is; {remedy} (docs/python.md"
        " and docs/torch.md list what can be kept)"
    )


def _short(where: str) -> str:
    return where if len(where) <= 400 else f"{where[:200]} … {where[-200:]}"


def _encode_bytes(encoder: Encoder, value: bytes, where: str) -> str | int:
    if len(value) <= BYTES_IN_TEXT_MAX:
        return base64.b64encode(value).decode("ascii")
    return encoder.add_block(value)


def _decode_bytes(decoder: Decoder, text: Any) -> bytes:
    if isinstance(text, str):
        return base64.b64decode(text, validate=True)
    return decoder.block(whole(text)).tobytes()


def _decode_int(decoder: Decoder, text: Any) -> int:
    return int(_text(text), 16)


def _encode_float(encoder: Encoder, value: float, where: str) -> str:
    return struct.pack(">d", value).hex()


def _decode_float(decoder: Decoder, text: Any) -> float:
    return float(struct.unpack(">d", bytes.fromhex(_text(text)))[0])


def _encode_complex(encoder: Encoder, value: complex, where: str) -> str:
    return struct.pack(">dd", value.real, value.imag).hex()


def _decode_complex(decoder: Decoder, text: Any) -> complex:
    return complex(*struct.unpack(">dd", bytes.fromhex(_text(text))))


def _encode_dict(encoder: Encoder, value: dict[Any, Any], where: str) -> list[Any]:
    return [encoder.pairs(value, where), encoder.attributes(value, where)]


def _dict_decoder(kind: Callable[[], Any]) -> Callable[[Decoder, Any], Any]:
    def decode(decoder: Decoder, contents: Any) -> Any:
        pairs, attributes = listed(contents)
        made = kind()
        made.update(dict(decoder.pairs(pairs)))  # a Counter would count a list of pairs
        decoder.set_attributes(made, attributes)
        return made

    return decode


def _encode_defaultdict(encoder: Encoder, value: defaultdict[Any, Any], where: str) -> list[Any]:
    factory = value.default_factory
    name = getattr(factory, "__name__", "")
    if factory is not None and _FACTORIES.get(name) is not factory:
        raise TypeError(
            f"{_short(where)} is a defaultdict of {factory!r}; of {', '.join(_FACTORIES)} it can be"
            " kept, or as dict(…) of it"
        )
    return [name if factory else None, encoder.pairs(value, where)]


def _decode_defaultdict(decoder: Decoder, contents: Any) -> defaultdict[Any, Any]:
    name, pairs = listed(contents)
    factory = None if name is None else _FACTORIES[_text(name)]
    return defaultdict(factory, decoder.pairs(pairs))


def _encode_deque(encoder: Encoder, value: deque[Any], where: str) -> list[Any]:
    return [value.maxlen, encoder.items(value, where)]


def _decode_deque(decoder: Decoder, contents: Any) -> deque[Any]:
    room, items = listed(contents)
    return deque(decoder.items(items), None if room is None else whole(room))


def _sequence(name: str, kind: Any, is_shared: bool) -> Kind:
    return Kind(
        name,
        (kind,),
        lambda encoder, value, where: encoder.items(value, where),
        lambda decoder, contents: kind(decoder.items(contents)),
        is_shared,
    )


KINDS = (
    Kind("int", (int,), lambda _, value, where: hex(value), _decode_int),
    Kind("float", (float,), _encode_float, _decode_float),
    Kind("complex", (complex,), _encode_complex, _decode_complex),
    Kind("bytes", (bytes,), _encode_bytes, _decode_bytes),
    _sequence("list", list, True),
    _sequence("tuple", tuple, False),
    _sequence("set", set, True),
    _sequence("frozenset", frozenset, False),
    Kind("deque", (deque,), _encode_deque, _decode_deque, True),
    Kind("dict", (dict,), _encode_dict, _dict_decoder(dict), True),
    Kind("OrderedDict", (OrderedDict,), _encode_dict, _dict_decoder(OrderedDict), True),
    Kind("Counter", (Counter,), _encode_dict, _dict_decoder(Counter), True),
    Kind("defaultdict", (defaultdict,), _encode_defaultdict, _decode_defaultdict, True),
)
"""Of what Python brings along."""
