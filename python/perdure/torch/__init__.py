# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints of PyTorch in pools: `pip install '.[torch]'` in the clone, docs/torch.md.

TrainState keeps a training loop, Checkpoint the state dict of one process; PoolWriter and
PoolReader are the storage of torch.distributed.checkpoint for any number. CPU tensors are copied
once, into the pool, which the commit makes durable; tensors of other devices come over in that
copy.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ImportError("perdure.torch needs PyTorch: pip install torch, or '.[torch]' in the clone")

from perdure.torch.checkpoint import Checkpoint as Checkpoint
from perdure.torch.distributed import PoolReader as PoolReader
from perdure.torch.distributed import PoolWriter as PoolWriter
from perdure.torch.train_state import TrainState as TrainState

__all__ = ["Checkpoint", "PoolReader", "PoolWriter", "TrainState"]
