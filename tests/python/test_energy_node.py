# SPDX-License-Identifier: BSD-3-Clause
# ctest: COST 50
"""The node's part of `perdure energy`, on a fake machine whose files behave as a kernel's do."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import time
from itertools import product
from pathlib import Path

import pytest

from conftest import BUILD, LIMIT_S, ROOT, SLOW, a_few, in_this_process, wait_until
from perdure_bench.energy_node import KINDS, FakeMachine, find_fake, limits_of, sweep_kills

POLICY = "sys/devices/system/cpu/cpufreq/policy0"


class Node:
    """The command on a fake machine."""

    def __init__(self, root: Path, kind: str = "intel_pstate", *behaviour: str):
        self.machine = FakeMachine(root, kind, *behaviour)
        self.root = root
        self.before = limits_of(root)

    def environment(self, keeper: bool, **more) -> dict[str, str]:
        found = self.machine.environment(PERDURE_BUILD=str(BUILD), **more)
        if keeper:
            del found["PERDURE_KEEPER"]
        return found

    def __call__(self, *words, keeper: bool = True, **more) -> subprocess.CompletedProcess:
        return subprocess.run(
            [str(ROOT / "perdure"), "energy", *map(str, words)], capture_output=True, text=True,
            env=self.environment(keeper, **more), timeout=LIMIT_S, check=False, cwd=self.root,
        )

    def start(self, *words, keeper: bool = True) -> subprocess.Popen:
        return subprocess.Popen(
            [str(ROOT / "perdure"), "energy", *map(str, words)], cwd=self.root,
            env=self.environment(keeper), start_new_session=True,
        )

    def hold(self, khz: int, keeper: bool = True) -> subprocess.Popen:
        """A command that runs with a cap until it is ended; it has begun."""
        begun = self.root / f"begun-{time.monotonic_ns()}"
        running = self.start("run", "--freq", f"{khz}kHz", "--", "sh", "-c",
                             f"touch {begun}; exec sleep 60", keeper=keeper)
        wait_until(begun.exists)
        return running

    def limit(self) -> int:
        return int((self.root / POLICY / "scaling_max_freq").read_text() or 0)

    def is_as_before(self) -> bool:
        return limits_of(self.root) == self.before and not self.state()

    def state(self) -> list[str]:
        return [path.name for path in (self.root / "run/perdure-energy").glob("*")]


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path / "machine")


@pytest.mark.parametrize("kind", KINDS)
def test_a_cap_killed_at_any_write_is_restored(kind, tmp_path):
    found = sweep_kills(kind, tmp_path, some=None if SLOW else 6)
    assert found["calls"] >= 15
    # At every call that is tried, and in the middle of those that write.
    assert found["kills"] > found["calls"] if SLOW else found["kills"] >= 6
    assert found["wrong"] == 0


def test_apply_caps_until_restore(node):
    applied = node("apply", "--freq", "1.4GHz", "--json")
    assert applied.returncode == 0, applied.stderr
    report = json.loads(applied.stdout)
    assert {row["applied_kHz"] for row in report["policies"]} == {1_400_000}
    assert {row["effective_kHz"] for row in report["policies"]} == {1_400_000}
    assert node.limit() == 1_400_000
    assert "capped at 1400 MHz until restored" in node("probe").stdout
    assert node("restore", "--stale").returncode == 0
    assert node.limit() == 1_400_000  # nobody has ended
    assert node("restore").returncode == 0
    assert node.is_as_before()


def test_apply_for_a_process_ends_with_it(node):
    with subprocess.Popen(["sleep", "60"]) as process:
        assert node("apply", "--freq", "1400MHz", "--pid", process.pid).returncode == 0
        node("restore")
        assert node.limit() == 1_400_000
        process.kill()
        process.wait()
    node("restore", "--stale")
    assert node.is_as_before()


def test_run_caps_around_a_command_and_passes_its_exit_code_on(node):
    ran = node("run", "--freq", "1.2GHz", "--", "sh", "-c",
               f"cat {node.root}/{POLICY}/scaling_max_freq; exit 7")
    assert ran.returncode == 7
    assert ran.stdout.strip() == "1200000"
    assert node.is_as_before()


@pytest.mark.parametrize("whole_group", [False, True])
def test_the_keeper_restores_after_sigkill(node, whole_group):
    running = node.hold(1_200_000)
    assert node.limit() == 1_200_000
    if whole_group:
        os.killpg(running.pid, signal.SIGKILL)
    else:
        running.send_signal(signal.SIGKILL)
    running.wait()
    wait_until(node.is_as_before)
    if not whole_group:
        os.killpg(running.pid, signal.SIGKILL)  # the command, which nobody ended


def test_without_a_keeper_the_next_start_restores(node):
    running = node.hold(1_200_000, keeper=False)
    assert node.limit() == 1_200_000
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert node.limit() == 1_200_000
    assert node("run", "--freq", "1.3GHz", "--", "true", keeper=False).returncode == 0
    assert node.is_as_before()


def test_sigterm_ends_the_command_and_restores(node):
    running = node.hold(1_200_000, keeper=False)
    assert node.limit() == 1_200_000
    running.send_signal(signal.SIGTERM)
    assert running.wait(LIMIT_S) == 128 + signal.SIGTERM
    assert node.is_as_before()


def test_two_jobs_nest_in_all_orders_of_leaving(node):
    for first_khz, second_khz, first_leaves in a_few((
        (1_000_000, 1_400_000, True), (1_000_000, 1_400_000, False),
        (1_400_000, 1_000_000, True), (1_400_000, 1_000_000, False),
    ), 2):  # fmt: skip
        jobs = [node.hold(first_khz), node.hold(second_khz)]
        assert node.limit() == 1_000_000
        leaving, staying = jobs if first_leaves else reversed(jobs)
        left = second_khz if first_leaves else first_khz
        leaving.terminate()
        leaving.wait()
        assert node.limit() == left
        staying.terminate()
        staying.wait()
        assert node.is_as_before()


def test_nothing_is_restored_over_a_later_change(node):
    node("apply", "--freq", "1.4GHz")
    (node.root / POLICY / "scaling_max_freq").write_text("1300000\n")
    restored = node("restore")
    assert restored.returncode == 0
    assert "somebody else has set" in restored.stderr
    assert node.limit() == 1_300_000
    assert not node.state()


@pytest.mark.parametrize("behaviour, said", [
    (f"{POLICY[:-1]}*/scaling_m* eacces", "Permission denied"),
    (f"{POLICY[:-1]}*/scaling_max_freq ignore", "accepted"),
    (f"{POLICY}/scaling_max_freq uncapped", "but it runs at"),
    (f"{POLICY}/scaling_max_freq ebusy 99", "busy"),
    (f"{POLICY}/* vanish 1", "vanished"),
])
def test_what_is_not_applied_is_said_and_the_command_runs(tmp_path, behaviour, said):
    node = Node(tmp_path / "machine", "acpi-cpufreq", behaviour)
    ran = node("run", "--freq", "1GHz", "--", "sh", "-c", "sleep 0.1; echo done")
    assert ran.returncode == 0
    assert ran.stdout == "done\n"
    assert "not applied" in ran.stderr and said in ran.stderr


def test_probe_tells_dead_meters_from_live_ones(node):
    found = json.loads(node("probe", "--json").stdout)
    rows = {(row["interface"], row["path"].rsplit("/", 2)[-2], row["name"]): row
            for row in found["meters"]}
    assert rows["powercap", "intel-rapl:0", "package-0"]["counted"]
    assert not rows["powercap", "intel-rapl-mmio:0", "package-0"]["counted"]
    psys = rows["perf", "events", "energy-psys"]
    assert psys["readable"] and psys["alive"] is False and "dead" in psys["reason"]
    assert found["energy"] == {"name": "powercap:package-0+dram", "scope": "package"}
    assert found["frequency"]["settable"]
    assert found["boost"]["on"]


def test_a_machine_without_anything_is_probed_and_left_alone(tmp_path):
    environment = {**os.environ, "PERDURE_SYSFS_ROOT": str(tmp_path), "PERDURE_BUILD": str(BUILD)}
    command = [str(ROOT / "perdure"), "energy"]
    for words in (["probe"], ["apply", "--freq", "1GHz"], ["restore", "--stale"],
                  ["run", "--freq", "1GHz", "--writers", "1", "--", "true"]):
        ran = subprocess.run([*command, *words], env=environment, capture_output=True, text=True,
                             timeout=LIMIT_S, check=False)
        assert ran.returncode == 0, ran.stderr
    assert "not applied: this machine has no frequency policies" in ran.stderr
    assert list(tmp_path.rglob("*.json")) == []


@pytest.mark.parametrize("name, plant", a_few(product(
    ["frequency.json", "lock"],
    [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/etc/shadow")]), 3))
def test_what_was_planted_as_state_is_refused_at_once(node, name, plant):
    state = node.root / "run/perdure-energy"
    state.mkdir(parents=True, exist_ok=True)
    plant(state / name)
    restored = node("restore", "--stale")
    assert restored.returncode == 1
    assert f"{state / name} is a" in restored.stderr
    ran = node("run", "--freq", "1GHz", "--", "echo", "done")
    assert ran.returncode == 0 and ran.stdout == "done\n" and "not applied" in ran.stderr
    if name == "frequency.json" and plant is os.mkfifo:  # once, as it keeps processors busy
        assert "who caps the clock is not known" in node("probe").stderr


def test_a_journal_prints_no_file_that_it_names(node):
    secret = node.root / "secret"
    secret.write_text("root:$6$kept-from-everybody")
    node("apply", "--freq", "1.4GHz")
    file = node.root / "run/perdure-energy/frequency.json"
    journal = json.loads(file.read_text())
    for change in ({"boost_path": "secret", "boost": ""}, {"boost_knob": "../../secret"},
                   {"schema": 1, "boost_path": "secret", "boost": ""}):
        file.write_text(json.dumps({**journal, **change}))
        restored = node("restore", "--stale")
        assert "root:" not in restored.stdout + restored.stderr
    file.write_text(json.dumps(journal))
    assert node("restore").returncode == 0
    assert node.is_as_before()


def profile_words(folder: Path, output: Path, *more) -> list:
    return ["profile", folder, "--max-bytes", "64MiB", "--writers", "1,2", "--repeats", "2",
            "--yes", "-o", output, *more]


def test_a_profile_has_energy_and_clocks_where_they_are(node, tmp_path):
    file = tmp_path / "profile.json"
    ran = node(*profile_words(tmp_path, file, "--writers", "1"))
    assert ran.returncode == 0, ran.stderr
    profile = json.loads(file.read_text())
    assert profile["fingerprint"]["meter"] == {"name": "powercap:package-0+dram",
                                               "scope": "package"}
    clocks = {point["freq_kHz"] for point in profile["points"]}
    assert None in clocks and min(clocks - {None}) == 800_000
    # 70 W flow in the fake. On a busy machine, a late start of the threads that watch shows as less
    # or more in some points.
    powers = [point["power_W"]["mean"] for point in profile["points"]]
    assert statistics.median(powers) == pytest.approx(70, rel=0.5) and min(powers) > 0
    for point in profile["points"]:
        assert point["energy_J_per_MB"]["mean"] > 0
        assert point["bandwidth_MBps"]["n"] == 2
    assert profile["idle_power_W"]["before"]["n"] == 5
    assert node.is_as_before()
    assert not list(tmp_path.glob("*.part")) and not list(tmp_path.glob(".perdure-energy-*"))
    in_this_process("energy", "profile", "plot", file, "-o", tmp_path / "profile.png")
    assert (tmp_path / "profile.png").read_bytes().startswith(b"\x89PNG")
    merged = tmp_path / "both.json"
    assert in_this_process("energy", "profile", "merge", file, file, "-o", merged).code == 0
    assert len(json.loads(merged.read_text())["points"]) == len(profile["points"])
    checked = node("profile", "check", file)
    assert checked.returncode == 0 and "write on" in checked.stdout


def test_without_a_meter_energy_is_null_and_never_0(tmp_path):
    node = Node(tmp_path / "machine", "intel_pstate", "sys/class/powercap/*/energy_uj dead",
                "perf/0x2 dead", f"{POLICY[:-1]}*/scaling_max_freq eacces")
    file = tmp_path / "profile.json"
    ran = node(*profile_words(tmp_path, file, "--writers", "1"))
    assert ran.returncode == 0
    assert "no meter works here" in ran.stderr
    profile = json.loads(file.read_text())
    assert profile["fingerprint"]["meter"] is None and profile["idle_power_W"] is None
    assert {point["energy_J_per_MB"] for point in profile["points"]} == {None}
    assert {point["freq_kHz"] for point in profile["points"]} == {None}


def test_a_profile_goes_on_after_ctrl_c(node, tmp_path):
    file = tmp_path / "profile.json"
    part = tmp_path / "profile.json.part"
    words = profile_words(tmp_path, file, "--op", "write", "--writers", "1")
    running = node.start(*words)
    wait_until(lambda: part.exists() and len(part.read_text().splitlines()) >= 3)
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(LIMIT_S) == 130
    taken = part.read_text().splitlines()
    assert len(taken) >= 3
    assert node.is_as_before()
    again = node(*words)
    assert again.returncode == 0, again.stderr
    assert f"goes on after {len(taken) - 1} samples" in again.stderr
    assert not part.exists()


@pytest.mark.parametrize("words, said", a_few([
    (["apply", "--freq", "1400"], "write it as 1.4GHz"),
    (["apply", "--freq", "1GHz", "--pid", "99999999"], "no process"),
    (["run", "--", "true"], "nothing to apply"),
    (["run", "--freq", "-1GHz", "--", "true"], "no clock"),
    (["run", "--writers", "1", "--op", "erase", "--", "true"], "read or write"),
    (["run", "--profile", "missing.json", "--path", ".", "--", "true"], "missing.json"),
    (["profile", "missing", "--yes"], "neither a directory"),
    (["profile", ".", "--max-bytes", "10kB", "--yes"], "is too little"),
    (["profile", ".", "--max-bytes", "100", "--yes"], "has no unit"),
    (["profile", ".", "--writers", "0", "--yes"], "no list of numbers"),
    (["profile", ".", "--op", "erase", "--yes"], "none of read"),
    (["profile", "show", "missing.json"], "missing.json"),
], 4))
def test_bad_input_is_refused_in_a_sentence(node, words, said):
    ran = node(*words)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
    assert node.is_as_before()


def test_nobody_is_asked_where_nobody_can_answer(node, tmp_path):
    ran = node("profile", tmp_path, "-o", tmp_path / "x.json")
    if "say --yes" not in ran.stderr:  # on a memory file system nothing wears
        pytest.skip("the test's directory lies in memory")
    assert ran.returncode == 2
    assert "of one write of the whole device" in ran.stderr


def test_a_block_device_is_not_written_to_without_asking(tmp_path):
    from perdure.energy.profile.measuring import check_device
    from perdure.energy.quantities import Wrong

    with pytest.raises(Wrong, match="--destroy"):
        check_device(Path("/dev/null"), destroy=False)


def test_jobs_wait_for_each_others_tokens(node, tmp_path):
    order = tmp_path / "order"
    script = f"echo in >> {order}; sleep 0.4; echo out >> {order}"
    jobs = [node.start("run", "--writers", "1", "--", "sh", "-c", script) for _ in range(3)]
    assert [job.wait(LIMIT_S) for job in jobs] == [0, 0, 0]
    assert order.read_text().split() == ["in", "out"] * 3


def test_a_job_goes_ahead_when_its_timeout_ends(node):
    begun = node.root / "begun"
    holder = node.start("run", "--writers", "1", "--", "sh", "-c", f"touch {begun}; sleep 60")
    wait_until(begun.exists)
    try:
        ran = node("run", "--writers", "1", "--timeout", "0.2", "--json",
                   node.root / "facts.json", "--", "true")
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()
    assert ran.returncode == 0
    assert "went ahead without a token" in ran.stderr
    assert json.loads((node.root / "facts.json").read_text())["went_ahead"] == 1


def test_a_job_commits_by_a_plan_with_the_clock_capped(node, tmp_path):
    """counter commits each step; the fake's clock is capped while it does, and restored."""
    plan = tmp_path / "plan.json"
    setting = {"freq_kHz": 1_000_000, "writers": 1}
    plan.write_text(json.dumps({
        "schema": 1, "kind": "perdure-energy-plan", "interval_s": 1.0,
        "levels": [{"name": "local", "every": 1, "path": None, "write": setting,
                    "read": setting}]}))
    report = tmp_path / "report"
    program = find_fake()[1].parents[2] / "tests/python/counter"
    environment = node.environment(True, PERDURE_ENERGY_PLAN=str(plan),
                                   PERDURE_ENERGY_REPORT=str(report))
    done = subprocess.run([program, str(tmp_path / "pool"), "5"], env=environment,
                          capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    facts = json.loads(report.read_text())
    assert facts["capped"] >= 5 and facts["not_capped"] == 0
    assert facts["tokens_taken"] == facts["capped"]
    wait_until(node.is_as_before)
