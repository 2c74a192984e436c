# SPDX-License-Identifier: BSD-3-Clause
"""The command `perdure` of a clone: the product's, with the verbs that measure and show it."""

from __future__ import annotations

from perdure import cli
from perdure.exit_codes import EXITS as PRODUCT
from perdure.exit_codes import FAILED, Exit

_PART = "Of a clone"
VERBS = {
    **cli.VERBS,
    "demo": cli.Verb(
        "perdure_bench.demo.command", "demo", _PART, "Kill a solver in a commit, restart it.",
        "perdure demo --picture demo.png"),
    "bench": cli.Verb(
        "perdure_bench.command", "bench", _PART, "Measure, and compare with the targets.",
        "perdure bench hpccg --quick", {"no_args_is_help": True}),
}  # fmt: skip
EXITS = (
    *PRODUCT,
    Exit(FAILED, "failed, or a target of a full run was missed", ("bench",)),
    Exit(FAILED, "the answers differ, or a run failed", ("demo",)),
)


def main() -> None:
    """What the script `perdure` in the root of the clone starts."""
    cli.main(VERBS)
