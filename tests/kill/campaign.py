#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a campaign of `perdure bench` in its quick form.

    campaign.py kill|kill_windows|kill_cache|kill_nodes

Fails if a restart was wrong or too few ranks were killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PERDURE = Path(__file__).resolve().parents[2] / "perdure"
KILLS = {"kill": 25, "kill_windows": 30, "kill_cache": 20, "kill_nodes": 12}
FAULTS = ("wrong", "lost", "refused", "leftovers")


def main() -> int:
    name = sys.argv[1]
    command = [str(PERDURE), "bench", name, "--quick", "--json"]
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
