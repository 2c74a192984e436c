"""The node's part of `perdure energy`, on a fake machine whose files behave as a kernel's do."""

from __future__ import annotations

import pytest

from conftest import BUILD  # noqa: F401  puts the package on the path
from perdure.bench.energy_node import KINDS, sweep_kills


@pytest.mark.parametrize("kind", KINDS)
def test_a_cap_killed_at_any_write_is_restored(kind, tmp_path):
    found = sweep_kills(kind, tmp_path)
    assert found["calls"] >= 15
    assert found["kills"] > found["calls"]  # every call, and half of those that write
    assert found["wrong"] == 0
