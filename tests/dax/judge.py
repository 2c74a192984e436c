# SPDX-License-Identifier: BSD-3-Clause
"""What a guest's console says about a restart, against what earlier consoles had acknowledged.

A line that the guest printed may still have been in its serial line when it died. So what was read
is a lower bound: a restart may be later than it, never earlier.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# In what order words are looked for, and what they are counted as.
FAULTS = ("lost", "wrong", "refused")
KERNEL_FAULT = re.compile(rb"(EXT4-fs error|Oops|BUG:|Call Trace|Kernel panic)[^\n]*")
EXIT_CODES = {  # by program, what they say at their top
    "dax_job": {2: "wrong"},
    "ipv_kill_job": {2: "wrong", 3: "lost"},
    "pool_job_mpich": {4: "wrong", 5: "lost"},
}


@dataclass
class Verdict:
    """Of one run of a guest."""

    restarted: int | None = None  # from which version or step; None: it did not come that far
    persistence: str = ""
    acknowledged: int = 0  # the newest that must be there from now on
    faults: dict[str, str] = field(default_factory=dict)  # FAULTS, and what was seen


def judge(text: bytes, program: str, acknowledged: int, must_restart: bool) -> Verdict:
    """What a run says that followed on `acknowledged`; must_restart: nobody cut it short before."""
    verdict = Verdict(acknowledged=acknowledged)
    if begun := re.search(rb"^restarted (\d+) ([a-z ]+)\n", text, re.M):
        verdict.restarted, verdict.persistence = int(begun[1]), begun[2].decode()
        verdict.acknowledged = max(acknowledged, verdict.restarted)
        if verdict.restarted < acknowledged:
            verdict.faults["lost"] = f"begins at {verdict.restarted}, acknowledged {acknowledged}"
        if verdict.persistence != "power failure":
            verdict.faults["wrong"] = f"the pool survives only: {verdict.persistence}"
    numbers = [int(number) for number in re.findall(rb"^committed (\d+)\n", text, re.M)]
    verdict.acknowledged = max([verdict.acknowledged, *numbers])
    if found := KERNEL_FAULT.search(text):
        verdict.faults["wrong"] = found[0].decode(errors="replace")
    if ended := re.search(rb"^ended (\d+)\n", text, re.M):
        if code := int(ended[1]):
            fault = EXIT_CODES[program].get(code, "refused")
            verdict.faults.setdefault(fault, f"exit code {code}: {last_words(text, ended.start())}")
    elif must_restart and verdict.restarted is None:
        verdict.faults["refused"] = f"no restart: {last_words(text, len(text))}"
    return verdict


def last_words(text: bytes, end: int) -> str:
    """The line before a position."""
    lines = text[:end].decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "(nothing)"
