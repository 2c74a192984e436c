# SPDX-License-Identifier: BSD-3-Clause
"""tools/figures.py: documents say what the committed facts say, and nothing else."""

from __future__ import annotations

import json
import subprocess

import pytest

import figures
from conftest import ROOT

HEADER = {"figures": "it", "commit": "0123456789ab", "machine": "a machine of the test",
          "command": "./perdure bench it --json", "date": "2026-01-02"}
FACTS = [
    {"bench": "it", "case": "fast", "metric": "ratio", "value": 1.234, "low": 1.1, "high": 1.4,
     "target": 1.2, "holds": False},
    {"bench": "it", "case": "slow", "metric": "ratio", "value": 22.5, "target": 30, "holds": True},
    {"bench": "it", "case": "slow", "metric": "ratio", "value": 7, "threads": 2},
    {"bench": "it", "case": "slow", "metric": "share", "value": 0.5, "at_mib": "[64.0, 513.2]"},
]
PAGE = """# A page

<!-- figures: it
| | ratio | limit |
|---|---|---|
@ the fast one=fast; slow: | $label | {$/ratio[threads=]:.2fq} | {$/ratio[threads=]@limit} |

Two threads: {slow/ratio[threads=2]}, {slow/share:.0%}, {slow/share@at_mib:.0f}.{fast/share?}
At {commit}, on {machine}.
-->
<!-- end -->

The rest is prose with 17 numbers.
"""
FILLED = """| | ratio | limit |
|---|---|---|
| the fast one | 1.23 (1.10 to 1.40) | ≤ 1.2, **missed** |
| slow | 22.50 | ≤ 30 |

Two threads: 7.00, 50 %, 64 and 513.
At 0123456789ab, on a machine of the test.
<!-- end -->"""


@pytest.fixture
def clone(tmp_path):
    """A clone with one page that is filled."""
    (tmp_path / "docs/figures").mkdir(parents=True)
    (tmp_path / "README.md").write_text("# It\n")
    (tmp_path / "docs/figures.md").write_text(PAGE)
    write_facts(tmp_path, [HEADER, *FACTS])
    assert figures.findings(tmp_path, True) == []
    return tmp_path


def write_facts(clone, rows):
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (clone / "docs/figures/it.jsonl").write_text(text)


def change(clone, old: str, new: str):
    page = clone / "docs/figures.md"
    assert old in page.read_text()
    page.write_text(page.read_text().replace(old, new))


def test_the_documents_of_this_clone_say_what_the_facts_say():
    assert figures.findings(ROOT, False) == []


def test_a_page_is_filled_and_stays_so(clone):
    assert FILLED in (clone / "docs/figures.md").read_text()
    assert figures.findings(clone, False) == []


def test_a_block_may_have_facts_of_another_benchmark(clone):
    other = [{**HEADER, "figures": "that"}, {**FACTS[0], "value": 2.5}]
    (clone / "docs/figures/that.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in other))
    assert figures.findings(clone, False) == ["docs/figures/that.jsonl is used by no document"]
    change(clone, "Two threads: {", "{that#fast/ratio} for {fast/ratio:.2f}. Two threads: {")
    assert figures.findings(clone, True) == []
    assert "\n2.50 for 1.23. Two threads: 7.00" in (clone / "docs/figures.md").read_text()


def test_a_number_that_was_edited_is_found(clone):
    change(clone, "1.23 (1.10", "1.13 (1.10")
    (found,) = figures.findings(clone, False)
    assert "docs/figures.md:13" in found and "1.13 (1.10" in found and "1.23 (1.10" in found


def test_a_fact_that_was_edited_is_found(clone):
    write_facts(clone, [HEADER, {**FACTS[0], "value": 1.1}, *FACTS[1:]])
    (found,) = figures.findings(clone, False)
    assert "1.23 (1.10" in found and "1.10 (1.10" in found


@pytest.mark.parametrize(("old", "new", "said"), [
    ("{slow/share:.0%}", "{slow/shade:.0%}", "0 facts that are {slow/shade:.0%}"),
    ("[threads=2]", "", "2 facts that are {slow/ratio}"),
    ("{slow/share:.0%}", "{that#slow/share:.0%}", "no that.jsonl"),
    ("{commit}", "{comit}", "'{comit}'"),
    ("<!-- figures: it\n", "<!-- figures: that\n", "no that.jsonl"),
    ("<!-- end -->", "", "lacks"),
    ("The rest", "| 17 |\nThe rest", "in no block: | 17 |"),
])
def test_a_block_that_can_not_be_filled_is_found(clone, old, new, said):
    change(clone, old, new)
    found = figures.findings(clone, True)
    assert any(said in each for each in found), found


def test_facts_say_where_they_come_from_and_are_used(clone):
    (clone / "docs/figures.md").write_text("# A page\n")
    assert figures.findings(clone, False) == ["docs/figures/it.jsonl is used by no document"]
    write_facts(clone, [{**HEADER, "machine": ""}, *FACTS])
    with pytest.raises(figures.Wrong, match="does not say machine"):
        figures.findings(clone, False)


def test_facts_are_taken_with_the_commit_and_the_machine(clone):
    for words in (["init", "-q"], ["add", "-A"],
                  ["-c", "user.name=it", "-c", "user.email=it@it", "commit", "-qm", "it"]):
        subprocess.run(["git", *words], cwd=clone, check=True)
    printed = [json.dumps(row) for row in (
        *FACTS, {"bench": "it", "case": "slow", "metric": "seconds", "value": 2},
        {"bench": "it", "case": "slow", "metric": figures.PICTURES[0], "value": 2})]
    figures.take(clone, "it", "it --json", ["seconds"], ["a title", *printed])
    rows = [json.loads(line) for line in (clone / "docs/figures/it.jsonl").read_text().splitlines()]
    assert rows[1:] == FACTS
    assert rows[0]["command"] == "it --json" and len(rows[0]["commit"]) == 12
    assert "processors" in rows[0]["machine"]
    with pytest.raises(figures.Wrong, match="no fact"):
        figures.take(clone, "it", "it --json", [], ["a title"])
