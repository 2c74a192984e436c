"""The command `perdure` of a clone: the product's, with the verbs that measure and show it."""

from __future__ import annotations

from perdure import cli

VERBS = {
    **cli.VERBS,
    "demo": cli.Verb("perdure_bench.demo.command", "demo"),
    "bench": cli.Verb("perdure_bench.command", "bench", {"no_args_is_help": True}),
}


def main() -> None:
    """What the script `perdure` in the root of the clone starts."""
    cli.main(VERBS)
