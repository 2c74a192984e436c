# SPDX-License-Identifier: BSD-3-Clause
"""Where the tensors of a state of TrainState go: to the GPUs that the parts are on now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from perdure.torch import gpu


class Places:
    """Of the parts of one TrainState, before what was kept is in them.

    A tensor of a model, and of a dict, goes to where the part has its own of that name; one of an
    optimizer to where the parameter is that it belongs to, as load_state_dict() of torch has it. A
    count of steps stays on the CPU, from where that moves it if it has to; and so does all else.
    """

    def __init__(self, parts: Sequence[Any]):
        self._parts = parts
        self._named: dict[int, Mapping[Any, Any]] = {}

    def __call__(self, place: Sequence[Any]) -> torch.device | None:
        """As tensors.Where."""
        kind, number, *names = (*place, None, None)[: max(2, len(place))]
        if kind not in ("parts", "gradients") or number not in range(len(self._parts)):
            return None
        found = self._tensor(self._parts[number], number, names)
        if not isinstance(found, torch.Tensor) or not gpu.torch_gpu.has(found):
            return None
        return found.device

    def _tensor(self, part: Any, number: int, names: Sequence[Any]) -> Any:
        if isinstance(part, torch.optim.Optimizer):
            state, name, of = (*names, None, None, None)[:3]
            if state != "state" or of == "step":
                return None
        elif isinstance(part, (torch.nn.Module, dict)) and len(names) == 1:
            name = names[0]
        else:
            return None
        if number not in self._named:
            self._named[number] = _tensors_of(part)
        return self._named[number].get(name)


def _tensors_of(part: Any) -> Mapping[Any, Any]:
    """By the names, or the numbers, that its state has for what belongs to them."""
    if isinstance(part, torch.optim.Optimizer):
        return dict(enumerate(of for group in part.param_groups for of in group["params"]))
    return part if isinstance(part, dict) else part.state_dict()
