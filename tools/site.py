# SPDX-License-Identifier: BSD-3-Clause
"""What mkdocs.yml cannot do by itself: pages that are made, and links out of docs/.

Made are the C reference, from the comments of the headers; the Python reference, which
mkdocstrings fills from the docstrings; README, CHANGELOG, CONTRIBUTING and SECURITY, which are not
in docs/; and a page for each file of the repository that a document links.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parent))

from site_pictures import with_pictures  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
HEADERS = ("perdure.h", "perdure_mpi.h", "perdure_ipv.h", "perdure_trace.h")
PYTHON = (
    ("Pools", "perdure.api.pool", ("open", "Pool", "Due", "Status")),
    ("Arrays", "perdure.api.array", ("Array",)),
    ("Scalars", "perdure.api.scalars", ("Scalars",)),
    ("Errors", "perdure.api.errors", ()),
    ("Windows", "perdure.windows", ()),
    ("PyTorch", "perdure.torch.checkpoint", ("Checkpoint",)),
)
# Documents that are elsewhere on the site than in the repository.
MOVED = {
    "README.md": "readme.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security_policy.md",
}
LANGUAGES = {".h": "c", ".c": "c", ".hpp": "cpp", ".cpp": "cpp", ".f90": "fortran", ".py": "python"}
_LINK = re.compile(r"(\[[^\]]*\]\()([^)\s]+)(\))")
_CODE = re.compile(r"(^```.*?^```$|^    .*?$|`[^`\n]*`)", re.M | re.S)


# --- links ---------------------------------------------------------------------------------------


def place_of(page: str) -> str:
    """Where in the repository a page of the site comes from."""
    return next((old for old, new in MOVED.items() if new == page), f"docs/{page}")


def target_of(link: str, page: str) -> str | None:
    """The page to which a link leads that leaves docs/, or None if it stays there."""
    if re.match(r"[a-z]+:|#", link):
        return None
    place = place_of(page)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(place), link.partition("#")[0]))
    if path in MOVED:
        return MOVED[path]
    if path.startswith("docs/") and (path.endswith(".md") or "." not in posixpath.basename(path)):
        return path.removeprefix("docs/") if place.count("/") == 0 else None
    if path.startswith("docs/") and not path.endswith(".json"):
        return None
    return f"source/{path}.md" if (ROOT / path).is_file() else f"source/{path}/index.md"


def with_links(markdown: str, page: str) -> str:
    """Links that leave docs/ lead to the page that stands for their target."""

    def replaced(match: re.Match[str]) -> str:
        target = target_of(match[2], page)
        if target is None:
            return match[0]
        anchor = match[2].partition("#")[2]
        relative = posixpath.relpath(target, posixpath.dirname(page) or ".")
        return f"{match[1]}{relative}{'#' if anchor else ''}{anchor}{match[3]}"

    parts = _CODE.split(markdown)
    return "".join(part if number % 2 else _LINK.sub(replaced, part)
                   for number, part in enumerate(parts))  # fmt: skip


def source_page(target: str) -> str:
    """A file as it is, or what is in a folder."""
    path = target.removeprefix("source/").removesuffix("/index.md").removesuffix(".md")
    top = f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n"
    if (ROOT / path).is_dir():
        return top + "".join(f"- `{each.name}`\n" for each in sorted((ROOT / path).iterdir()))
    language = LANGUAGES.get(Path(path).suffix, "text")
    return f"{top}````{language}\n{(ROOT / path).read_text(encoding='utf-8')}````\n"


def linked(pages: dict[str, str]) -> set[str]:
    """The pages of sources that the texts need."""
    found = {
        target_of(match[2], page)
        for page, text in pages.items()
        for match in _LINK.finditer(_CODE.sub("", text))
    }
    return {target for target in found if target is not None and target.startswith("source/")}


# --- references ----------------------------------------------------------------------------------

_DECLARATION = re.compile(
    r"(?:^/\* (?P<comment>(?:(?!\*/).)*?)\s*\*/\n)?"
    r"(?P<code>^(?:PERDURE_API\b[^;]*;[^\n]*\n)+"
    r"|^(?:typedef )?(?:enum|struct) [^;{]*\{.*?^\}[^;]*;)",
    re.M | re.S,
)


def prose(comment: str) -> str:
    """A comment's lines without their stars, as Markdown."""
    lines = [re.sub(r"^ ?\* ?", "", line.strip(" ")) for line in comment.splitlines()]
    return re.sub(r"([*<_\[])", r"\\\1", "\n".join(lines))


def c_sections(header: str) -> Iterator[str]:
    """The top comment as it is, then each declaration below its comment."""
    top, _, rest = header.partition("*/\n")
    lines = [re.sub(r"^ ?\*? ?", "", line) for line in top.splitlines()[2:]]
    yield "```text\n" + "\n".join(lines).rstrip() + "\n```\n"
    for found in _DECLARATION.finditer(rest):
        code = found["code"].strip()
        kind = r"\A(?:typedef )?(?:enum|struct) (\w+) \{"
        names = re.findall(kind, code) or re.findall(r"\b(perdure_\w+)\(", code)
        code = re.sub(r"\bPERDURE_API ", "", code)
        yield f"### {', '.join(f'`{name}`' for name in dict.fromkeys(names))}\n"
        yield f"```c\n{code}\n```\n"
        if found["comment"]:
            yield prose(found["comment"]) + "\n"


def c_reference() -> str:
    """All headers, one after the other."""
    parts = ["# C\n", "Made from the comments of the headers, which are the whole interface.\n"]
    for name in HEADERS:
        parts.append(f"## {name}\n")
        parts += c_sections((ROOT / "include/perdure" / name).read_text(encoding="utf-8"))
    return "\n".join(parts)


def python_reference() -> str:
    """What mkdocstrings is to fill."""
    parts = ["# Python, every call\n", "Made from the docstrings, which `help()` shows as well.\n"]
    for title, module, members in PYTHON:
        parts.append(f"## {title}\n")
        for name in [f"{module}.{member}" for member in members] or [module]:
            parts.append(f"::: {name}\n    options:\n      heading_level: 3\n")
    return "\n".join(parts)


# --- the hooks of mkdocs -------------------------------------------------------------------------


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what is made."""
    made = {new: (ROOT / old).read_text(encoding="utf-8") for old, new in MOVED.items()}
    made["readme.md"] = made["readme.md"].replace('src="docs/', 'src="')
    texts = {file.src_uri: file.content_string for file in files.documentation_pages()}
    made |= {target: source_page(target) for target in linked(texts | made)}
    made |= {"c_reference.md": c_reference(), "python_reference.md": python_reference()}
    for place, content in made.items():
        files.append(File.generated(config, place, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """GitHub's Markdown as this one: links, and lists that follow a line without a blank one."""
    place = page.file.src_uri
    if place.startswith("source/"):
        return markdown
    if place == "figures.md":
        markdown = with_pictures(markdown)
    return with_lists(with_links(markdown, place))


def with_lists(markdown: str) -> str:
    """A blank line before each list."""
    lines: list[str] = []
    fenced = False
    for line in markdown.splitlines():
        fenced ^= line.startswith("```")
        before = lines[-1] if lines else ""
        begins = re.match(r"(?:[-*]|\d+\.) ", line) is not None
        if begins and not fenced and re.match(r"[^\s\-*\d|#]", before):
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"
