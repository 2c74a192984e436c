"""`perdure pool drain`: what it says and leaves, and what it refuses."""

from __future__ import annotations

import fcntl
import json
import subprocess

import pytest

from conftest import BUILD

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
