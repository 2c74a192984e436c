# SPDX-License-Identifier: BSD-3-Clause
"""Sizes and times by the table that C++ is tested against too (src/base/quantity_test.cpp)."""

from __future__ import annotations

import re

import pytest

from conftest import ROOT
from perdure.units import SIZES, TIMES, Wrong, parse_bandwidth, parse_size, parse_time

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


@pytest.mark.parametrize(("text", "value"), [("2GB/s", 2e9), (" 1.5 MiB / s ", 1.5 * 2**20)])
@pytest.mark.parametrize("unit", ["", "B"])
def test_bandwidths_are_sizes_a_second(text, value, unit):
    assert parse_bandwidth(text, unit) == value


@pytest.mark.parametrize(
    ("text", "unit", "said"),
    [
        ("2GB/h", "B", "no bandwidth"), ("2GB/", "B", "no bandwidth"), ("2GB", "", "no bandwidth"),
        ("2e9/s", "", "has no unit.*, and /s after it"), ("0B/s", "B", "more than nothing"),
        ("-1GB/s", "B", "negative"), ("fast", "B", "no size.*, and /s"),
    ],
)  # fmt: skip
def test_what_is_no_bandwidth_is_refused(text, unit, said):
    with pytest.raises(Wrong, match=said):
        parse_bandwidth(text, unit)


def test_a_bandwidth_may_be_a_number_alone_where_its_unit_is_the_default():
    assert parse_bandwidth("2e9") == parse_bandwidth("2GB") == 2e9
