# SPDX-License-Identifier: BSD-3-Clause
"""ends.py FOLDER END: what ends.c does, in Python with mpi4py. END is

finalize     the end of the interpreter, at which mpi4py calls MPI_Finalize
exit         sys.exit() where mpi4py does not
exception    one that nobody catches, on all ranks
abort        os.abort()
"""

import os
import sys

import mpi4py

FOLDER, END = sys.argv[1:]
mpi4py.rc.finalize = END != "exit"

from mpi4py import MPI  # noqa: E402

import perdure  # noqa: E402

CELLS, FEW, WORDS = 2000, 10, 1000
WORLD = MPI.COMM_WORLD


def write_cells(name, count, **hints):
    info = MPI.Info.Create()
    info["perdure_cache"] = "on"
    info["perdure_cache_directory"] = f"{FOLDER}/parts"
    for key, value in hints.items():
        info[key] = value
    mode = MPI.MODE_CREATE | MPI.MODE_RDWR
    file = MPI.File.Open(WORLD, f"{FOLDER}/{name}", mode, info)
    for i in range(count):
        cell = i * WORLD.size + WORLD.rank
        file.Write_at(4 * cell, (cell + 1).to_bytes(4, "little"))
    # Collected as garbage, and not closed.


pool = perdure.open(f"{FOLDER}/pool", WORLD)
u = pool.array("u", WORDS, dtype="int64")
pool.restart()
u.working[:] = 1
pool.commit()
u.working[:] = 2
write_cells("cached", CELLS, perdure_cache_from="0")
write_cells("later", CELLS)
write_cells("aside", FEW)
WORLD.Barrier()
if END == "abort":
    os.abort()
if END == "exception":
    raise RuntimeError("nobody catches it")
if END == "exit":
    sys.exit()
