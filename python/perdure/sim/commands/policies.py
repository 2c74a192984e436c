# SPDX-License-Identifier: BSD-3-Clause
"""The command `perdure sim policies`."""

from __future__ import annotations

from perdure.core import load_core
from perdure.documents import fields, print_json
from perdure.option_groups import AsJson
from perdure.screen import bold, console

_OPTION = ("name", "default_value", "description", "choices", "least", "most")
_PRESET = ("name", "description", "dram", "mram", "flash")


def policies(as_json: AsJson = False) -> None:
    """List the policies with their options, and the presets of devices."""
    core = load_core()
    known, presets = core.sim_policies(), core.device_presets()
    if as_json:
        document = {
            "policies": [{**fields(each, ("name", "description", "is_bound")),
                          "options": [fields(option, _OPTION) for option in each.options]}
                         for each in known],
            "presets": [fields(each, _PRESET) for each in presets],
        }
        print_json("sim-policies", document)
        return
    out = console()
    for each in known:
        out.print(bold(each.name, f": {each.description}"))
        for option in each.options:
            choices = f" ({', '.join(option.choices)})" if option.choices else ""
            out.print(f"  {option.name}={option.default_value}{choices}: {option.description}")
    out.print()
    for each in presets:
        out.print(bold(f"preset {each.name}", f": {each.description}; DRAM {each.dram}, "
                       f"MRAM {each.mram}, flash {each.flash}"))
