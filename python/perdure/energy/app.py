# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure energy`: a line for each of its commands.

A job's script calls those of the node; they start without numpy, which those of plans need.
"""

from __future__ import annotations

from perdure.verbs import Group, Verb

_ONE = {"no_args_is_help": True}
_COMMAND = _ONE | {"context_settings": {"allow_interspersed_args": False}}
_PLANS, _NODE = "Plans", "This node"
app = Group(
    "How often to checkpoint, at which CPU frequency and with how many writers: measure, plan, "
    "simulate, apply.",
    {
        "plan": Verb(
            "perdure.energy.plan.command", "plan", _PLANS,
            "How often to checkpoint, and at which clock.",
            "perdure energy plan disk.json --size 64GB --mtbf 14.66h -o plan.json", _ONE),
        "simulate": Verb(
            "perdure.energy.plan.simulate_command", "simulate", _PLANS,
            "Play a plan with random failures.",
            "perdure energy simulate plan.json", _ONE),
        "explain": Verb(
            "perdure.energy.plan.explain_command", "explain", _PLANS,
            "Why a plan has its settings and interval.",
            "perdure energy explain plan.json", _ONE),
        "probe": Verb(
            "perdure.energy.node_commands", "probe", _NODE,
            "What can be read and set: meters, clocks, drives.",
            "perdure energy probe"),
        "profile": Verb(
            "perdure.energy.profile.commands", "app", _NODE,
            "Measure a device: throughput, power and J per MB.",
            "perdure energy profile /scratch -o scratch.json"),
        "apply": Verb(
            "perdure.energy.node_commands", "apply", _NODE,
            "Cap the clock.",
            "perdure energy apply --freq 1.4GHz --pid $$", _ONE),
        "restore": Verb(
            "perdure.energy.node_commands", "restore", _NODE,
            "Take away caps, also of processes that have ended.",
            "perdure energy restore"),
        "run": Verb(
            "perdure.energy.node_commands", "run", _NODE,
            "Run a command with the clock capped.",
            "perdure energy run --freq 1.4GHz -- ./write-checkpoint", _COMMAND),
    },
)  # fmt: skip
