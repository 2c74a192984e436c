# SPDX-License-Identifier: BSD-3-Clause
"""Files that others wrote and Python reads: mutated at random, they are read or refused with a
sentence, at once. $PERDURE_TEST_SEED sets the seed; that of a failure is printed."""

from __future__ import annotations

import json
import os
import random
import struct
from copy import deepcopy

import pytest

from perdure.cache.record import NoRecord, read_records
from perdure.cache.record_line import blocks_of
from perdure.energy.plan.file import read_plan
from perdure.energy.profile.file import read_profile
from perdure.energy.quantities import Wrong
from perdure.run.page import Phase, parse_page, read_pages

INPUTS = 1500
MAGIC = 0x314E555244524550
ACCESS = {
    "direction": "write", "collective": False, "nonblocking": False, "scattered": False,
    "sequential": True, "size_log2": 12, "calls": 3, "bytes": 12288, "seconds": 0.5,
}  # fmt: skip
FILE = {
    "file": "/f", "cached": False, "rank": 0, "ranks": 1, "node": "n", "open_s": 1.0,
    "read_only": False, "delete_on_close": False, "size_at_open": 0, "size_at_close": 12288,
    "calls": {"open": {"calls": 1, "seconds": 0.1}, "sync": {"calls": 1, "seconds": 0.2}},
    "accesses": [ACCESS], "block_bytes": 1 << 20, "touched_blocks": [[0, 1], [7, 2]],
    "written_blocks": [[0, 1]], "fetched_blocks": [], "unplaced_bytes": 0,
}  # fmt: skip
MEASURED = {"mean": 2.0, "sd": 0.1, "n": 3, "low": 1.5, "high": 2.5}
PROFILE = {
    "kind": "perdure-energy-profile", "schema": 1, "created": "x",
    "fingerprint": {"device": {"name": "d"}},
    "points": [{"op": "write", "freq_kHz": None, "writers": 1, "bandwidth_MBps": MEASURED,
                "energy_J_per_MB": MEASURED, "power_W": MEASURED}],
}  # fmt: skip
LEVEL = {"name": "nvm", "share": 0.5, "write_s": 1.0, "read_s": 1.0, "write_W": 1.0, "read_W": 1.0}
PLAN = {
    "kind": "perdure-energy-plan", "schema": 1, "objective": "energy", "formula": "exact",
    "interval_s": 10.0, "levels": [{"every": 1}],
    "schedule": {"works_s": [10.0, 11.0],
                 "expected": {"time_per_work": 1.1, "energy_per_work_W": 5.5}},
    "inputs": {"levels": [LEVEL], "rate_per_s": 1e-4, "compute_W": 5.0, "down_W": 1.0,
               "downtime_s": 1.0, "overhead_s": 0.5, "flush_W": 1.0,
               "law": {"name": "weibull", "shape": 0.7}},
    "expected": {"time_per_work": 1.1, "energy_per_work_W": 5.5},
}  # fmt: skip
ODD = [None, True, -1, 0, 2**60, 2**70, 10**400, 1e308, -0.5, float("nan"), float("inf"), "", "x",
       [], {}, [[]], [[0, 2**60]], [[1]], {"a": 1}]  # fmt: skip


@pytest.fixture
def dice():
    seed = int(os.environ.get("PERDURE_TEST_SEED", random.randrange(2**32)))
    print(f"PERDURE_TEST_SEED={seed}")
    return random.Random(seed)


def places(value, found):
    """All (container, key) of a document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in list(pairs):
        found.append((value, key))
        if isinstance(member, (dict, list)):
            places(member, found)
    return found


def mutated(document, dice) -> bytes:
    """The document with some members replaced or gone, or with some of its bytes changed."""
    copy = json.loads(json.dumps(document))
    for _ in range(dice.randrange(3)):
        holder, key = dice.choice(places(copy, []))
        if dice.randrange(4) == 0:
            del holder[key]
        else:
            holder[key] = deepcopy(dice.choice(ODD))
        if not copy:
            break
    content = bytearray(json.dumps(copy).encode())
    for _ in range(dice.choice([0, 0, 1, 3])):
        content[dice.randrange(len(content))] = dice.randrange(256)
    return bytes(content[: dice.randrange(len(content))] if dice.randrange(20) == 0 else content)


@pytest.mark.parametrize(
    "document, read, refusal",
    [
        (FILE, lambda file: read_records([file]), NoRecord),
        (PROFILE, read_profile, Wrong),
        (PLAN, read_plan, Wrong),
    ],
    ids=["record", "profile", "plan"],
)
def test_a_mutated_document_is_read_or_refused(document, read, refusal, dice, tmp_path):
    file = tmp_path / "file.0"
    file.write_text(json.dumps(document))
    read(file)
    refused = 0
    for _ in range(INPUTS):
        content = mutated(document, dice)
        file.write_bytes(content)
        try:
            read(file)
        except refusal as sentence:
            refused += 1
            assert str(sentence)
        except Exception:
            print(content)
            raise
    assert 0 < refused < INPUTS


def test_documents_that_are_too_deep_or_too_long_are_refused(tmp_path):
    file = tmp_path / "file.0"
    for text in ("[" * 100_000, '{"run_s": ' + "9" * 5000 + "}"):
        file.write_text(text)
        for read, refusal in ((read_profile, Wrong), (read_plan, Wrong)):
            with pytest.raises(refusal):
                read(file)
        with pytest.raises(NoRecord):
            read_records([file])


def test_blocks_are_counted_and_not_made():
    assert blocks_of([[0, 2], [1, 3], [10, 1]]) == 5
    assert blocks_of([[5, 2**60], [0, 2**63]]) == 2**63
    assert blocks_of([]) == 0


def test_a_page_of_any_bytes_is_no_page_or_one_that_can_be(dice):
    accepted = 0
    for _ in range(20 * INPUTS):
        fields = [dice.choice([0, 1, 2, dice.getrandbits(32)]) for _ in range(4)]
        fields += [dice.getrandbits(64) for _ in range(10)]
        text = dice.randbytes(1024)
        content = struct.pack("<QIIIIQQQQQQQQQQ1024s", MAGIC, *fields, text)
        cut = dice.randrange(len(content)) if dice.random() < 0.1 else None
        page = parse_page(content[:cut])
        if page is not None:
            accepted += 1
            assert page.rank < page.ranks and page.phase <= max(Phase)
    assert accepted > 0


def test_what_is_no_file_is_no_page_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "page-00000")
    (tmp_path / "page-00001").mkdir()
    (tmp_path / "page-00002").symlink_to("/dev/zero")
    assert read_pages(tmp_path) == []
