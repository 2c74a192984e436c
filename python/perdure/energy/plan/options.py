"""The options of `perdure energy plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perdure.energy.plan.settings import FORMULAS, OBJECTIVES, RULES


def _text(meta: str, help_: str, default: str | bool = False):
    return typer.Option(metavar=meta, help=help_, show_default=default)


Profiles = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[PROFILE…]", help="Of perdure energy profile, one for each level."),
]
Size = Annotated[str | None, _text("SIZE", "Of a node's checkpoint, as 64GB or 64GiB.")]
Mtbf = Annotated[str | None, _text("TIME", "Mean time between failures, as 14.66h.")]
Rate = Annotated[str | None, _text("RATE", "Of failures instead, as 1.9e-5/s or 2/d.")]
Failures = Annotated[
    Path | None, _text("FILE", "Estimate it from a list of failures (CSV: time or interval).")
]
Merge = Annotated[
    str, _text("TIME", "Failures that soon after another one are the same.", True)
]
Weibull = Annotated[
    float | None, _text("SHAPE", "Failures are Weibull; below 1 they cluster.")
]
Power = Annotated[str | None, _text("POWER", "Of a node that computes, as 471W.")]
WriteTime = Annotated[str | None, _text("TIME,…", "Of a checkpoint, as 130s.")]
ReadTime = Annotated[str | None, _text("TIME,…", "Of reading one at a restart.")]
WriteBandwidth = Annotated[str | None, _text("RATE,…", "Instead, as 510MB/s.")]
ReadBandwidth = Annotated[str | None, _text("RATE,…", "Instead, as 735MB/s.")]
WritePower = Annotated[str | None, _text("POWER,…", "Of a node that writes one.")]
ReadPower = Annotated[str | None, _text("POWER,…", "Of a node that reads one.")]
Writers = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, show_default="one for each CPU",
        help="How many write at once, without a profile.",
    ),
]
Downtime = Annotated[
    str, _text("TIME", "From a failure to the restart.", True)
]
DownPower = Annotated[
    str | None, _text("POWER", "Meanwhile.", "as when computing")
]
Overhead = Annotated[
    str | None,
    _text("TIME", "Asynchronous checkpoints: the program waits only so long for each."),
]
FlushPower = Annotated[
    str, _text("POWER", "More than computing, while one is written beside it.", True)
]
Levels = Annotated[
    str | None,
    _text("NAME,…", "Several levels, cheapest first; options with … take a value for each, "
          "- where a profile has it."),
]
Share = Annotated[
    str | None, _text("SHARE,…", "Of the failures that a level is the cheapest remedy for.")
]
Pattern = Annotated[
    str | None, _text("N,…", "Every so many-th checkpoint goes to each level.", "best")
]
Folders = Annotated[str | None, _text("DIR,…", "Where the checkpoints of each level go.")]
Objective = Annotated[
    str, typer.Option(metavar="|".join(OBJECTIVES), help="What is made least.")
]
Formula = Annotated[
    str, typer.Option(metavar="|".join(FORMULAS), help="Split of the time; see explain.")
]
Interval = Annotated[
    str | None,
    _text("|".join((*RULES, "TIME")), "Of work between checkpoints.",
          "optimal; with --formula paper young"),
]
Job = Annotated[str | None, _text("TIME", "Work of the whole job.")]
OtherMachine = Annotated[
    bool, typer.Option("--other-machine", help="Take profiles of another machine.")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the plan there.",
                              show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")]
Plot = Annotated[
    Path | None, _text("FILE", "Draw time and energy against the interval (.png, .svg, .pdf).")
]
Front = Annotated[
    Path | None, _text("FILE", "Draw the plans that no other beats in time and energy.")
]
