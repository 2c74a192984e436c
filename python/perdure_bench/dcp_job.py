# SPDX-License-Identifier: BSD-3-Clause
"""The job of state_dcp.py, for a Python that has PyTorch and nothing else of Perdure's needs:

    python -m perdure_bench.dcp_job make|take DIRECTORY EDGE RANKS ROUNDS

`make`: RANKS processes keep 16 tensors of EDGE x EDGE/2 float32, divided by their rows, in a pool
and in files of torch. `take`: so many load them, by turns; of each round and way "take WAY NS", of
the slowest process, is printed. Ends with 3 if something that came back is wrong.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from perdure.torch import PoolReader, PoolWriter

_TENSORS = 16


def _state(edge: int, begins: float) -> dict[str, torch.Tensor]:
    """Tensor k has k + its flat index, from `begins` on."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    numbers = torch.arange(edge * (edge // 2), dtype=torch.float32).view(edge, edge // 2)
    return {
        f"t{k}": distribute_tensor(numbers + (begins + k), mesh, [Shard(0)])
        for k in range(_TENSORS)
    }


def _make(place: Path, edge: int) -> None:
    state = _state(edge, 0)
    writer = PoolWriter(place / "own")
    dcp.save(state, storage_writer=writer)
    writer.close()
    dcp.save(state, checkpoint_id=place / "rival")


def _take(place: Path, edge: int, rounds: int) -> int:
    expected, state = _state(edge, 0), _state(edge, 7)
    readers = {
        "own": lambda: PoolReader(place / "own"),
        "rival": lambda: dcp.FileSystemReader(place / "rival"),
    }
    wrong = 0
    for number in range(-1, rounds):
        for way in sorted(readers, reverse=number % 2 == 0):
            dist.barrier()
            begin = time.monotonic_ns()
            dcp.load(state, storage_reader=readers[way]())
            took = torch.tensor([time.monotonic_ns() - begin])
            dist.all_reduce(took, dist.ReduceOp.MAX)
            if dist.get_rank() == 0 and number >= 0:
                print(f"take {way} {took.item()}", flush=True)
            for name, tensor in state.items():
                own = tensor.to_local()
                wrong |= not torch.equal(own, expected[name].to_local())
                own.zero_()
    return wrong


def _run(rank: int, words: list[str], meeting: str) -> None:
    place, edge, ranks, rounds = Path(words[1]), *map(int, words[2:])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=ranks)
    if words[0] == "make":
        _make(place, edge)
        code = 0
    else:
        code = 3 if _take(place, edge, rounds) else 0
    dist.destroy_process_group()
    sys.exit(code)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(
            _run, (sys.argv[1:], f"file://{folder}/meeting"), int(sys.argv[4]), start_method="fork"
        )
