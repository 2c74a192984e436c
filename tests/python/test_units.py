# SPDX-License-Identifier: BSD-3-Clause
"""Sizes and times by the table that C++ is tested against too (src/base/quantity_test.cpp)."""

from __future__ import annotations

import re

import pytest

from conftest import ROOT
from perdure.units import SIZES, TIMES, Wrong, parse_size, parse_time

TABLE = (ROOT / "tests/grammar/quantities.txt").read_text()
CASES = re.findall(r"^(size|time) '(.*)' (\S+)$", TABLE, re.MULTILINE)


@pytest.mark.parametrize("kind, text, expected", CASES)
def test_quantities_are_read_as_the_table_says(kind, text, expected):
    parse = parse_size if kind == "size" else parse_time
    if expected == "-":
        with pytest.raises(Wrong, match="write it as|no unit|negative|whole number|too large"):
            parse(text)
    elif kind == "size":
        assert parse(text) == int(expected)
    else:
        assert int(parse(text) * 1e9 + 0.5) == int(expected)


def test_every_line_of_the_table_is_a_case():
    lines = [line for line in TABLE.splitlines() if line and not line.startswith("#")]
    assert len(CASES) == len(lines) > 80


def test_units_are_those_of_the_page():
    page = (ROOT / "docs/cli.md").read_text().split("## Sizes and times")[1].split("\n## ")[0]
    named = {word for words in re.findall(r"`([^`]+)`", page) for word in re.split(r"[ ,]+", words)}
    assert not {*SIZES, *TIMES} - named


def test_where_no_unit_is_the_default_a_number_alone_is_refused():
    with pytest.raises(Wrong, match="has no unit"):
        parse_size("64", unit="")
    with pytest.raises(Wrong, match="has no unit"):
        parse_time("130", unit="")
