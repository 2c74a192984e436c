# SPDX-License-Identifier: BSD-3-Clause
"""All that a training loop needs to go on with the same bits: parts, random streams, position."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from perdure.api.errors import InvalidArgument, NoSpace, WrongShape, WrongState
from perdure.torch.checkpoint import Checkpoint
from perdure.torch.part_places import Places


class TrainState:
    """Keeps a training loop, and goes on with it in the middle of an epoch.

        train = perdure.torch.TrainState("/mnt/pmem/run", model, optimizer, scheduler, loader)
        for epoch in train.epochs(90):
            for x, y in train.batches():
                step(x, y)
                train.save()
            scheduler.step()
            train.save()

    `parts` are what has state_dict() and load_state_dict() (models, optimizers, schedulers,
    scalers), torch.Generator, dicts of plain values, and one loader. What was kept is in them as
    soon as this is made. A start goes on after the last save(): one in the loop over batches counts
    the batches of its epoch, also if the program leaves that loop by `break`; one after it means
    that the epoch is over, and comes last there; of one before it the epoch begins anew, so it
    comes first there.

    Kept are also the streams of `random`, numpy and torch, of CUDA where it was used, and of the
    generators of the loader and its samplers. A loader with state_dict() is given its own; of
    another one the batches that were done are fetched again and passed over, from the streams as
    they were when the epoch began. Save after optimizer.step(): gradients are kept only with
    `gradients`. `options` are those of perdure.open().

    Raises InvalidArgument for parts that can't be kept, and for a loader with persistent workers,
    whose streams nobody can set back; WrongShape if other parts were kept.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *parts: Any,
        gradients: bool = False,
        **options: Any,
    ):
        loaders = [part for part in parts if _is_loader(part)]
        if len(loaders) > 1:
            raise InvalidArgument("there are two loaders; keep one of them in another TrainState")
        self._loader: Any = loaders[0] if loaders else None
        self._parts = [part for part in parts if not _is_loader(part)]
        self._names = [_checked(part) for part in self._parts]
        if getattr(self._loader, "persistent_workers", False) and not _has_state(self._loader):
            raise InvalidArgument(
                "the loader's workers are persistent, and nobody can set their streams back; make"
                " it with persistent_workers=False"
            )
        self._gradients = gradients
        self._kept = Checkpoint(path, **options)
        self._epoch = 0
        self._batch: int | None = 0  # done in this epoch; None: all
        self._begin: dict[str, Any] = {}  # the streams before its batches; {}: none was asked for
        self._found = self._loaded()  # of what was kept, all but what is in the parts now

    @property
    def epoch(self) -> int:
        """That is under way, from 0."""
        return self._epoch

    @property
    def batch(self) -> int:
        """How many batches of the epoch were given."""
        return self._batch or 0

    def epochs(self, count: int) -> Iterator[int]:
        """Numbers of the epochs that are not over yet, of `count`."""
        found = self._found
        if found is not None:
            self._epoch = found["epoch"] + (found["batch"] is None)
            if found["batch"] is None or not found["begin"]:
                self._found = None
                self._set_streams(found["streams"])
        while self._epoch < count:
            if self._found is None:
                self._batch, self._begin = 0, {}
            yield self._epoch
            self._epoch += 1
            self._found = None

    def batches(self) -> Iterator[Any]:
        """The batches of this epoch that were not done yet."""
        if self._loader is None:
            raise WrongState("there is no loader: give one to TrainState")
        found, self._found = self._found, None
        for of in _samplers(self._loader):
            if hasattr(of, "set_epoch"):
                of.set_epoch(self._epoch)
        if found is None:
            self._batch, self._begin = 0, self._streams()
            iterator = iter(self._loader)
        else:
            iterator = self._resumed(found)
        for batch in iterator:
            self._batch = (self._batch or 0) + 1
            yield batch
        self._batch = None

    def save(self, *, wait: bool = True) -> int:
        """Keeps all, and returns the number of the save; `wait` as in Checkpoint.save()."""
        if self._found is not None:  # batches() will go on from it, whatever was done since
            return self._kept.save(self._kept.load(), wait=wait)
        state = {
            "names": self._names,
            "parts": [_state_of(part) for part in self._parts],
            "epoch": self._epoch,
            "batch": self._batch,
            "begin": self._begin,
            "streams": self._streams(),
            "loader": self._loader.state_dict() if _has_state(self._loader) else None,
            "gradients": [_gradients(part) for part in self._parts] if self._gradients else None,
        }
        return self._kept.save(state, wait=wait)

    def close(self) -> None:
        """Waits, and lets other processes have the directory."""
        self._kept.close()

    def __enter__(self) -> TrainState:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _resumed(self, found: dict[str, Any]) -> Iterator[Any]:
        self._begin, self._batch = found["begin"], found["batch"]
        if found["loader"] is not None:
            self._loader.load_state_dict(found["loader"])
            iterator = iter(self._loader)
        else:
            self._set_streams(self._begin)
            iterator = iter(self._loader)
            for number in range(found["batch"]):
                if next(iterator, self) is self:
                    raise WrongState(
                        f"the loader has {number} batches, and {found['batch']} were done of this"
                        " epoch; use the data that it had"
                    )
        self._loaded()  # whatever the program did to the parts before it asked for batches
        self._set_streams(found["streams"])
        resumed: Iterator[Any] = iterator
        return resumed

    def _check(self, found: Any) -> None:
        if not isinstance(found, dict) or "streams" not in found or "names" not in found:
            raise WrongShape("the directory has a Checkpoint of the program's; use another one")
        if found["names"] != self._names:
            raise WrongShape(
                f"{', '.join(found['names'])} were kept, not {', '.join(self._names)}; give the"
                " same parts in the same order, or use another directory"
            )

    def _loaded(self) -> dict[str, Any] | None:
        """The newest state goes into the parts, straight to where their tensors are, and nothing
        else refers to that. Returns the rest of it."""
        try:
            found = self._kept._load_to(Places(self._parts))
        except NoSpace:  # on a GPU, for tensors beside those of the parts
            found = self._kept.load()
        if found is None:
            return None
        self._check(found)
        self._load(found)
        return {key: of for key, of in found.items() if key not in ("parts", "gradients")}

    def _load(self, found: dict[str, Any]) -> None:
        for part, state in zip(self._parts, found["parts"]):
            _load_into(part, state)
        if self._gradients and found["gradients"] is not None:
            for part, gradients in zip(self._parts, found["gradients"]):
                _set_gradients(part, gradients)

    def _streams(self) -> dict[str, Any]:
        return {
            "random": random.getstate(),
            "numpy": np.random.get_state(legacy=False),
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None,
            "loader": [of.get_state() for of in _generators(self._loader)],
        }

    def _set_streams(self, streams: dict[str, Any]) -> None:
        random.setstate(streams["random"])
        np.random.set_state(streams["numpy"])
        torch.set_rng_state(streams["torch"])
        if streams["cuda"] is not None and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(streams["cuda"])
        for of, state in zip(_generators(self._loader), streams["loader"]):
            of.set_state(state)


