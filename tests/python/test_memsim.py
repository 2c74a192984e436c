# SPDX-License-Identifier: BSD-3-Clause
"""The programs of `perdure bench memsim`: what they touch, and how, is what it was.

tests/golden/layouts.json holds, for each, the pages that it touches, its misses in the paging
paper's cache (1 MB, direct-mapped), and the share of them on the hottest pages. Where arrays lie,
and so another alignment, shows in these numbers. They differ by up to 1 % from one clone to another
because the stack begins below the environment and the name of the program.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace

import pytest

from conftest import BUILD, ROOT
from perdure import _core
from perdure.sim.locality import concentration_of
from perdure_bench import memsim

GOLDEN = json.loads((ROOT / "tests/golden/layouts.json").read_text())
SUBJECTS = {subject.case: subject for subject in memsim.SUBJECTS}

if not (BUILD / "trace/lib/PerdurePass.so").exists() or shutil.which("clang-19") is None:
    pytest.skip("no LLVM 19, or a build without the recorder", allow_module_level=True)


def case_of(name: str):
    """CG takes some seconds, the others a minute and more together, of which HPL most."""
    slow = name != "cg" and not os.environ.get("PERDURE_SLOW_TESTS")
    return pytest.param(name, marks=pytest.mark.skipif(slow, reason="PERDURE_SLOW_TESTS=1 runs it"))


@pytest.mark.parametrize("case", [case_of(case) for case in GOLDEN if case in SUBJECTS])
def test_a_program_touches_the_memory_that_it_always_touched(case, tmp_path):
    subject = SUBJECTS[case]
    if case == "hpl":  # the same kernel on every processor
        subject = replace(subject, quick=(*subject.quick, "--portable"))
    trace = tmp_path / "it.ptrace"
    memsim.record_trace(subject, True, trace)
    summary = _core.summarise_trace(str(trace))
    found = {
        "pages": summary.pages,
        "misses": summary.reads + summary.writes,
        "hot_share": round(concentration_of(trace).accesses_of(subject.pages_share), 4),
    }
    assert found == {
        "pages": pytest.approx(GOLDEN[case]["pages"], rel=0.01),
        "misses": pytest.approx(GOLDEN[case]["misses"], rel=0.02),
        "hot_share": pytest.approx(GOLDEN[case]["hot_share"], abs=0.01),
    }
