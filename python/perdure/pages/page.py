# SPDX-License-Identifier: BSD-3-Clause
"""Makes a page of a template beside its module, in the common frame (frame.html.jinja).

Words come from files of others: they are escaped, and without control characters. A picture is an
element of the page: its text is text, and its colours are the frame's, in light, dark and print.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from perdure.failures import Wrong
from perdure.files import write_text
from perdure.screen import plain
from perdure.units import bytes_text, seconds_text

Draw = Callable[[BinaryIO], None]
# What perdure.figures draws in these is the frame's.
_OF_THE_FRAME = {
    "#000000": "var(--ink)", "#262626": "var(--ink)", "#555555": "var(--quiet)",
    "#dddddd": "var(--line)", "#999999": "var(--quiet)", "#ffffff": "var(--paper)",
    "#0072b2": "var(--strong)",
}  # fmt: skip


def write_page(file: Path, module: str, values: Mapping[str, Any],
               filters: Mapping[str, Callable] | None = None) -> None:
    """Fills in the template MODULE.html.jinja of a module's file, and writes it for everybody to
    read, as the umask has it. Raises OSError."""
    write_text(file, page_text(module, values, filters), for_all=True)


def page_text(module: str, values: Mapping[str, Any],
              filters: Mapping[str, Callable] | None = None) -> str:
    """The page as text. `values` are what the template shows; pictures come from svg()."""
    try:
        import jinja2
    except ImportError:
        raise Wrong(
            "a report needs jinja2: pip install jinja2, or run tools/bootstrap.sh again"
        ) from None
    place = Path(module)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([place.parent, Path(__file__).parent]),
        autoescape=True,
        finalize=_plain_words,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        seconds=unbroken(seconds_text),
        size=unbroken(bytes_text),
        percent=unbroken(lambda share: f"{share:.3g} %"),
        count=lambda number: f"{number:,.0f}".replace(",", "\u202f"),
        **(filters or {}),
    )
    return environment.get_template(f"{place.stem}.html.jinja").render(values)


def unbroken(text: Callable[[float], str]) -> Callable[[float], str]:
    """What `text` gives, with its unit on the same line, and a micro where it has a u."""
    return lambda value: text(value).replace(" u", " µ").replace(" ", "\u00a0")


def _plain_words(value: object) -> object:
    """Words without control characters; what is markup already stays."""
    return plain(value) if type(value) is str else value


def svg(draw: Draw) -> Any:
    """What `draw` writes to a stream as SVG, as an element of a page."""
    from markupsafe import Markup
    from matplotlib import rc_context

    stream = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "page"}):
        draw(stream)
    text = stream.getvalue().decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for colour, name in _OF_THE_FRAME.items():
        text = text.replace(colour, name)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return Markup(re.sub(r'(<svg[^>]*?) width="[^"]*"', r'\1 width="100%"', text, count=1))
