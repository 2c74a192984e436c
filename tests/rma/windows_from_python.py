# SPDX-License-Identifier: BSD-3-Clause
"""python/perdure/windows.py on windows of mpi4py: run by tools/mpi4py_tests.py rma --run.

Two processes of it would be two jobs; this one makes its pool, frees the windows and makes them
again, which opens the pool anew. Ends with 1, and says what, if anything is not as it must be.
"""

import array
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from perdure import windows  # noqa: E402  it must import neither mpi4py nor numpy

assert not {"mpi4py", "numpy"} & set(sys.modules)
from mpi4py import MPI  # noqa: E402

COMM = MPI.COMM_WORLD
CELLS = 512
wrong = []


def check(holds: bool, what: str) -> None:
    """Notes what does not hold, on any rank."""
    if not holds:
        wrong.append(what)
        print(f"rank {COMM.rank}: not so: {what}", flush=True)


def make(pool: str, name: str, mode: str, **more: str) -> MPI.Win:
    keys = {"perdure_name": name, "perdure_pool": pool, "perdure_mode": mode, **more}
    info = MPI.Info.Create(keys)
    made = MPI.Win.Allocate(8 * CELLS, 8, info, COMM)
    info.Free()
    return made


def cells(win: MPI.Win) -> memoryview:
    return memoryview(win.tomemory()).cast("q")


def fill(win: MPI.Win, value: int) -> None:
    """All cells of this rank, and cell 7 of the next one's."""
    cells(win)[:] = memoryview(array.array("q", [value + COMM.rank] * CELLS))
    win.Fence()
    mine = array.array("q", [1000 * value + COMM.rank])
    win.Put([mine, MPI.INT64_T], (COMM.rank + 1) % COMM.size, 7)
    win.Fence()


def holds(win: MPI.Win, value: int) -> bool:
    found = list(cells(win))
    put = 1000 * value + (COMM.rank - 1) % COMM.size
    return found[7] == put and found[0] == found[-1] == value + COMM.rank


def refused(call, *arguments, error=windows.WindowError) -> bool:
    try:
        call(*arguments)
    except error as refusal:
        return bool(str(refusal))
    return False


def use_versions(pool: str) -> None:
    win = make(pool, "grid", "copy", perdure_keep="4")
    check(windows.restart(win) == 0, "a new pool restores nothing")
    for value in (10, 20, 30):
        fill(win, value)
        check(windows.commit(win) == value // 10, "versions count from 1")
    check([kept.version for kept in windows.versions(win)] == [3, 2, 1], "three are kept")
    check(windows.versions(windows.pool(win))[0].parent == 2, "a pool is as good as its window")
    windows.restore(win, 1)
    check(holds(win, 10), "the contents of version 1 are back")
    fill(win, 40)
    win.Fence(windows.MODE_COMMIT)
    newest = windows.versions(win)
    check((newest[0].version, newest[0].parent) == (4, 1), "version 4 was made from version 1")
    check({kept.version for kept in newest if kept.abandoned} == {2, 3}, "2 and 3 are abandoned")
    windows.delete_version(win, 2)
    check(2 not in [kept.version for kept in windows.versions(win)], "version 2 is deleted")
    check(refused(windows.restore, win, 77), "a version that does not exist is refused")
    check(refused(windows.restore, win, -1, error=ValueError), "a negative version is refused")
    win.Free()
    again = make(pool, "grid", "copy", perdure_keep="4")
    check(windows.restart(again) == 4 and holds(again, 40), "the pool gives version 4 back")
    again.Free()


def use_halves(pool: str) -> None:
    win = make(pool, "twin", "twin")
    for value in (10, 20, 30):
        _, working = windows.halves(win)
        cells(working)[:] = memoryview(array.array("q", [value + COMM.rank] * CELLS))
        windows.commit(win)
        consistent, other = windows.halves(win)
        check(set(cells(consistent)) == {value + COMM.rank}, "the commit made it consistent")
        check(consistent != other, "there are two halves")
    win.Free()


def use_wrongly(pool: str) -> None:
    plain = MPI.Win.Allocate(8, 8, MPI.INFO_NULL, COMM)
    for call in (windows.commit, windows.restart, windows.halves, windows.pool, windows.versions):
        check(
            refused(call, plain), f"{call.__name__} of a window that is not persistent is refused"
        )
    plain.Free()
    check(refused(windows.commit, 3, error=TypeError), "a number is no window")
    copied = make(pool, "copied", "copy")
    check(refused(windows.halves, copied), "mode copy has no halves")
    copied.Free()


def main() -> int:
    parent = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="perdure-rma-", dir=parent) as own:
        place = COMM.bcast(own)
        use_versions(f"{place}/versions")
        use_halves(f"{place}/halves")
        use_wrongly(f"{place}/wrongly")
        COMM.Barrier()
    return 1 if COMM.allreduce(len(wrong)) else 0


sys.exit(main())
