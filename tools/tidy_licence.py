# SPDX-License-Identifier: BSD-3-Clause
"""Each file of code says its licence in its first lines, for whoever takes it on its own.

    tools/tidy_licence.py     writes the line into the files that lack it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

LINE = "SPDX-License-Identifier: BSD-3-Clause"
MARKS = {
    **dict.fromkeys((".c", ".h", ".cpp", ".hpp"), "//"),
    **dict.fromkeys((".py", ".sh", ".cmake", ".pc"), "#"),
    **dict.fromkeys((".f90", ".inc"), "!"),
    ".lua": "--",
    ".pml": "//",
}


def mark_of(name: str, text: str) -> str | None:
    """What begins a comment in that file; None if it is no code."""
    path = Path(name)
    if path.name == "CMakeLists.txt" or text.startswith("#!"):
        return "#"
    return MARKS.get(Path(path.stem).suffix if path.suffix == ".in" else path.suffix)


def files_without(root: Path, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        text = (root / name).read_text(encoding="utf-8", errors="replace")
        head = "\n".join(text.splitlines()[:3])
        hidden = name.startswith(".")  # what keeps the clone, not what is taken from it
        if text and not hidden and mark_of(name, text) is not None and LINE not in head:
            yield name


def with_line(name: str, text: str) -> str:
    """The text with the line on top, or after the line that names an interpreter."""
    mark = mark_of(name, text)
    start, rest = "", text
    if text.startswith("#!"):
        start, _, rest = text.partition("\n")
        start += "\n"
    apart = f"{mark}\n" if rest.startswith((f"{mark} ", f"{mark}\n")) else ""
    return f"{start}{mark} {LINE}\n{apart}{rest}"


def main() -> None:
    from tidy import repository_files

    root = Path(__file__).resolve().parent.parent
    for name in files_without(root, repository_files(root)):
        path = root / name
        path.write_text(with_line(name, path.read_text(encoding="utf-8")), encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main()