def _has_state(part: Any) -> bool:
    return hasattr(part, "state_dict") and hasattr(part, "load_state_dict")


def _is_loader(part: Any) -> bool:
    return isinstance(part, DataLoader) or (_has_state(part) and hasattr(part, "batch_sampler"))


def _checked(part: Any) -> str:
    """Its name; raises InvalidArgument."""
    if not (_has_state(part) or type(part) is dict or isinstance(part, torch.Generator)):
        raise InvalidArgument(
            f"{type(part).__name__} has no state_dict() and load_state_dict(); give what has, a"
            " torch.Generator, a dict of plain values, or a DataLoader"
        )
    return type(part).__name__


def _state_of(part: Any) -> Any:
    if isinstance(part, torch.Generator):
        return part.get_state()
    return part if type(part) is dict else part.state_dict()


def _load_into(part: Any, state: Any) -> None:
    if isinstance(part, torch.Generator):
        part.set_state(state)
    elif type(part) is dict:
        part.clear()
        part.update(state)
    else:
        part.load_state_dict(state)


def _gradients(part: Any) -> dict[str, Any] | None:
    if not isinstance(part, torch.nn.Module):
        return None
    return {name: of.grad for name, of in part.named_parameters()}


def _set_gradients(part: Any, gradients: dict[str, Any] | None) -> None:
    if gradients is None:
        return
    for name, of in part.named_parameters():
        of.grad = None if gradients[name] is None else gradients[name].to(of.device)


def _samplers(loader: Any) -> list[Any]:
    batches = getattr(loader, "batch_sampler", None)
    found = [getattr(loader, "sampler", None), batches, getattr(batches, "sampler", None)]
    return [of for of in {id(of): of for of in found}.values() if of is not None]


def _generators(loader: Any) -> list[torch.Generator]:
    found = [getattr(of, "generator", None) for of in (loader, *_samplers(loader))]
    distinct = {id(of): of for of in found}.values()
    return [of for of in distinct if isinstance(of, torch.Generator)]
