# SPDX-License-Identifier: BSD-3-Clause
"""What a call of Perdure raises: one class for each code of perdure.h."""

from __future__ import annotations

import re


class Error(RuntimeError):
    """A call failed; str() is the library's sentence, `code` the PERDURE_E code of perdure.h."""

    code = 0


class InvalidArgument(Error, ValueError):
    """An argument can't be right."""

    code = -1


class WrongState(Error):
    """Not allowed now: the pool is closed, was not restarted, or another thread is in a call."""

    code = -2


class NotFound(Error):
    """No such pool, array or version."""

    code = -3


class IOFailed(Error):
    """The operating system or the device refused."""

    code = -4


class NoSpace(Error):
    """The device is full, or the pool has no room for more names."""

    code = -5


class Busy(Error):
    """Another live process holds the pool."""

    code = -6


class Foreign(Error):
    """The pool, or a rank's file, is another job's, rank's or user's."""

    code = -7


class WrongRanks(Error):
    """The pool was made by another number of ranks."""

    code = -8


class WrongShape(Error):
    """The pool holds the name with another type, shape or mode, or keeps another number."""

    code = -9


class Damaged(Error):
    """A checksum or an invariant of the format does not hold."""

    code = -10


class NewerFormat(Error):
    """The pool was written by a newer Perdure."""

    code = -11


class Unsupported(Error):
    """This machine, or the libraries that are loaded, lack what was asked for."""

    code = -12


class PeerFailed(Error):
    """Another rank of this collective call failed; its own error says with what."""

    code = -13


_CLASSES = {kind.code: kind for kind in Error.__subclasses__()}


# Options of open() by C's flags, and calls that have another name here.
_OPTIONS = re.compile(r"\bPERDURE_(ANY_JOB|ANY_RANKS|ALLOW_OLDER|DISCARD|MUST_EXIST)\b")
_CALLS = re.compile(r"\bperdure_(?!ipv_|win_|flush_)(\w+)\(\)")
_CALLED_HERE = {"commit_due": "due", "open_mpi": "perdure.open", "open": "perdure.open"}


def _in_python(sentence: str) -> str:
    """A sentence of the library with the names that Python has for options and calls."""
    sentence = _OPTIONS.sub(lambda found: f"{found[1].lower()}=True", sentence)
    return _CALLS.sub(lambda found: f"{_CALLED_HERE.get(found[1], found[1])}()", sentence)


def error_of(code: int, sentence: bytes) -> Error:
    """The exception for what a call returned. For perdure._api."""
    error = _CLASSES.get(code, Error)(_in_python(sentence.decode(errors="replace")))
    error.code = code
    return error
