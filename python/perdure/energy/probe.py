# SPDX-License-Identifier: BSD-3-Clause
"""What this node lets us read and set: meters, clocks, boost, drives; with reason and remedy."""

from __future__ import annotations

from typing import Any

from perdure.core import load_core

LOAD_MS = 300
_BOOST = (
    ("sys/devices/system/cpu/cpufreq/boost", "boost", "1"),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "no_turbo", "0"),
)
_NVME = "sys/class/nvme"
_RULE = "let an administrator install the rule of docs/energy.md"


def probe_node() -> dict:
    """All of it as plain values. The processors are busy for 0.3 s; a slow meter has 1.5 s."""
    core = load_core()
    meters, total = core.energy_meters(LOAD_MS)
    caps, caps_reason = _caps(core)
    return {
        "meters": meters,
        "energy": None if total is None else {"name": total.name, "scope": total.scope},
        "frequency": {
            "settable": core.energy_why_not() == "",
            "reason": core.energy_why_not(),
            "policies": core.energy_policies(),
            "caps": caps,
            "caps_reason": caps_reason,
        },
        "boost": _boost(core),
        "nvme": _drives(core),
    }


def _caps(core: Any) -> tuple[list[dict] | None, str]:
    """Who caps the clock; None, and why, where what is reported of it can't be believed."""
    try:
        return core.energy_journal(), ""
    except core.Error as failure:
        return None, str(failure)


def _boost(core: Any) -> dict | None:
    for path, name, on in _BOOST:
        value = core.sysfs_read(path)
        if value is not None:
            return {"path": f"/{path}", "name": name, "value": value, "on": value == on}
    return None


def _drives(core: Any) -> list[dict]:
    """Power states take an admin command to the drive, which only root may send: shown, not set."""
    found = []
    for name in core.sysfs_list(_NVME):
        if not name.startswith("nvme"):
            continue
        found.append(
            {
                "name": name,
                "model": core.sysfs_read(f"{_NVME}/{name}/model"),
                "firmware": core.sysfs_read(f"{_NVME}/{name}/firmware_rev"),
                "state": core.sysfs_read(f"{_NVME}/{name}/state"),
                "power_states": None,
                "reason": "the drive shows its power states to root only; they are not set here",
                "remedy": f"as root: nvme id-ctrl /dev/{name}; nvme set-feature /dev/{name} -f 2",
            }
        )
    return found


def rows_of(found: dict) -> list[tuple[str, str, str, str, str]]:
    """Rows for people: what, name, state, reason, remedy."""
    rows = []
    for meter in found["meters"]:
        rows.append(("meter", f"{meter['interface']} {meter['name']}", _meter_state(meter),
                     meter["reason"], meter["remedy"]))
    if not found["meters"]:
        rows.append(("meter", "none", "absent", "the kernel shows no powercap zone, no perf power "
                     "event, no hwmon power sensor and no IPMI device",
                     "modprobe intel_rapl_msr, acpi_power_meter or ipmi_si; none in most VMs"))
    frequency = found["frequency"]
    for policy in frequency["policies"]:
        limits = f"{_mhz(policy['least_kHz'])} to {_mhz(policy['most_kHz'])} MHz"
        state = "settable" if policy["settable"] else "read only"
        rows.append(("clock", f"{policy['name']} {policy['driver']} {policy['governor']}",
                     f"{state}, {limits}, now at most {_mhz(policy['max_kHz'])} MHz",
                     "" if policy["settable"] else "scaling_max_freq can't be written",
                     "" if policy["settable"] else _RULE))
    if not frequency["policies"]:
        rows.append(("clock", "none", "absent", frequency["reason"],
                     "on real hardware: enable the processor's frequency driver"))
    boost = found["boost"]
    if boost is not None:
        rows.append(("boost", boost["name"], "on" if boost["on"] else "off", "", ""))
    for drive in found["nvme"]:
        rows.append(("drive", f"{drive['name']} {drive['model'] or ''}".strip(),
                     drive["state"] or "?", drive["reason"], drive["remedy"]))
    return rows


def _meter_state(meter: dict) -> str:
    if not meter["readable"]:
        return "not readable"
    if not meter["alive"]:
        return "dead"
    return "alive, counted" if meter["counted"] else f"alive, not counted ({meter['scope']})"


def _mhz(khz: int | None) -> str:
    return "?" if khz is None else f"{khz // 1000}"
