# SPDX-License-Identifier: BSD-3-Clause
"""Storage of torch.distributed.checkpoint in pools, one for each process.

    PATH/rank-NNNNN/   blocks of a process (blocks.py)
    PATH/metadata/     blocks of the coordinator: which process has what, in which version

A checkpoint counts when the metadata is committed, after all processes have committed theirs. A
process keeps the version before as well. So a checkpoint that was cut short leaves the one before.
After one a process goes on in a pool of its own next number, as versions in the one that the
metadata refers to would sooner or later take the place of what it refers to. When a checkpoint
counts, the coordinator removes what processes had that took no part in it.

async_save() has the state staged by the writer (staging.py), straight into the pools, and saves it
in a thread of torch's.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint import StorageReader, StorageWriter
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
    WriteItemType,
)
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from perdure.api.errors import Damaged, Error, InvalidArgument, NotFound
from perdure.torch.block_writer import BlockWriter, remove_blocks
from perdure.torch.blocks import Block, Blocks, Place, read_blocks
from perdure.torch.staging import SavesUnderWay, leaves_of, with_leaves

_METADATA = "metadata"
# The version that the metadata refers to, and the one after it.
_KEEP = 2
_RANK = re.compile(r"rank-([0-9]{5,})")


class PoolWriter(StorageWriter):
    """For save() and async_save() of torch.distributed.checkpoint:

        writer = perdure.torch.PoolWriter("/mnt/pmem/run")
        dcp.save({"model": model.state_dict()}, storage_writer=writer)

    `path` is one directory that the processes of all nodes share: each looks there for what counts.
    Where they see different ones a save fails on all. Each save takes the place of the one before;
    a checkpoint_id is noted, and not a path. Use the same writer for all saves: it keeps the pools
    open. Options are those of perdure.open().

    async_save() returns when the tensors are copied, into the pool and nowhere else: what they are
    changed to afterwards is in no checkpoint. The next save, of either kind, waits for it first.
    Errors are those of its future. With a stager of torch's own, wait for the future yourself. Not
    with AsyncCheckpointerType.PROCESS, and not with use_collectives=False.
    """

    # torch.distributed.checkpoint.staging.AsyncStager: async_save() stages by the writer then.
    _synchronize_after_execute = False

    def __init__(self, path: str | os.PathLike[str], **options: Any):
        super().__init__()
        self._path, self._options = Path(path), options
        self._own: BlockWriter | None = None
        self._shared: BlockWriter | None = None
        self._rank = 0
        self._label = ""
        self._ranks: set[int] = set()  # of the processes that take part
        self._saves = SavesUnderWay()
        self._failure: Error | OSError | RuntimeError | None = None  # of the last staging

    def __getstate__(self) -> Any:
        raise InvalidArgument(
            "PoolWriter is of one process; use AsyncCheckpointerType.THREAD, which it does not slow"
        )

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Notes the name of the next checkpoint; one that is under way keeps its own."""
        self._saves.enter()
        self._label = "" if checkpoint_id is None else os.fspath(checkpoint_id)

    @property
    def should_synchronize_after_execute(self) -> bool:
        """False: stage() has copied everything."""
        return False

    def synchronize_staging(self) -> None:
        """Nothing is left to wait for."""

    def stage(self, state_dict: Mapping[str, Any]) -> dict[str, Any]:
        """For async_save(): the state with copies of its tensors, of this process's pool. Waits for
        the asynchronous save before. What fails in the pool or on a GPU fails in the save, where
        all processes learn of it: those that stage theirs wait for this one there."""
        self._saves.wait()
        self._failure = None
        leaves = leaves_of(state_dict)
        try:
            own = self._opened()
            own.go_on_from(_places(self._path).get(self._rank))
            copies = own.stage(leaves)
        except (Error, OSError, RuntimeError) as error:  # the last of them is torch's, of a GPU
            self._failure = error
            copies = [torch.empty(leaf.tensor.shape, dtype=leaf.tensor.dtype) for leaf in leaves]
        return self._saves.begin(with_leaves(state_dict, copies))

    def storage_meta(self) -> Any:
        """None; what a save asks for before it looks at the state."""
        self._saves.enter()
        if self._saves.is_staged and self._own is not None:
            self._own.settle()
        return super().storage_meta()

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Opens what this process wrote last."""
        if not kwargs.get("use_collectives", True):
            raise InvalidArgument(
                "use_collectives=False would make a checkpoint of each process; leave it out"
            )
        self._saves.enter()
        self._opened()
        if is_coordinator and self._shared is None:
            self._shared = BlockWriter(self._path / _METADATA, self._options, _KEEP)
            self._shared.resume()
            (self._path / _METADATA).mkdir(parents=True, exist_ok=True)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """With the number of this process."""
        return dataclasses.replace(plan, storage_data=self._rank)

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """As they are. A planner that keeps plans leaves out those that are as they were."""
        self._ranks = {plan.storage_data for plan in plans if plan.storage_data is not None}
        if len(self._ranks) != len(plans):
            self._ranks.update(range(_rank_count()))
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Copies this process's items into its pool, unless they are there, and commits them."""
        assert self._own is not None
        if self._saves.is_staged and self._failure is not None:
            raise self._failure
        self._check_shared()
        blocks = []
        for item in plan.items:
            data = planner.resolve_data(item)
            if item.type == WriteItemType.BYTE_IO:
                assert isinstance(data, io.BytesIO)
                blocks.append(Block(_key(item.index), data.getvalue()))
            else:
                assert isinstance(data, torch.Tensor)
                blocks.append(Block(_key(item.index), data.detach()))
        if not self._saves.is_staged:
            self._own.go_on_from(_places(self._path).get(self._rank))
        self._own.begin(blocks, {"label": self._label})
        place = self._own.wait()
        assert place is not None
        data_of_all = [self._rank, place.layout, place.version]
        results = [
            WriteResult(item.index, block.size_bytes, data_of_all)
            for item, block in zip(plan.items, blocks)
        ]
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """From here on the checkpoint counts."""
        assert self._shared is not None
        places = [[result.index, result.storage_data] for of_one in results for result in of_one]
        text = json.dumps(_encode_metadata(metadata, places)).encode()
        self._shared.begin([Block(_METADATA, text)], {"label": self._label})
        self._shared.wait()
        self._shared.remove_others()
        self._remove_ranks(self._ranks)
        self._label = ""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Any name will do."""
        return isinstance(checkpoint_id, (str, os.PathLike))

    def close(self) -> None:
        """Waits for an asynchronous save, and closes the pools."""
        self._saves.wait()
        for writer in (self._own, self._shared):
            if writer is not None:
                writer.close()
        self._own = self._shared = None

    def _opened(self) -> BlockWriter:
        if self._own is None:
            self._rank = _rank()
            self._own = BlockWriter(_folder(self._path, self._rank), self._options, _KEEP)
            self._own.resume()
        return self._own

    def _check_shared(self) -> None:
        """In another directory than the coordinator's this process would find no checkpoint that
        counts, and take the room of the newest one for the next."""
        if not (self._path / _METADATA).is_dir():
            raise InvalidArgument(
                f"{self._path} has no folder {_METADATA}, which the coordinator has made in "
                "its own: the processes see different directories; give one that all nodes share"
            )

    def _remove_ranks(self, there: set[int]) -> None:
        """What others had is of no use: the checkpoint has nothing of it."""
        for folder in self._path.iterdir():
            number = _RANK.fullmatch(folder.name)
            if number and int(number[1]) not in there:
                remove_blocks(folder)


class PoolReader(StorageReader):
    """For load() of torch.distributed.checkpoint, from what PoolWriter wrote at `path`, by any
    number of processes that see the pools of all that wrote:

        dcp.load(state, storage_reader=perdure.torch.PoolReader("/mnt/pmem/run"))
    """

    def __init__(self, path: str | os.PathLike[str]):
        super().__init__()
        self._path = Path(path)
        self._read: dict[int, Blocks] = {}
        self._places: dict[MetadataIndex, Any] = {}

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """There is one checkpoint, whatever its name."""

    def has_checkpoint(self) -> bool:
        """Whether there is one that was finished; else load() would fail. Local."""
        return _metadata_text(self._path) is not None

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Of the newest checkpoint that counts. Raises NotFound, Damaged."""
        text = _metadata_text(self._path)
        if text is None:
            raise NotFound(f"{self._path} has no checkpoint that was finished")
        return _decode_metadata(text, str(self._path))

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Takes note of which rank has what, and forgets what earlier loads have read."""
        self._read = {}
        self._places = dict(metadata.storage_data)

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """As it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """As they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads what this process needs, from the pools of all that wrote it."""
        for item in plan.items:
            blocks = self._blocks_of(item.storage_index)
            key = _key(item.storage_index)
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(blocks.data(key)))
                continue
            target = planner.resolve_tensor(item).detach()
            blocks.fill(key, item.storage_offsets, item.lengths, target)
            planner.commit_tensor(item, target)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Any name will do."""
        return isinstance(checkpoint_id, (str, os.PathLike))

    def _blocks_of(self, index: MetadataIndex) -> Blocks:
        if index not in self._places:
            raise NotFound(f"{self._path}: the checkpoint has no {index.fqn}")
        rank, layout, version = self._places[index]
        if rank not in self._read:
            found = read_blocks(_folder(self._path, rank), Place(layout, version))
            if found is None:
                raise NotFound(f"{_folder(self._path, rank)}, which the checkpoint names, is gone")
            self._read[rank] = found
        return self._read[rank]


def _rank() -> int:
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def _rank_count() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def _folder(path: Path, rank: int) -> Path:
    return path / f"rank-{rank:05d}"


def _key(index: MetadataIndex) -> str:
    place = "" if index.offset is None else ",".join(str(first) for first in index.offset)
    return f"{index.fqn}@{place}"


def _metadata_text(path: Path) -> bytes | None:
    found = read_blocks(path / _METADATA)
    return None if found is None else found.data(_METADATA)


def _places(path: Path) -> dict[int, Place]:
    """By process: what the last checkpoint that counts refers to."""
    text = _metadata_text(path)
    if text is None:
        return {}
    places = _decode_metadata(text, str(path)).storage_data.values()
    return {rank: Place(layout, version) for rank, layout, version in places}


def _encode_metadata(metadata: Metadata, places: list[list[Any]]) -> dict[str, Any]:
    items: dict[str, Any] = {}
    for name, item in metadata.state_dict_metadata.items():
        if isinstance(item, TensorStorageMetadata):
            items[name] = {
                "dtype": str(item.properties.dtype).removeprefix("torch."),
                "requires_grad": item.properties.requires_grad,
                "size": list(item.size),
                "chunks": [[list(chunk.offsets), list(chunk.sizes)] for chunk in item.chunks],
            }
        else:
            items[name] = None
    return {
        "items": items,
        "planner": _encode_planner_data(metadata.planner_data),
        "places": [[[i.fqn, _listed(i.offset), i.index], data] for i, data in places],
    }


def _listed(offset: Any) -> list[int] | None:
    return None if offset is None else list(offset)


def _encode_planner_data(data: Any) -> Any:
    """That of torch's own planner: the path of each item in the state dict."""
    if data is None:
        return None
    if isinstance(data, Mapping) and all(
        isinstance(path, (tuple, list)) and all(isinstance(key, (str, int)) for key in path)
        for path in data.values()
    ):
        return [[name, list(path)] for name, path in data.items()]
    raise InvalidArgument(
        "the planner of this checkpoint notes what perdure.torch can't keep; use DefaultSavePlanner"
    )


def _decode_metadata(text: bytes, source: str) -> Metadata:
    try:
        found = json.loads(text)
        items = {name: _decode_item(item) for name, item in found["items"].items()}
        planner = found["planner"]
        paths = None if planner is None else {name: tuple(path) for name, path in planner}
        places = {
            MetadataIndex(fqn, offset, index): (int(data[0]), int(data[1]), int(data[2]))
            for (fqn, offset, index), data in found["places"]
        }
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise Damaged(f"{source}: the metadata of the checkpoint can't be read") from None
    return Metadata(state_dict_metadata=items, planner_data=paths, storage_data=places)


def _decode_item(item: Any) -> TensorStorageMetadata | BytesStorageMetadata:
    if item is None:
        return BytesStorageMetadata()
    dtype = getattr(torch, str(item["dtype"]))
    if not isinstance(dtype, torch.dtype):
        raise TypeError
    chunks = [
        ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes))
        for offsets, sizes in item["chunks"]
    ]
    properties = dataclasses.replace(
        TensorProperties(dtype=dtype), requires_grad=bool(item["requires_grad"])
    )
    return TensorStorageMetadata(properties, torch.Size(item["size"]), chunks)
