# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on several hosts without a Slurm: hosts_episodes.py in its short form, and whether it finds
planted faults; the promise that it judges by."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hosts_episodes import FAULTS, reason_to_skip
from hosts_promise import Promise

SCRIPT = Path(__file__).with_name("hosts_episodes.py")
SEED = os.environ.get("PERDURE_TEST_SEED", "1")
REASON = reason_to_skip()
needs_hosts = pytest.mark.skipif(REASON is not None, reason=REASON or "")


def episodes(*words: object) -> tuple[dict[str, int], str]:
    """What was counted, and what was said."""
    command = [sys.executable, SCRIPT, "--json", "--seed", SEED, *words]
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    facts = [json.loads(line) for line in done.stdout.splitlines()]
    total = {fact["metric"]: int(fact["value"]) for fact in facts if fact["case"] == "all"}
    assert total, done.stderr
    assert done.returncode == any(total[fault] for fault in FAULTS), done.stderr
    return total, done.stderr


@needs_hosts
def test_job_that_loses_hosts_links_clocks_and_files_has_what_is_promised():
    total, said = episodes("--episodes", 12)
    assert not any(total[fault] for fault in FAULTS), said
    assert total["right"] + total["refused_rightly"] == 12, said


@needs_hosts
def test_start_that_finds_the_bytes_of_another_input_is_counted_as_wrong():
    total, said = episodes("--episodes", 1, "--kinds", "processes", "--plant", "input")
    assert total["wrong"] == 1 and "WRONG at step" in said, said


@needs_hosts
def test_start_that_finds_nothing_of_what_was_acknowledged_is_counted_as_lost():
    total, said = episodes("--episodes", 1, "--kinds", "processes", "--plant", "forget")
    assert total["lost"] == 1 and "restarted from 0" in said, said


def promise(scheme: str, drain: bool = False) -> Promise:
    """Of a job that has committed 20 steps on three hosts, 15 of them whole on all levels."""
    made = Promise(scheme, drain)
    made.starts_on(["a", "b", "c"])
    made.levels_have(15, ["a", "b", "c"])
    made.commits(20)
    return made


def test_what_was_committed_is_promised_while_no_host_is_lost():
    made = promise("partner")
    assert made.least == 20 and made.most == 21 and not made.may_refuse


def test_host_that_a_start_has_not_got_counts_as_lost():
    made = promise("partner")
    made.starts_on(["a", "b", "d"])
    assert made.least == 15 and not made.may_refuse


def test_more_lost_hosts_than_a_scheme_bears_may_be_refused_unless_there_is_a_drain():
    for drain, least in ((False, 0), (True, 15)):
        made = promise("partner", drain)
        made.loses("a")
        made.loses("b")
        assert made.least == least and made.may_refuse == (not drain)


def test_version_that_was_brought_back_bears_the_next_loss():
    made = promise("partner")
    made.loses("a")
    made.restarted(16, ["b", "c", "d"], brought_back=True)
    made.commits(18)
    assert made.least == 18
    made.loses("b")
    assert made.least == 16 and made.most == 19
    made.loses("c")
    assert made.may_refuse


def test_host_that_is_not_used_any_more_can_be_lost():
    made = promise("partner")
    made.loses("a")
    made.restarted(16, ["b", "c", "d"], brought_back=True)
    made.loses("a")
    assert made.least == 16 and not made.lost


def test_damaged_data_may_be_refused_and_a_damaged_image_takes_what_the_scheme_bears():
    made = promise("partner")
    made.is_weak_on("b")
    assert made.least == 20 and not made.may_refuse
    made.loses("a")
    assert made.least == 0 and made.may_refuse
    made = promise("partner")
    made.is_damaged_on("a")
    assert made.least == 15 and made.may_refuse
