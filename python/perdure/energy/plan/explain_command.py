# SPDX-License-Identifier: BSD-3-Clause
"""`perdure energy explain`: why a plan is as it is, and where the paper's formulas differ."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from perdure.documents import print_json
from perdure.energy import quantities as q
from perdure.energy.documents import Section
from perdure.energy.formulas import model
from perdure.energy.plan.file import ReadPlan, read_plan
from perdure.energy.plan.options import PlanFile
from perdure.energy.profile.file import Setting, setting_of
from perdure.option_groups import AsJson
from perdure.screen import Screen, bold, console
from perdure.tables import table


def explain(plan: PlanFile, as_json: AsJson = False) -> None:
    """Why a plan has its settings and interval, and where the paper's formulas differ.

    Example: perdure energy explain plan.json
    """
    read = read_plan(plan)
    document = {
        "settings": [_why(read, level, op) for level in read.whole.sections("choice")
                     for op in ("write", "read")],
        "interval": _interval(read),
        "paper": _paper(read),
    }
    if as_json:
        print_json("energy-explain", document)
    else:
        _print(read, document)


def _why(read: ReadPlan, level: Section, op: str) -> dict[str, Any]:
    """The reason of one setting, in words, with the numbers it rests on."""
    why = level.section(op)
    keys = ("chosen", "best", "unplanned")
    chosen, best, default = (setting_of(why.section(key)) for key in keys)
    rows = {setting_of(each): each for each in why.sections("candidates")}
    alike = why.sections("alike")
    words = _reason(read, chosen, best, default, len(alike), len(rows))
    if why.has("least_J_per_MB"):
        per_MB = setting_of(why.section("least_J_per_MB"))
        if per_MB not in (chosen, best):
            least, own = why.section("least_J_per_MB"), why.section("best")
            joules = [each.number("J_per_MB") for each in (least, own)]
            longer = least.number("seconds") / own.number("seconds", above=True)
            words += (
                f" Least energy per byte has {per_MB.text()} ({joules[0]:.4g} J/MB; "
                f"{joules[1]:.4g} with {best.text()}), but it takes {longer:.3g} times as long, "
                f"and the objective ({read.objective}) also counts what the run waits and loses "
                "meanwhile."
            )
    shown = {key: why.values.get(key) for key in ("chosen", "best", "least_J_per_MB", "unplanned")}
    return {"level": level.values.get("level"), "op": op, **shown, "candidates": len(rows),
            "alike": len(alike), "why": words}


def _reason(
    read: ReadPlan, chosen: Setting, best: Setting, default: Setting, alike: int, candidates: int
) -> str:
    if candidates == 1:
        return "The only one: given by hand, or the profile has no other."
    words = f"{best.text()} has the least {read.objective} of {candidates} settings"
    if chosen == best:
        if alike == 1:
            return f"{words}; the 95 % interval of no other reaches it."
        return (f"{words}; {alike - 1} others can't be distinguished from it (95 % intervals "
                "overlap), but none of them changes less.")
    what = "what would be done anyway" if chosen == default else "closer to what is done anyway"
    return (f"{words}, but {chosen.text()} can't be distinguished from it (95 % intervals "
            f"overlap), and is {what}: a gain that can't be seen is not worth a change.")


def _interval(read: ReadPlan) -> dict:
    """The rules for the interval, and what each costs; null where there are several levels."""
    if len(read.every) > 1:
        return {"chosen_s": read.work_s, "rules": None}
    machine = read.machine
    rules = {
        "Young": float(model.young_work(machine)),
        "Daly": float(model.daly_work(machine)),
        "time optimum": float(model.time_optimal_work(machine)),
    }
    if read.known:
        rules["energy optimum"] = float(model.energy_optimal_work(machine))
    works = {name: max(work, machine.overlap_s) for name, work in rules.items()}
    return {
        "chosen_s": read.work_s,
        "rules": {
            name: {
                "interval_s": work,
                "time_per_work": float(model.time_per_work(work, machine)),
                "energy_per_work_W": float(model.epe(work, machine)) if read.known else None,
            }
            for name, work in works.items()
        },
    }


def _paper(read: ReadPlan) -> dict:
    """Both splits at the plan's interval; what the paper has no formula for is named."""
    missing = [what for is_so, what in (
        (len(read.every) > 1, "several levels"),
        (not read.law.memoryless, "failures that are not exponential"),
        (read.machine.latency_s is not None, "asynchronous checkpoints"),
        (read.machine.downtime_s > 0, "downtime"),
    ) if is_so]
    if missing:
        return {"compared": False, "missing": missing}
    machine, work = read.machine, read.work_s
    found = {"compared": True, "missing": []}
    for name, split in model.SPLITS.items():
        times = split(work, machine)
        found[name] = {
            **{key: float(value) for key, value in asdict(times).items()},
            "total": float(times.total),
            "energy_per_work_W": float(times.energy(machine) / work) if read.known else None,
        }
    cheap = replace(machine, read_W=machine.read_W * 0.5)
    if read.known:
        found["half_read_power_saves_W"] = {
            name: float(model.epe(work, machine, name) - model.epe(work, cheap, name))
            for name in model.SPLITS
        }
    return found


