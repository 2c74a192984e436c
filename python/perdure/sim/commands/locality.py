# SPDX-License-Identifier: BSD-3-Clause
"""The command `perdure sim locality`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from perdure.core import load_core
from perdure.documents import print_json
from perdure.option_groups import AsJson
from perdure.screen import console, say
from perdure.sim.locality import Concentration, concentration_of
from perdure.sim.options import Plot
from perdure.sim.quantities import mib_text
from perdure.tables import table

SHARES = (0.5, 0.65, 0.9, 0.98, 0.99)


def locality(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE…", help="The files of one or "
                                                 "several traces.")],
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """How many pages get most of the accesses: Figure 4 of the paper.

    Example: perdure sim locality cg.ptrace mg.ptrace --plot locality.png
    """
    curves = {trace: concentration_of(trace) for trace in traces}
    rows = [_row(trace, curve) for trace, curve in curves.items()]
    if plot:
        from perdure.sim.plot import draw_locality

        draw_locality({trace.name: curve for trace, curve in curves.items()}, plot)
        say(f"drawn: {plot}", err=True)
    if as_json:
        print_json("sim-locality", {"traces": rows})
    else:
        _print_rows(rows)


def _row(trace: Path, curve: Concentration) -> dict[str, Any]:
    summary = load_core().summarise_trace(str(trace))
    return {
        "trace": str(trace), "pages": summary.pages, "page_bytes": summary.page_bytes,
        **{f"pages_for_{share:.0%}": curve.pages_for(share) for share in SHARES},
    }


def _print_rows(rows: list[dict[str, Any]]) -> None:
    shown = table("trace", "touched", *(f"{share:.0%} on" for share in SHARES), left=("trace",))
    for row in rows:
        shown.add_row(
            Path(row["trace"]).name,
            mib_text(row["pages"] * row["page_bytes"]),
            *(f"{row[f'pages_for_{share:.0%}']:.1%}" for share in SHARES),
        )
    console().print(shown)
