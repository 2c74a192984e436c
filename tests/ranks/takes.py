# SPDX-License-Identifier: BSD-3-Clause
"""Goes on alone with what several ranks of divide.c made: takes.py POOL; prints the version."""

import sys

import numpy as np

import perdure

LINES, COLUMNS, PARTICLES, TABLE = 61, 40, 203, 17


def value(kind: int, shape: tuple[int, ...], step: int) -> np.ndarray:
    return kind * 1000000 + np.arange(np.prod(shape)).reshape(shape) + step / 1024


with perdure.open(sys.argv[1], any_ranks=True, job="divide") as pool:
    ranks = pool.status().old_ranks
    assert ranks > 1
    grid = pool.array(
        "grid", (LINES, COLUMNS), mode="twin", box=((LINES, COLUMNS), (0, 0))
    )  # fmt: skip
    rows = pool.array("list", ranks="rows")
    table = pool.array("table", ranks="same")
    count = pool.array("count", 1, np.int64, ranks="by hand")
    assert (rows.shape, table.shape) == ((PARTICLES, 3), (TABLE,))
    names = [each.name for each in pool.old_arrays(ranks - 1)]
    assert names == ["grid", "list", "table", "count"], names
    state = pool.scalars(step=0)
    try:
        pool.read("list", ranks)
    except perdure.NotFound:
        pass
    else:
        raise AssertionError("there is no such rank")
    last = pool.read("list", ranks - 1)
    version = pool.restart()
    assert state.step == version
    assert (grid.consistent == value(1, grid.shape, version)).all()
    assert (rows.working == value(2, rows.shape, version)).all()
    assert (table.working == value(3, table.shape, version)).all()
    assert (last == rows.working[-len(last) :]).all()
    assert (pool.read("list", ranks - 1, 3, 4) == last.reshape(-1)[3:7]).all()
    lines = [int(pool.read("count", old)[0]) for old in range(ranks)]
    assert sum(lines) == LINES, lines
    state.step += 1
    count.working[0] = LINES
    grid.working[:] = value(1, grid.shape, state.step)
    rows.working[:] = value(2, rows.shape, state.step)
    table.working[:] = value(3, table.shape, state.step)
    pool.commit()
    assert pool.status().old_ranks == 1
    try:
        pool.read("count", 0)
    except perdure.WrongState:
        pass
    else:
        raise AssertionError("the old ranks are gone")
    print(version)
