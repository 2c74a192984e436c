# SPDX-License-Identifier: BSD-3-Clause
"""Which powers `perdure bench matpower` makes, and what is claimed of them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

STOCK, CACHED, ASYNC = "stock", "cached", "async"
SWEPT_POWERS = (2, 8)  # of the sweeps over nodes and ranks


@dataclass(frozen=True)
class Size:
    """How much is run. Targets are claimed only of the full form."""

    nodes: int
    powers: tuple[int, ...]
    swept_nodes: tuple[int, ...]  # with `nodes` among them
    ranks: int
    swept_ranks: tuple[int, ...]  # with `ranks` among them
    rounds: int
    claims: bool


QUICK = Size(600, (2, 8), (300, 600), 4, (1, 4), 2, False)
FULL = Size(4000, (2, 4, 8, 16), (1000, 2000, 4000, 6000), 4, (1, 4, 9, 16), 3, True)


@dataclass(frozen=True)
class Setting:
    """A power to be made; `names` are the cases whose facts it gives."""

    names: tuple[str, ...]
    nodes: int
    power: int
    ranks: int
    delete_on_close: bool = False
    synced: bool = False  # MPI_File_sync after each product
    variants: tuple[str, ...] = (STOCK, CACHED)

    @property
    def about(self) -> dict:
        """What a fact says of it."""
        return {
            "nodes": self.nodes,
            "power": self.power,
            "ranks": self.ranks,
            "delete_on_close": self.delete_on_close,
            "sync": "each" if self.synced else "never",
        }

    def options(self) -> list[str]:
        """Of the program."""
        words = ["--nodes", str(self.nodes), "--power", str(self.power)]
        words += ["--sync", "each" if self.synced else "never"]
        return [*words, "--delete-on-close" if self.delete_on_close else "--reread"]


def settings_of(size: Size) -> list[Setting]:
    """Every power of a round, in the order of its facts."""
    settings = []
    for mode in ("off", "on"):
        for power in size.powers:
            names = [f"p{power}-doc-{mode}"]
            swept = power in SWEPT_POWERS
            if swept:
                names.append(f"p{power}-n{size.nodes}-doc-{mode}")
            if swept and mode == "off":
                names.append(f"p{power}-ranks{size.ranks}-doc-off")
            variants = (STOCK, CACHED) if mode == "on" else (STOCK, CACHED, ASYNC)
            settings.append(
                Setting(
                    tuple(names),
                    size.nodes,
                    power,
                    size.ranks,
                    delete_on_close=mode == "on",
                    variants=variants,
                )
            )
    return settings + _sweeps(size)


def _sweeps(size: Size) -> list[Setting]:
    settings = []
    for power in SWEPT_POWERS:
        for mode in ("off", "on"):
            for nodes in size.swept_nodes:
                if nodes != size.nodes:
                    name = f"p{power}-n{nodes}-doc-{mode}"
                    settings.append(Setting((name,), nodes, power, size.ranks, mode == "on"))
        for ranks in size.swept_ranks:
            if ranks != size.ranks:
                name = f"p{power}-ranks{ranks}-doc-off"
                settings.append(Setting((name,), size.nodes, power, ranks))
    settings.append(Setting(("p8-synced-doc-off",), size.nodes, 8, size.ranks, synced=True))
    return settings


def target_of(setting: Setting, size: Size, file_system: str) -> float | None:
    """Of time_ratio: from power 8 on at most 0.6, with delete-on-close always below 1.

    Claimed only of GlusterFS and of the number of ranks that the measurement is about.
    """
    if not size.claims or file_system != "glusterfs":
        return None
    if setting.ranks != size.ranks or setting.synced:
        return None
    if setting.power >= 8:
        return 0.6
    return 1.0 if setting.delete_on_close else None
