# SPDX-License-Identifier: BSD-3-Clause
"""`perdure pool drain` and `verify`: what they say and leave, and what they refuse."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess

import jsonschema
import pytest

from conftest import BUILD, ROOT

IN_THIS_PROCESS = True
VERIFY_SCHEMA = json.loads((ROOT / "docs/schemas/pool-verify.schema.json").read_text())
PAYLOAD = 4096  # where the contents of a level file begin
COUNTER = str(BUILD / "tests/python/counter")


@pytest.fixture
def pool(tmp_path):
    """A pool that has counted to 20."""
    directory = tmp_path / "counted"
    subprocess.run([COUNTER, directory, "20"], check=True, timeout=60, stdout=subprocess.DEVNULL)
    return directory


@pytest.fixture
def level(tmp_path):
    directory = tmp_path / "level"
    directory.mkdir(mode=0o700)
    return directory


def test_drain_brings_the_newest_version_there_once(perdure, pool, level):
    first = json.loads(perdure("pool", "drain", pool, "--to", level, "--json").out)
    (drained,) = first["versions"]
    assert (drained["version"], drained["ranks"], drained["missing_ranks"]) == (20, [0], 0)
    assert drained["written"] and drained["complete"] and drained["problem"] is None
    assert drained["bytes"] > 24 * 8
    assert first["place"] == str(level / "counted")
    (version,) = (level / "counted" / first["job_id"]).iterdir()
    assert sorted(path.name for path in version.iterdir()) == ["manifest", "node-00000"]
    assert version.name == f"version-20.{drained['incarnation']}"
    ran = perdure("pool", "drain", pool, "--to", level)
    assert ran.code == 0 and b"version 20: was there already; it is whole" in ran.out


def test_what_was_drained_is_shown_checked_and_dumped_as_the_pool_was(perdure, pool, level):
    def said(place) -> dict:
        shown = json.loads(perdure("pool", "show", place, "--json").out)
        (rank,) = shown["rank_files"]
        room = [array.pop("room_bytes") for array in rank["arrays"]]
        return {"version": shown["version"], "job_id": shown["job_id"], "worst": shown["worst"],
                "arrays": rank["arrays"], "scalars": rank["scalars"], "room": min(room) > 0}

    of_pool = said(pool)
    dumped = perdure("pool", "dump", pool, "u").out
    perdure("pool", "drain", pool, "--to", level)
    shutil.rmtree(pool)
    place = level / "counted"
    assert said(place) == of_pool
    assert perdure("pool", "dump", place, "u").out == dumped
    assert b"whole, a restart gives version 20" in perdure("pool", "check", place).out
    assert b"20" in perdure("pool", "versions", place).out
    assert b"counted" in perdure("pool", "ls", level).out
    (node,) = place.rglob("node-00000")
    node.chmod(0o600)
    node.write_bytes(node.read_bytes()[:-100] + bytes(100))
    ran = perdure("pool", "check", place)
    assert ran.code == 1 and b"node-00000" in ran.out and b"damaged" in ran.out


def test_drain_refuses_a_pool_in_use_and_changes_nothing(perdure, pool, level):
    with open(pool / "rank-00000", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ran = perdure("pool", "drain", pool, "--to", level)
    assert ran.code == 2 and ran.out == b"" and "rank-00000" in ran.err
    assert not list(level.iterdir())


@pytest.mark.parametrize(("missing", "said"), [("pool", "holds no pool"), ("level", "make it")])
def test_drain_of_what_is_not_there_is_an_error(perdure, pool, level, tmp_path, missing, said):
    nowhere = tmp_path / "empty"
    if missing == "pool":
        nowhere.mkdir(mode=0o700)
    words = (nowhere, "--to", level) if missing == "pool" else (pool, "--to", nowhere)
    ran = perdure("pool", "drain", *words)
    assert ran.code == 2 and said in ran.err
    assert not list(level.iterdir())


def test_drain_of_a_damaged_version_is_said_and_ends_with_1(perdure, pool, level):
    path = pool / "rank-00000"
    held = bytearray(path.read_bytes())
    at = held.find(bytes.fromhex("0000000000003440"))  # 20.0, the first element of u
    assert at >= 0
    held[at] ^= 1
    path.write_bytes(held)
    ran = perdure("pool", "drain", pool, "--to", level)
    assert ran.code == 1 and b"version 20: not drained: " in ran.out
    found = json.loads(perdure("pool", "drain", pool, "--to", level, "--json").out)
    assert found["versions"][0]["problem"] and not found["versions"][0]["complete"]


def test_verify_tells_what_could_be_lost(perdure, level, tmp_path):
    pool = tmp_path / "counted"
    levels = {"PERDURE_LEVELS": f"every=10;drain={level}"}
    words = [COUNTER, pool, "20"]
    subprocess.run(words, check=True, timeout=60, stdout=subprocess.DEVNULL,
                   env={**os.environ, **levels})  # fmt: skip
    ran = perdure("pool", "verify", pool, "--drain", level, "--json")
    found = json.loads(ran.out)
    jsonschema.validate(found, VERIFY_SCHEMA)
    assert ran.code == 0 and found["pool_files"] == [0] and found["problems"] == []
    assert found["kept"][0]["version"] == 20 and found["kept"][0]["bearable_losses"] == 0
    assert found["drained"][0]["version"] == 20 and found["drained"][0]["problem"] is None
    said = perdure("pool", "verify", pool, "--drain", level).out.decode()
    assert "whole; all nodes may be lost" in said and "no node may be lost" in said
    copy = tmp_path / "copy"
    shutil.copytree(pool, copy)
    assert perdure("pool", "rm", "--yes", copy).code == 0 and not copy.exists()
    images = [path for path in pool.glob("image-*") if path.stat().st_size > PAYLOAD]
    for image in images:
        content = bytearray(image.read_bytes())
        content[PAYLOAD + 200] ^= 1
        image.write_bytes(content)
    assert images
    ran = perdure("pool", "verify", pool, "--drain", level)
    assert ran.code == 1 and ran.out.count(b"damaged: ") == len(images)
    assert b"a restart now finds version 20 in the pool" in ran.out
    assert b"without it version 20 in a drain" in ran.out


def test_verify_of_a_pool_without_levels_says_what_that_means(perdure, pool, tmp_path):
    ran = perdure("pool", "verify", pool)
    assert ran.code == 1 and b"a lost node is a lost pool" in ran.out
    assert b"without it nothing" in ran.out
    found = json.loads(perdure("pool", "verify", pool, "--json").out)
    jsonschema.validate(found, VERIFY_SCHEMA)
    assert found["restart"]["now"]["from"] == "pool" and not found["restart"]["without_all_nodes"]
    ran = perdure("pool", "verify", tmp_path / "none")
    assert ran.code == 2 and "holds no pool" in ran.err
