# SPDX-License-Identifier: BSD-3-Clause
"""Files: the one place where the commands write, read and remove them (as src/base/files.hpp).

What a name leads to is not trusted: it may be a link that another user planted, or a FIFO that
nobody writes to. Files that are made are new and for this user only (0600); a file takes the place
of one before as a whole, and a link under its name is replaced, never followed.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from perdure.failures import Wrong

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INPUT_BYTES_MAX = 64 << 20
PICTURES = (".png", ".svg", ".pdf")
_SAFE = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class NotAFile(OSError):
    """What has the name is no regular file."""


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "no regular file")


def read_bytes(path: Path | str, bytes_max: int = INPUT_BYTES_MAX) -> bytes:
    """A file that the user named, whoever's it is. Raises OSError; NotAFile at once for a FIFO."""
    content = read_beginning(path, bytes_max + 1)
    if len(content) > bytes_max:
        raise NotAFile(f"{path} is larger than the {bytes_max} bytes that such a file may have")
    return content


def read_beginning(path: Path | str, count: int) -> bytes:
    """At most the first `count` bytes of a file. Raises as read_bytes()."""
    descriptor = os.open(path, os.O_RDONLY | _SAFE)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):  # before a stream is made of it, which a directory refuses
            raise NotAFile(f"{path} is {_kind(mode)}, not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(count)
    finally:
        os.close(descriptor)


def read_text(path: Path | str, encoding: str = "utf-8", bytes_max: int = INPUT_BYTES_MAX) -> str:
    """As read_bytes(); raises UnicodeDecodeError as well. Ends of lines become newlines."""
    return io.TextIOWrapper(io.BytesIO(read_bytes(path, bytes_max)), encoding=encoding).read()


def write_bytes(path: Path | str, content: bytes, for_all: bool = False) -> None:
    """Makes the file, or replaces it as a whole: for this user, or `for_all` whom the umask lets
    read it. Raises OSError; NotAFile for anything but a file or a link."""
    path = Path(path)
    _check_replaceable(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        mode = 0o644 if for_all else 0o600
        with os.fdopen(os.open(partial, flags, mode), "wb") as file:
            file.write(content)
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def replaced(path: Path | str) -> Iterator[Path]:
    """A name under which a file or folder is made, which then takes the place of `path`.

    If the body raises, what it made is removed. Raises as write_bytes(); OSError for a folder that
    is there and not empty.
    """
    path = Path(path)
    if not path.is_dir():
        _check_replaceable(path)
    partial = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    _remove_all(partial)
    try:
        yield partial
        partial.replace(path)
    finally:
        _remove_all(partial)


def _remove_all(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_text(path: Path | str, text: str, for_all: bool = False) -> None:
    """As write_bytes(), in UTF-8."""
    write_bytes(path, text.encode("utf-8"), for_all)


def append_text(path: Path | str, text: str) -> None:
    """Adds to this user's own file, or makes it. Raises OSError; NotAFile for a link or a FIFO."""
    with open_append(path) as file:
        file.write(text.encode("utf-8"))


def open_append(path: Path | str) -> BinaryIO:
    """This user's own file, or a new one, to be added to. Raises as append_text()."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | _SAFE
    file = os.fdopen(os.open(path, flags, 0o600), "ab")
    try:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise NotAFile(f"{path} is {_kind(status.st_mode)} or has more than one name")
        if status.st_uid not in (os.geteuid(), 0):
            raise NotAFile(f"{path} belongs to another user ({status.st_uid})")
    except OSError:
        file.close()
        raise
    return file


def open_new(path: Path | str) -> BinaryIO:
    """A new file, only for this user; FileExistsError if anything has the name, a link too."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def remove(path: Path | str) -> None:
    """Removes a file or link, if there is one. Raises OSError."""
    Path(path).unlink(missing_ok=True)


def save_figure(figure: Figure, path: Path | str, **options: Any) -> None:
    """Draws a figure of matplotlib into a file; the name's ending says of which kind."""
    path = Path(path)
    drawn = io.BytesIO()
    kind = path.suffix.lstrip(".") or "png"
    figure.savefig(drawn, **{"format": kind, **options})
    write_bytes(path, drawn.getvalue())


def check_output(path: Path) -> None:
    """Raises Wrong where a file can't be made: called before the work whose result goes there."""
    folder = path.parent
    if not folder.is_dir():
        raise Wrong(f"{path} can't be written: there is no folder {folder}; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Wrong(f"{path} can't be written: no permission to write in {folder.resolve()}")
    try:
        _check_replaceable(path)
    except NotAFile as failure:
        raise Wrong(f"{failure}; name a file") from None


def check_picture(path: Path) -> None:
    """As check_output(), for a picture; the name's ending says of which kind."""
    check_output(path)
    if path.suffix.lower() not in PICTURES:
        raise Wrong(f"{path} can't be drawn: its name must end with {', '.join(PICTURES)}")


def _check_replaceable(path: Path) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise NotAFile(f"{path} is {_kind(mode)}, not a regular file")
