"""The tables that commands print."""

from __future__ import annotations

from rich.table import Table


def table(*columns: str, left: tuple[str, ...] = (), title: str | None = None) -> Table:
    """A table without lines; columns named in `left` are words, the others numbers."""
    made = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for name in columns:
        made.add_column(name, justify="left" if name in left else "right")
    return made
