# SPDX-License-Identifier: BSD-3-Clause
"""`perdure cache predict`: the model against sums done by hand, records, the recorder itself."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BUILD, MPIS, ROOT
from perdure.cache.calibrate import NotCalibrated, calibrate, constants_of, load, store
from perdure.cache.darshan_log import read_log, use_of
from perdure.cache.predict import Machine, Target, advice, backing_of, by_file, predict
from perdure.cache.record import AccessClass, FileUse, NoRecord, dirty_bytes, read_records
from perdure_bench.predict import facts_of

IN_THIS_PROCESS = True
MACHINE = Machine(
    read_s=1e-7,
    write_s=2e-7,
    copy_bytes_per_s=1e9,
    touch_bytes_per_s=2e9,
    open_close_s=0.5,
)


def use(**fields) -> FileUse:
    """Two ranks that write 1000 times 10^6 bytes in 10 s."""
    one = FileUse("/f", 2, accesses=[AccessClass(True, 1000, 1e9, 20.0, size_log2=19)])
    one.open_close_s, one.other_s, one.touched_bytes, one.dirty_bytes = 0.25, 0.125, 2e8, 1e8
    for name, value in fields.items():
        setattr(one, name, value)
    return one


def test_time_with_the_cache_is_the_sum_of_its_parts():
    predicted = predict(use(fetched_bytes=5e7), MACHINE, Target(write_latency_s=3e-7), 1e8)
    assert predicted.without_s == pytest.approx(10.375)
    assert predicted.local_s == pytest.approx((1000 * 5e-7 + 1e9 / 1e9) / 2)
    assert predicted.memory_s == pytest.approx(0.05)
    assert predicted.fetch_s == pytest.approx(0.5)
    assert predicted.write_back_s == pytest.approx(1.0)
    assert predicted.open_close_s == pytest.approx(0.75)
    assert predicted.with_s == pytest.approx(0.50025 + 0.05 + 0.5 + 1.0 + 0.75 + 0.125)
    assert predicted.link_s == 0


def test_the_slower_of_copy_and_device_counts():
    predicted = predict(use(), MACHINE, Target(write_bytes_per_s=5e8), 1e8)
    assert predicted.local_s == pytest.approx((1000 * 2e-7 + 2.0) / 2)
    faster = predict(use(), MACHINE, Target(write_bytes_per_s=5e10), 1e8)
    assert faster.local_s == pytest.approx((1000 * 2e-7 + 1.0) / 2)


def test_of_n_nodes_one_nth_of_the_blocks_is_near():
    target = Target(link_bytes_per_s=1e9, link_latency_s=1e-3)
    predicted = predict(use(nodes=4), MACHINE, target, 1e8)
    assert predicted.link_s == pytest.approx(0.75 * (1000 * 2e-3 + 1.0) / 2)


@pytest.mark.parametrize("why", ["read_only", "delete_on_close"])
def test_what_is_not_kept_is_not_written_back(why):
    assert predict(use(**{why: True}), MACHINE, Target(), 1e8).write_back_s == 0


def test_break_even_is_the_cost_over_what_an_access_saves():
    predicted = predict(use(), MACHINE, Target(), 1e8)
    cost = 0.05 + 1.0 + 0.5
    gain = (10 - 0.5001) / 1000
    assert predicted.break_even_calls == pytest.approx(cost / gain)
    slow = use(accesses=[AccessClass(True, 1000, 1e9, 0.5)])
    assert predict(slow, MACHINE, Target(), 1e8).break_even_calls is None


def test_a_cached_record_tells_the_time_without():
    predicted = predict(use(cached=True, open_close_s=2.0), MACHINE, Target(), 1e9, 1e-3)
    assert predicted.access_without_s == pytest.approx(1000 * 1e-3 / 2 + 1.0)
    own = 2.0 - 0.5 - 0.1
    assert predicted.without_s == pytest.approx(1.5 + own + 0.125)
    assert predicted.open_close_s == pytest.approx(own + 0.5)


def test_backing_is_that_of_large_accesses_only():
    small = AccessClass(True, 10, 80, 100.0, size_log2=3)
    one = use(accesses=[*use().accesses, small])
    assert backing_of([one]) == pytest.approx(1e9 / 10)
    assert backing_of([use(accesses=[small])]) is None


def test_dirty_bytes_of_scattered_writes_are_grains():
    room = 1000 * 4096
    once = [AccessClass(True, 1000, 8000, 1.0)]
    grains = 1000 + 7000 / 4096
    assert dirty_bytes(once, room) == pytest.approx(room * (1 - math.exp(-grains / 1000)))
    assert dirty_bytes([AccessClass(True, 3, 3000, 1.0, True)], room) == 3000
    assert dirty_bytes([AccessClass(False, 3, 3000, 1.0)], room) == 0
    assert dirty_bytes(once, 0) == 0


def test_uses_of_one_file_are_summed_and_advised_on():
    predicted = by_file(predict(use(), MACHINE, Target(), 1e8) for _ in range(2))
    assert len(predicted) == 1 and predicted[0].calls == 2000
    assert predicted[0].without_s == pytest.approx(20.75)
    assert advice(predicted[0], use()).startswith("cache it; MPI_MODE_DELETE_ON_CLOSE")
    slow = predict(use(), MACHINE, Target(), 1e6)
    assert advice(slow, use()) == "don't cache it"
    eager = use(size_at_open=5e7, fetched_bytes=5e7, read_only=True)
    assert "perdure_cache_fetch=open" in advice(predict(eager, MACHINE, Target(), 1e8), eager)


def test_constants_are_slopes_of_the_calibration():
    large = FileUse("/l", open_close_s=1.1, dirty_bytes=1e9)
    large.accesses = [
        AccessClass(True, 10, 1e7, 0.03, True, 20),
        AccessClass(True, 5, 1e7, 0.01, True, 21),
        AccessClass(True, 1000, 8000, 0.002, False, 3),
        AccessClass(False, 1000, 8000, 0.001, False, 3),
    ]
    found = constants_of(large, FileUse("/s", open_close_s=0.1), FileUse("/s", open_close_s=0.02))
    assert found == pytest.approx((1e-6, 2e-6, 1e9, 1e7 / 0.02, 0.08, 1e9))


def test_error_is_predicted_over_measured():
    facts = {fact.metric: fact for fact in facts_of("p2", [(2.0, 1.1, 1.0)] * 3)}
    assert facts["prediction_error"].value == pytest.approx(0.1)
    assert facts["stock_s"].value == 2.0


def test_a_record_that_is_none_is_refused_with_a_sentence(tmp_path):
    with pytest.raises(NoRecord, match="run the job with PERDURE_RECORD="):
        read_records([tmp_path / "run"])
    (tmp_path / "run.0").write_text('{"bench": 1}\n')
    with pytest.raises(NoRecord, match="line 1 is no line of a record"):
        read_records([tmp_path / "run"])


def _accesses(mpi: str, folder: Path, steps: list[str], **environment: str) -> Path:
    """Runs bench_file_accesses on two ranks; returns the file."""
    program = BUILD / f"bench/bench_file_accesses_{mpi}"
    if not program.exists():
        pytest.skip(f"no {program.name}: it was not built")
    library = BUILD / f"src/capi/libperdure_mpi_{mpi}.so"
    launcher = os.environ[f"PERDURE_TEST_MPIEXEC_{mpi}"]
    file = folder / "accesses.bin"
    subprocess.run(
        [launcher, "-n", "2", str(program), str(file), str(1 << 21), *steps],
        check=True,
        timeout=60,
        env={**os.environ, "LD_PRELOAD": str(library), **environment},
    )
    return file


STEPS = ["write:sequential:1048576:2", "write:random:8:100", "read:random:64:50"]
STEPS += ["write_all:sequential:4096:8", "write_shared:sequential:100:3"]


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("cached", [False, True])
def test_the_recorder_counts_every_call_of_a_known_program(tmp_path, mpi, cached):
    environment = {"PERDURE_RECORD": str(tmp_path / "run")}
    if cached:
        (tmp_path / "pool").mkdir()
        environment["PERDURE_CACHE"] = f"files=*.bin;directory={tmp_path / 'pool'}"
    file = _accesses(mpi, tmp_path, STEPS, **environment)
    for rank in (0, 1):
        lines = [json.loads(line) for line in (tmp_path / f"run.{rank}").read_text().splitlines()]
        assert len(lines) == 2 and lines[1]["run_s"] > lines[0]["open_s"]
        line = lines[0]
        assert (line["file"], line["rank"], line["ranks"]) == (str(file), rank, 2)
        assert line["cached"] is cached and ("filled_bytes" in line) is cached
        assert line["size_at_open"] == 0 and line["size_at_close"] >= (2 + 2 * rank) << 20
        assert [line["calls"][name]["calls"] for name in ("open", "close", "sync")] == [1, 1, 0]
        seen: dict[tuple, list[int]] = {}
        for kind in line["accesses"]:
            key = (kind["direction"], kind["collective"], kind["size_log2"])
            sums = seen.setdefault(key, [0, 0])
            sums[0] += kind["calls"]
            sums[1] += kind["bytes"]
            assert kind["nonblocking"] is kind["scattered"] is False and kind["seconds"] >= 0
        assert seen == {
            ("read", False, 6): [50, 3200],
            ("write", False, 3): [100, 800],
            ("write", False, 6): [3, 300],
            ("write", False, 20): [2, 2 << 20],
            ("write", True, 12): [8, 8 * 4096],
        }
        assert line["touched_blocks"] == line["written_blocks"] == [[2 * rank, 2]]
        assert line["fetched_blocks"] == [] and line["unplaced_bytes"] == 300
    run = read_records([tmp_path / "run"])
    assert [(one.ranks, one.nodes, one.cached) for one in run.files] == [(2, 1, cached)]
    assert run.files[0].calls == 2 * 163


@pytest.mark.parametrize("mpi", MPIS)
def test_the_recorder_counts_the_fences_of_windows(tmp_path, mpi):
    program = tmp_path / "ring"
    mpicc = os.environ[f"PERDURE_TEST_MPICC_{mpi}"]
    source = ROOT / "examples/ring.c"
    subprocess.run([mpicc, "-o", program, source, "-lm"], check=True, timeout=60)
    environment = {**os.environ, "LD_PRELOAD": str(BUILD / "src/capi/libperdure_preload.so"),
                   "PERDURE_RECORD": str(tmp_path / "run")}
    words = [os.environ[f"PERDURE_TEST_MPIEXEC_{mpi}"], "-n", "2", str(program)]
    done = subprocess.run(words, check=True, timeout=60, env=environment, capture_output=True)
    rounds = int(re.search(rb"after (\d+) rounds", done.stdout)[1])
    run = read_records([tmp_path / "run"])
    assert run.files == [] and sorted(each.rank for each in run.windows) == [0, 1]
    for each in run.windows:
        assert (each.kind, each.bytes, each.ranks) == ("allocate", 32, 2)
        assert (each.fences, each.unlocks, each.completes) == (1 + 2 * rounds, 0, 0)


@pytest.mark.parametrize("mpi", MPIS)
def test_nothing_is_recorded_without_the_variable(tmp_path, mpi):
    file = _accesses(mpi, tmp_path, ["write:random:8:10"])
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("mpi", MPIS[:1])
def test_the_command_predicts_a_recorded_run(tmp_path, perdure, mpi, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    _accesses(mpi, tmp_path, STEPS, PERDURE_RECORD=str(tmp_path / "run"))
    refused = perdure("cache", "predict", tmp_path / "run")
    assert refused.code == 1 and "add --calibrate DIR" in refused.err
    assert "Errno" not in refused.err and refused.err.count("\n") == 1, refused.err
    store(MACHINE, tmp_path / "home/perdure/predict.json")
    words = ("cache", "predict", tmp_path / "run", "--backing", "1e9", "--device", "optane-100")
    predicted = json.loads(perdure(*words, "--json").out)
    assert predicted["backing_from"] == "as given" and len(predicted["files"]) == 1
    assert predicted["files"][0]["calls"] == 2 * 163 and predicted["files"][0]["with_s"] > 0
    assert b"whole run" in perdure(*words).out
    spread = perdure(*words, "--nodes", "2")
    assert spread.code == 2 and "--link" in spread.err
    assert perdure(*words, "--nodes", "2", "--link", "1GB/s,1us").code == 0
    assert perdure(*words, "--nodes", "2", "--link", "infiniband-edr").code == 0


def test_a_record_of_windows_alone_predicts_nothing_of_files(tmp_path, perdure):
    line = {"window": "create", "bytes": 8, "rank": 0, "ranks": 1, "fences": 3, "unlocks": 0,
            "completes": 0, "open_s": 0.5}
    (tmp_path / "run.0").write_text(json.dumps(line) + "\n")
    refused = perdure("cache", "predict", tmp_path / "run")
    assert refused.code == 2 and "windows, and no files" in refused.err
    (tmp_path / "run.0").write_text(json.dumps(line | {"fences": -1}) + "\n")
    with pytest.raises(NoRecord, match="line 1 has no count fences"):
        read_records([tmp_path / "run"])


def test_counters_of_darshan_become_classes():
    counters = {f"MPIIO_SIZE_{verb}_AGG_{bucket}": 0 for verb in ("READ", "WRITE") for bucket in (
        "0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M",
        "100M_1G", "1G_PLUS")}
    counters |= {"MPIIO_SIZE_WRITE_AGG_0_100": 30, "MPIIO_SIZE_WRITE_AGG_1M_4M": 10}
    counters |= {"MPIIO_BYTES_READ": 0, "MPIIO_BYTES_WRITTEN": 2e7, "MPIIO_F_META_TIME": 4.0}
    counters |= {"MPIIO_F_READ_TIME": 0.0, "MPIIO_F_WRITE_TIME": 8.0}
    one = use_of("/f", counters, 4, 1e7)
    assert [kind.calls for kind in one.accesses] == [30, 10]
    assert sum(kind.bytes for kind in one.accesses) == pytest.approx(2e7)
    assert sum(kind.seconds for kind in one.accesses) == pytest.approx(8.0)
    assert (one.open_close_s, one.dirty_bytes, one.fetched_bytes) == (1.0, 1e7, 0)


def test_what_calibration_lacks_is_said_with_its_remedy(tmp_path, monkeypatch):
    (tmp_path / "damaged.json").write_text("{")
    with pytest.raises(NotCalibrated, match="can't be read .*--calibrate DIR"):
        load(tmp_path / "damaged.json")
    monkeypatch.setattr("perdure.programs._builds", lambda: [tmp_path])
    with pytest.raises(NotCalibrated, match="no program bench_file_accesses.*make -C .* all"):
        calibrate(tmp_path)


def test_a_log_of_darshan_that_can_not_be_read_is_one_sentence(tmp_path, capfd, monkeypatch):
    class Library:
        """As darshan 3.5 does: its C library prints beside what is raised."""

        @staticmethod
        def DarshanReport(path: str, read_all: bool) -> None:
            os.write(2, b"Error: failed to read darshan log file header.\n")
            raise RuntimeError("Failed to open file.")

    monkeypatch.setitem(sys.modules, "darshan", Library)
    (tmp_path / "text.darshan").write_text("no log")
    for name, words in (("none.darshan", "No such file"), ("text.darshan", "as a Darshan log")):
        with pytest.raises(NoRecord, match=words):
            read_log(tmp_path / name)
        assert capfd.readouterr() == ("", "")


def test_a_log_of_darshan_is_read():
    darshan = pytest.importorskip("darshan", reason="pip install '.[darshan]' in the clone")
    log = Path(darshan.__file__).parent / "examples/example_logs/ior_hdf5_example.darshan"
    if not log.exists():
        pytest.skip("this darshan ships no example logs")
    run = read_log(log)
    assert run.files and all(use.calls > 0 for use in run.files if use.accesses)
    assert all(use.measured_s > 0 for use in run.files)
    assert predict(run.files[0], MACHINE, Target(), 1e9).with_s > 0