def _print(read: ReadPlan, document: dict) -> None:
    out = console()
    for each in document["settings"]:
        level = f"{each['level']}, " if len(read.every) > 1 else ""
        chosen = setting_of(Section("", each["chosen"]))
        out.print(bold(f"{level}{each['op']}:", f" {chosen.text()}. {each['why']}"))
    out.print()
    rules = document["interval"]["rules"]
    if rules is not None:
        out.print(bold("interval:", f" {q.duration_text(read.work_s)} (objective "
                       f"{read.objective}, formula {read.formula}). Young's sqrt(2 C / lambda) is "
                       "the first term of the exact optimum's series, Daly's formula the first "
                       "three; the energy optimum is about sqrt(W_C / W_A) of it."))
        rows = table("rule", "work", "more time", "energy", left=("rule",))
        for name, each in rules.items():
            watts = each["energy_per_work_W"]
            rows.add_row(name, q.duration_text(each["interval_s"]),
                         q.percent_text(each["time_per_work"] - 1),
                         "not known" if watts is None else f"{watts:.5g} W")
        out.print(rows)
        out.print()
    _print_paper(document["paper"], out)


def _print_paper(paper: dict, out: Screen) -> None:
    if not paper["compared"]:
        out.print(bold("the paper:", f" it has no formula for {', '.join(paper['missing'])}."))
        return
    exact, printed = paper["exact"], paper["paper"]
    moved = printed["compute"] - exact["compute"]
    out.print(bold("the paper:", " its three times add up to the same total, Vaidya's, so its run "
                   "times are right. Its split is not: a restart after a failure in state A (work) "
                   "is counted as A, at the power of the computation; only restarts after failures "
                   f"in C (checkpoint) are counted as R. Here that moves {moved:.4g} s an "
                   "interval."))
    rows = table("an interval, s", "A", "C", "R", "sum", "energy", left=("an interval, s",))
    for name, each in (("exact", exact), ("paper", printed)):
        watts = each["energy_per_work_W"]
        rows.add_row(name, f"{each['compute']:.6g}", f"{each['write']:.6g}", f"{each['read']:.4g}",
                     f"{each['total']:.6g}", "not known" if watts is None else f"{watts:.5g} W")
    out.print(rows)
    if exact["energy_per_work_W"] is not None:
        error = printed["energy_per_work_W"] / exact["energy_per_work_W"] - 1
        saved = paper["half_read_power_saves_W"]
        out.print(f"The paper's energy is {100 * error:+.2g} % off. Optimised by it, the settings "
                  "of reads have almost no weight: half the power of restarts would save "
                  f"{saved['paper']:.2g} W by the paper, and {saved['exact']:.2g} W in truth.")
