# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench cache` makes the facts of what its program says."""

from __future__ import annotations

import json

import pytest

from perdure_bench import cache
from perdure_bench.cache_plot import points_of

SYSTEMS = {"tmpfs": "tmpfs", "disk": "ext2/ext3", "gluster": "absent: none is mounted"}


def line(way: str, wall: float, size: int = 8, target: str = "", **more) -> str:
    """One line of bench_file_operations."""
    order, operation = more.get("order", "random"), more.get("operation", "write")
    fields = {"way": way, "operation": operation, "order": order, "bytes": size, "round": 0}
    times = {"wall_ns": wall, "cpu_ns": more.get("cpu", wall)}
    return json.dumps({**fields, "target": target, **times})


def local(lines: list[str], claims: bool = True) -> dict:
    """The local facts by metric; latencies are left out."""
    judge = cache._Judge("mpich", claims)
    facts = cache.local_facts(judge, cache.Taken(lines), SYSTEMS)
    return {fact.metric: fact for fact in facts if fact.metric != "latency_ns"}


def lines_of(cached: float, mapped: float, size: int = 8, **more) -> list[str]:
    """A round of all ways on one node."""
    lines = [line("cached", cached, size, **more), line("mapped-ordered", mapped, size, **more)]
    lines += [line("mpiio-tmpfs", 900, size, **more), line("mpiio-disk", 9000, size, **more)]
    return [*lines, line("mapped", mapped, size, **more)]


@pytest.mark.parametrize("size, text", [(8, "8B"), (4096, "4KiB"), (1 << 20, "1MiB")])
def test_a_case_names_the_size_in_its_largest_unit(size, text):
    assert cache.size_text(size) == text
    assert cache.Access(size, "seq", "read").case == f"local-{text}-seq-read"
    computes = cache.Access(size, "seq", "read", "computes").case
    assert computes == f"remote-{text}-seq-read-target-computes"


def test_a_speedup_is_stock_over_cached_and_has_its_target():
    facts = local(lines_of(cached=100, mapped=70))
    tmpfs = facts["speedup_vs_mpiio_tmpfs"]
    assert (tmpfs.value, tmpfs.target, tmpfs.holds) == (9, 6, True)
    disk = facts["speedup_vs_mpiio_disk"]
    assert disk.case == "local-8B-random-write"
    assert (disk.value, disk.target, disk.holds) == (90, 60, True)
    assert facts["wrapper_ns"].value == 30 and facts["wrapper_ns"].holds
    assert "speedup_vs_mpiio_gluster" not in facts


def test_a_target_that_is_missed_is_said_to_be_and_a_quick_run_claims_none():
    slow = lines_of(cached=300, mapped=70)
    assert local(slow)["wrapper_ns"].holds is False
    assert local(slow)["speedup_vs_mpiio_tmpfs"].holds is False
    assert all(fact.holds is None for fact in local(slow, claims=False).values())


def test_a_mebibyte_is_compared_with_memcpy():
    facts = local(lines_of(cached=104, mapped=100, size=1 << 20))
    assert facts["ratio_to_memcpy"].value == 1.04 and facts["ratio_to_memcpy"].holds
    assert "wrapper_ns" not in facts


def test_cpu_time_counts_where_memory_alone_took_much_more_wall_time():
    facts = local(lines_of(cached=200, mapped=140, cpu=70))
    assert facts["wrapper_ns"].more["clock"] == "cpu"
    assert local(lines_of(cached=200, mapped=140))["wrapper_ns"].more["clock"] == "wall"


def test_a_remote_access_is_compared_with_one_sided_calls():
    lines = [line("cached", 300, 4096, "in-mpi"), line("mpi-rma", 200, 4096, "in-mpi")]
    judge = cache._Judge("mpich", True)
    facts = list(cache.remote_facts(judge, cache.Taken(lines), "ratio_to_mpi_rma"))
    ratio = facts[-1]
    assert (ratio.case, ratio.value, ratio.holds) == ("remote-4KiB-random-write", 1.5, True)
    assert points_of(facts, "remote", "random-write") == {
        "cached": [(4096, 300)],
        "mpi-rma": [(4096, 200)],
    }


def test_gluster_is_absent_with_a_reason(monkeypatch):
    monkeypatch.delenv("PERDURE_GLUSTER", raising=False)
    with cache.gluster_directory() as (place, absent):
        assert place is None and "PERDURE_GLUSTER" in absent
