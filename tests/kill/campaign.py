#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a campaign of `perdure bench` in its quick form.

    campaign.py kill|kill_windows|kill_cache|kill_nodes [SEED]

The seed is another one each time, and printed. Fails if a restart was wrong or too few ranks were
killed.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

PERDURE = Path(__file__).resolve().parents[2] / "perdure"
KILLS = {"kill": 12, "kill_windows": 24, "kill_cache": 12, "kill_nodes": 12}
FAULTS = ("wrong", "lost", "refused", "leftovers")


def main() -> int:
    name, *given = sys.argv[1:]
    seed = given[0] if given else str(random.randrange(2**32))
    command = [str(PERDURE), "bench", name, "--quick", "--json", "--seed", seed]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    sys.stdout.write(done.stdout)
    facts = [json.loads(line) for line in done.stdout.splitlines()]
    total = {fact["metric"]: fact["value"] for fact in facts if fact["case"] == "all"}
    print(f"{total}, exit code {done.returncode}")
    if done.returncode != 0 or total.get("kills", 0) < KILLS[name]:
        return 1
    return 1 if any(total[metric] != 0 for metric in FAULTS) else 0


if __name__ == "__main__":
    sys.exit(main())
