# SPDX-License-Identifier: BSD-3-Clause
"""torchrun --nproc-per-node N shards.py PATH STEPS [KILLED_AT]: a model of which N processes have
a shard each, and which any other number of them goes on with. Docs: docs/torch.md."""

import os
import signal
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from perdure.torch import PoolReader, PoolWriter

path, steps = sys.argv[1], int(sys.argv[2])
killed_at = int(sys.argv[3]) if len(sys.argv) > 3 else -1

dist.init_process_group("gloo")
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(30, 50), torch.nn.ReLU(), torch.nn.Linear(50, 1))
fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)


def whole_state(step):
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments, "step": step}


reader = PoolReader(path)
step = 0
if reader.has_checkpoint():
    state = whole_state(0)
    dcp.load(state, storage_reader=reader)
    set_state_dict(
        model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
    )
    step = state["step"]
if dist.get_rank() == 0:
    print(f"{dist.get_world_size()} processes begin at step {step}", flush=True)

writer = PoolWriter(path)
loss = torch.tensor(float("nan"))
while step < steps:
    optimizer.zero_grad()
    x = torch.randn(16, 30, generator=torch.Generator().manual_seed(step))
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    step += 1
    if step % 5 == 0:
        dcp.save(whole_state(step), storage_writer=writer)
    if step == killed_at and dist.get_rank() == 0:
        os.kill(os.getpid(), signal.SIGKILL)
writer.close()
if dist.get_rank() == 0:
    print(f"step {step}: loss {loss.item():.6f}", flush=True)
dist.destroy_process_group()
