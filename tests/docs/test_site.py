# SPDX-License-Identifier: BSD-3-Clause
"""The site of `make docs`: it builds without a warning, needs no network, and lacks nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import site_pictures  # noqa: E402

# What a browser fetches by itself; links of a text are followed by people only.
FETCHED = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=\"?([^\"\s>]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(place)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1",
                   "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(mkdocs, cwd=ROOT, env=environment, capture_output=True, text=True,
                          timeout=200, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return place


def test_every_document_is_a_page_that_a_part_of_the_site_links(site):
    front = (site / "index.html").read_text()
    for document in (ROOT / "docs").glob("*.md"):
        assert f'href="{document.stem}.html"' in front or document.stem == "index", document.name
    parts = re.findall(r"md-tabs__link\"?>\s*(?:<[^>]*>)*\s*([\w-]+)", front)
    assert parts == ["Start", "How-to", "Reference", "Inside"]


def test_nothing_is_loaded_from_a_network(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        for fetched in FETCHED.findall(page.read_text()):
            assert not fetched.startswith(("http:", "https:", "//")), (page.name, fetched)
            # The page of errors is for servers, and its paths are of the root.
            base = site if page.name == "404.html" else page.parent
            target = base / fetched.lstrip("/")
            assert target.exists() or fetched in (".", "#") or fetched.startswith("data:"), (
                page.name, fetched)  # fmt: skip
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:|@import", style.read_text()), style.name


def test_links_to_sources_lead_to_pages_with_their_text(site):
    assert "../source/" not in (site / "cpp.html").read_text()
    assert 'href="source/examples/heat.cpp.html"' in (site / "cpp.html").read_text()
    assert "perdure" in (site / "source/examples/heat.cpp.html").read_text()


def test_the_figures_are_seen_before_they_are_read(site):
    """What the pictures show is what the tables have, which are folded below."""
    html = (site / "figures.html").read_text()
    markdown = (ROOT / "docs/figures.md").read_text()
    figure = r"<figure class=\"?facts\"?><svg(.*?)</svg>\s*</figure>\s*<details(.*?)</details>"
    drawn = re.findall(figure, html, re.S)
    known = site_pictures.PICTURES.values()
    assert len(drawn) >= len(known) > 8
    for picture, table in drawn:
        assert "<table" in table and "var(--ink)" in picture and "#000000" not in picture
    texts = "".join(picture for picture, _ in drawn)
    assert {each.title for each in known} == {each.title for each in known if each.title in texts}
    heads = ["case", "ratio"]
    rows = [["a", "1.5 (1.2 to 1.9), **missed**"], ["b", "0.5"], ["c", "≥ 2"], ["d", ""]]
    one = site_pictures.Picture(("ratio",), "", "")
    assert site_pictures.points(one, heads, rows) == {
        "ratio": [(0, 1.5, 1.2, 1.9), (1, 0.5, 0.5, 0.5)]}
    for heads in (site_pictures.cells(line) for line in markdown.splitlines() if line[:1] == "|"):
        picture = site_pictures.PICTURES.get((heads[0], heads[1]))
        assert picture is None or set(picture.columns) <= set(heads), heads


def test_the_references_have_every_call(site):
    c = (site / "c_reference.html").read_text()
    for header in ("perdure.h", "perdure_mpi.h", "perdure_ipv.h", "perdure_trace.h"):
        text = (ROOT / "include/perdure" / header).read_text()
        for call in re.findall(r"^PERDURE_API .*?\b(perdure_\w+)\(", text, re.M):
            assert re.search(rf"<h3 id=[^>]*>(?:(?!</h3>).)*\b{call}\b", c), call
    python = (site / "python_reference.html").read_text()
    for name in ("Pool.commit_begin", "Array.before_write", "NoSpace", "Checkpoint.save"):
        assert re.search(rf"id=\"?[\w.]*{re.escape(name)}\b", python), name


def test_the_search_finds_words_of_every_part(site):
    index = json.loads((site / "search/search_index.json").read_text())
    places = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"protect_c.html", "run.html", "c_reference.html", "walks.html"} <= places
    assert not any(place.startswith("source/") for place in places)
    assert "iframe-worker.js" in (site / "index.html").read_text()
