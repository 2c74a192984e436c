# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench state`, case n-to-m-dcp: shards of PyTorch on another number of processes."""

from __future__ import annotations

import pytest

from perdure_bench import state
from perdure_bench.state_dcp import against_dcp
from test_torch import PYTHON


@pytest.mark.skipif(PYTHON is None, reason="needs PyTorch: PERDURE_TORCH_PYTHON names a Python")
def test_another_number_of_processes_is_measured_beside_the_files_of_torch(monkeypatch, tmp_path):
    monkeypatch.setenv("PERDURE_BENCH_DIR", str(tmp_path))
    facts = list(against_dcp(PYTHON, True, (1, 3), state._facts))
    assert [(fact.metric, fact.more["ranks"]) for fact in facts] == [
        (metric, ranks)
        for ranks in (1, 3)
        for metric in ("take_ms", "rival_ms", "ratio_to_rival")
    ]
    assert all(fact.value > 0 and fact.n == 2 for fact in facts)
    assert list(tmp_path.iterdir()) == []


def test_without_pytorch_the_case_is_skipped_with_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(state, "python_with_torch", lambda: None)
    monkeypatch.setattr(state, "run_program", lambda *words: [])
    monkeypatch.setattr(state, "_against_hdf5", lambda quick: [])
    assert list(state.measure(True)) == []
    said = capsys.readouterr().err
    assert "n-to-m-dcp is skipped" in said and "PERDURE_TORCH_PYTHON" in said
