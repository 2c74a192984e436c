"""The picture of `perdure bench ipv`: what a version of each iteration costs the programs."""

from __future__ import annotations

from pathlib import Path

from perdure.bench.facts import Fact
from perdure.bench.hpccg_plot import GREY, finish

# Okabe and Ito's colours, told apart with every kind of colour vision.
_COLOURS = {
    "disk": "#000000",
    "block": "#999999",
    "clflush": "#D55E00",
    "par-clflush": "#E69F00",
    "bypass": "#F0E442",
    "ipv-alone": "#56B4E9",
    "ipv": "#0072B2",
}
_HIGHEST = 2.0  # bars above leave the picture and say their value


def draw(facts: list[Fact], title: str, file: Path) -> None:
    """Writes the figure; raises ValueError if there is nothing to draw."""
    from matplotlib.backends import backend_agg  # noqa: F401  no display is needed
    from matplotlib.figure import Figure

    ratios = [fact for fact in facts if fact.metric == "overhead_ratio" and "way" in fact.more]
    if not ratios:
        raise ValueError("there are no run times to draw")
    programs = list(dict.fromkeys(fact.case.split("-")[0] for fact in ratios))
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    note = (
        "A version each iteration, on memory of 1/8 of DRAM's bandwidth (disk and block: as they "
        "are). Medians; lines: quartiles."
    )
    figure.supxlabel(note, x=0.01, ha="left", fontsize=8, color=GREY)
    axis = figure.subplots()
    ways = [way for way in _COLOURS if any(_shown(fact, way) for fact in ratios)]
    width = 0.84 / len(ways)
    for column, way in enumerate(ways):
        _draw_way(axis, ratios, programs, way, column - (len(ways) - 1) / 2, width)
    axis.axhline(1, color=GREY, linewidth=0.8)
    axis.set_xticks(range(len(programs)), programs, fontsize=9)
    top = max(min(_HIGHEST, fact.high or fact.value) for fact in ratios)
    axis.set_ylim(0.8, top + 0.35)  # room for values and the legend
    axis.legend(fontsize=8, frameon=False, ncols=len(ways), loc="upper center")
    finish(axis)
    figure.savefig(file, dpi=150)


def _shown(fact: Fact, way: str) -> bool:
    return fact.more["way"] == way and (
        fact.more["emulated"] == "dram-1/8" or way in ("disk", "block")
    )


def _draw_way(axis, facts: list[Fact], programs: list[str], way: str, shift: float, width: float):
    colour = _COLOURS[way]
    chosen = {fact.case.split("-")[0]: fact for fact in facts if _shown(fact, way)}
    for place, program in enumerate(programs):
        fact = chosen.get(program)
        if fact is None:
            continue
        at = place + shift * width
        label = way if program == next(iter(chosen)) else None
        axis.bar(at, min(fact.value, _HIGHEST) - 0.8, width * 0.9, 0.8, color=colour, label=label)
        if fact.value > _HIGHEST:
            axis.annotate(
                f"{fact.value:.3g}", (at, _HIGHEST), (0, 2), textcoords="offset points",
                ha="center", fontsize=6, rotation=90,
            )  # fmt: skip
        else:
            axis.plot([at, at], [fact.low, min(fact.high, _HIGHEST)], color="black", linewidth=0.8)
