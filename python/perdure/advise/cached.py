# SPDX-License-Identifier: BSD-3-Clause
"""Whether the files of a recorded run are worth caching: cache/predict.py with what is measured."""

from __future__ import annotations

import os
from pathlib import Path

from perdure.cache.calibrate import (
    NotCalibrated,
    calibrate,
    default_file,
    file_system_rate,
    load,
)
from perdure.cache.predict import Machine, Prediction, Target, advice, by_file, predict
from perdure.cache.record import NoRecord, Run

Predicted = list[tuple[Prediction, str]]


def predict_files(run: Run, pools: Path) -> tuple[Predicted, str]:
    """The prediction of each file with its advice; why there is none, if there is none."""
    if not run.files:
        return [], ""
    if any(use.cached for use in run.files):
        return [], "its files were cached already"
    if any(use.nodes > 1 for use in run.files):
        return [], "it ran on several nodes: perdure cache predict --link says what a cache saves"
    try:
        machine = _machine(run, pools)
        rate, _ = file_system_rate(None, machine, run)
    except (NotCalibrated, NoRecord) as failure:
        return [], str(failure)
    found = by_file(predict(use, machine, Target(), rate) for use in run.files)
    last = {use.path: use for use in run.files}
    return [(one, advice(one, last[one.path])) for one in found], ""


def _machine(run: Run, pools: Path) -> Machine:
    """The cache's constants, measured beside the file with most calls; else those that are kept."""
    busiest = max(run.files, key=lambda use: use.calls)
    folder = Path(os.path.dirname(busiest.path))
    ranks = max(min(busiest.ranks, os.cpu_count() or 1), 1)
    try:
        return calibrate(folder, 3, pools, ranks)
    except NotCalibrated:
        return load(default_file())


