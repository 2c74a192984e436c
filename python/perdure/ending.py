# SPDX-License-Identifier: BSD-3-Clause
"""How every verb ends: one shape of messages, `perdure: SENTENCE` on stderr, and one set of codes.

The codes are in exit_codes.py. A verb that runs another program ends with that program's code.
Nothing else ends a verb: an error of the program itself is shown with its traceback.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Any

from perdure.exit_codes import FAILED, INTERRUPTED, MISTAKE, NO_PROGRAM, NOT_EXECUTABLE
from perdure.failures import Failed, NoProgram, NotExecutable, Stopped, Wrong
from perdure.screen import say

# What only some verbs need, and how it is had.
_EXTRAS = {
    "numpy": "Debian: python3-numpy",
    "scipy": "pip install '.[energy]' in the clone, Debian: python3-scipy",
    "matplotlib": "pip install '.[plots]' in the clone, Debian: python3-matplotlib",
    "jinja2": "pip install '.[report]' in the clone, Debian: python3-jinja2",
    "h5py": "pip install '.[hdf5]' in the clone, Debian: python3-h5py",
    "zarr": "pip install '.[zarr]' in the clone, Debian: python3-zarr",
}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# Of a path that a user gave; everything else, such as a full device, is a failure of the work.
_MISTAKEN = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.ELOOP,
             errno.ENAMETOOLONG, errno.EROFS, errno.EEXIST, errno.ENXIO, errno.EINVAL}


def ended(work: Callable[[], Any]) -> int:
    """Does `work`, says what stopped it, and gives the exit code."""
    try:
        code = work()
        sys.stdout.flush()  # a full device is noticed here
    except KeyboardInterrupt:
        return _said("stopped", INTERRUPTED)
    except BrokenPipeError:  # `perdure … | head` has seen enough
        _drop_output()
        return FAILED
    except Exception as failure:
        code, sentence = judged(failure)
        if code is None:
            raise
        _drop_output()
        return _said(sentence, code)
    return code if isinstance(code, int) else 0


def judged(failure: Exception) -> tuple[int | None, str]:
    """The exit code of what stopped a verb, and what is said; None for an error of the program."""
    if isinstance(failure, Stopped):
        return INTERRUPTED, str(failure)
    if isinstance(failure, (Wrong, _library_error())):
        return MISTAKE, str(failure)
    if isinstance(failure, OSError):
        return (MISTAKE if failure.errno in _MISTAKEN else FAILED), os_text(failure)
    if isinstance(failure, (NoProgram, NotExecutable)):
        code = NO_PROGRAM if isinstance(failure, NoProgram) else NOT_EXECUTABLE
        return code, str(failure)
    if isinstance(failure, ModuleNotFoundError) and failure.name in _EXTRAS:
        return FAILED, f"this needs {failure.name}, which is not there ({_EXTRAS[failure.name]})"
    if isinstance(failure, (Failed, ImportError)):
        return FAILED, str(failure)
    if hasattr(failure, "format_message"):  # what typer, or the click under it, refuses
        return getattr(failure, "exit_code", MISTAKE), _usage_text(failure)
    if type(failure).__name__ == "Abort":
        return FAILED, "nothing was done"
    return None, ""


def _library_error() -> type[Exception]:
    """perdure._core.Error: the library refuses what it was given. Wrong if it was never loaded."""
    core = sys.modules.get("perdure._core")
    return getattr(core, "Error", Wrong)


def os_text(failure: OSError) -> str:
    """An error of the system as "FILE: No such file or directory"."""
    reason = failure.strerror or str(failure)
    if failure.filename is not None:
        return f"{os.fsdecode(failure.filename)}: {reason}"
    return f"the output could not be written: {reason}" if failure.errno in _FULL else reason


def _usage_text(failure: Any) -> str:
    """A misuse of an option; which verb's --help says how it is used."""
    context = getattr(failure, "ctx", None)
    if type(failure).__name__ == "NoArgsIsHelpError":
        return failure.format_message()
    text = failure.format_message().rstrip(".")
    for begun in ("Invalid value for ", "Invalid value: "):
        text = text.removeprefix(begun)
    see = " See" if text.endswith("?") else "; see"
    return text if context is None else f"{text}{see} {context.command_path} --help"


def _said(sentence: str, code: int) -> int:
    helps = sentence.startswith("Usage: ")
    say(sentence if helps else f"perdure: {sentence}", err=True)
    return code


def _drop_output() -> None:
    """What is left in the buffer of stdout goes nowhere, not into another error at the end."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
