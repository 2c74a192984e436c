# SPDX-License-Identifier: BSD-3-Clause
"""Plans and profiles: their schemas, what the commands read, and the cases that the library is
tested with too (src/energy/schema_test.cpp).

A case of tests/schemas/cases.json takes away what is `at` a place of a good document, or says
what it `is` instead; `by` says who reads that place: the library, the commands, or both.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
from typing import Any

import jsonschema
import pytest

from conftest import BUILD, ROOT, in_this_process

FOLDER = ROOT / "tests/schemas"
KINDS = ("plan", "profile")
GOOD = {kind: json.loads((FOLDER / f"{kind}.json").read_text()) for kind in KINDS}
SCHEMAS = {
    kind: json.loads((ROOT / f"data/energy/{kind}.schema.json").read_text()) for kind in KINDS
}
CASES = json.loads((FOLDER / "cases.json").read_text())
READ = {"plan": ("energy", "explain"), "profile": ("energy", "profile", "show")}


def changed(case: dict[str, Any]) -> Any:
    """The good document with the change of a case."""
    document = copy.deepcopy(GOOD[case["document"]])
    *way, last = [int(key) if key.isdigit() else key for key in case["at"].split("/")[1:]]
    place = document
    for key in way:
        place = place[key]
    if "is" in case:
        place[last] = case["is"]
    else:
        del place[last]
    return document


def refused(kind: str, document: Any, folder) -> str:
    """What the command says of a document that it refuses; "" if it reads it."""
    file = folder / "it.json"
    file.write_text(json.dumps(document))
    ran = in_this_process(*READ[kind], file)
    assert ran.code in (0, 2)
    return ran.err if ran.code else ""


@pytest.mark.parametrize("kind", KINDS)
def test_good_documents_keep_to_their_schemas_and_are_read(kind, tmp_path):
    jsonschema.validators.validator_for(SCHEMAS[kind]).check_schema(SCHEMAS[kind])
    jsonschema.validate(GOOD[kind], SCHEMAS[kind])
    assert refused(kind, GOOD[kind], tmp_path) == ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['at']}={case.get('is', 'absent')}")
def test_wrong_documents_break_the_schema_and_are_refused(case, tmp_path):
    kind, document = case["document"], changed(case)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMAS[kind])
    if case["by"] != "library":
        assert "it.json" in refused(kind, document, tmp_path)


def required(schema: dict[str, Any], root: dict[str, Any], at: str = ""):
    """The places of what a schema requires; the first entry stands for all of a list."""
    schema = root["$defs"][schema["$ref"].split("/")[-1]] if "$ref" in schema else schema
    for key in schema.get("required", ()):
        yield f"{at}/{key}"
    for key, inner in schema.get("properties", {}).items():
        yield from required(inner, root, f"{at}/{key}")
    if "items" in schema:
        yield from required(schema["items"], root, f"{at}/0")


@pytest.mark.parametrize("kind", KINDS)
def test_cases_leave_out_and_mistype_whatever_is_required(kind):
    cases = [case for case in CASES if case["document"] == kind]
    left_out = {case["at"] for case in cases if "is" not in case}
    mistyped = {case["at"] for case in cases if "is" in case}
    assert set(required(SCHEMAS[kind], SCHEMAS[kind])) <= left_out & mistyped


# --- what --json prints --------------------------------------------------------------------------

OUTPUTS = {
    path.name.removesuffix(".schema.json"): json.loads(path.read_text())
    for path in (ROOT / "docs/schemas").glob("*.schema.json")
}
# Printed by programs that must be built first, or recorded: the tests of these verbs look at them.
ELSEWHERE = {"advise", "cache-predict", "ipv-check", "ipv-record", "ipv-explain", "run",
             "energy-run"}
PRINTED = {
    "cache-ls": "cache ls", "cache-outcome": "cache recover", "devices": "devices",
    "config": "config show", "doctor": "doctor .",
    "energy-caps": "energy restore --stale", "energy-explain": "energy explain plan.json",
    "energy-probe": "energy probe",
    "energy-simulate": "energy simulate plan.json --intervals 1e4 --seed 1",
    "pool": "pool check pool", "pool-drain": "pool drain pool --to .", "pool-ls": "pool ls .",
    "pool-export": "pool export pool --to o.npz",
    "pool-verify": "pool verify pool", "pool-versions": "pool versions pool",
    "sim-locality": "sim locality t.ptrace", "sim-optimise": "sim optimise t.ptrace --mram 1MiB",
    "sim-policies": "sim policies", "sim-point": "sim sweep t.ptrace --mram 1MiB",
    "sim-run": "sim run t.ptrace --dram 1MiB", "trace-info": "trace info t.ptrace",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A pool, a trace and a plan."""
    folder = tmp_path_factory.mktemp("outputs")
    subprocess.run([BUILD / "tests/python/counter", folder / "pool", "20"], check=True, timeout=60,
                   stdout=subprocess.DEVNULL)
    lines = (f"{turn % 3 == 0:d} {4096 * (turn * 389 % 512):x}" for turn in range(5000))
    (folder / "a.din").write_text("\n".join(lines) + "\n")
    for words in (f"trace import din {folder}/a.din {folder}/t.ptrace",
                  f"energy plan --mtbf 3h --write-time 9s --read-time 9s -o {folder}/plan.json"):
        assert in_this_process(*words.split()).code == 0
    return folder


@pytest.mark.parametrize("kind", sorted(PRINTED))
def test_what_json_prints_keeps_to_its_published_schema(kind, place, monkeypatch):
    monkeypatch.chdir(place)
    ran = in_this_process(*PRINTED[kind].split(), "--json")
    assert ran.code in (0, 1), ran.err
    text = ran.out.decode()
    printed = [json.loads(line) for line in text.splitlines()] if kind == "sim-point" else \
        [json.loads(text)]
    for document in printed:
        assert (document["kind"], document["schema"]) == (kind, 1)
        jsonschema.validate(document, OUTPUTS[kind])


@pytest.mark.parametrize("words, kind", [
    ("run --json out.json -- true", "run"), ("run --json out.json -- false", "run"),
    ("energy run --writers 1 --json out.json -- true", "energy-run"),
])  # fmt: skip
def test_what_json_writes_keeps_to_its_published_schema(words, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subprocess.run([ROOT / "perdure", *words.split()], check=False, timeout=60)
    document = json.loads((tmp_path / "out.json").read_text())
    assert (document["kind"], document["schema"]) == (kind, 1)
    jsonschema.validate(document, OUTPUTS[kind])


def test_every_kind_that_is_printed_has_a_schema_and_is_looked_at():
    sources = "\n".join(path.read_text() for path in (ROOT / "python/perdure").rglob("*.py"))
    printed = set(re.findall(r'(?:print_json|json_text)\("([a-z-]+)"', sources))
    assert printed == set(OUTPUTS) == set(PRINTED) | ELSEWHERE
    for kind, schema in OUTPUTS.items():
        jsonschema.validators.validator_for(schema).check_schema(schema)
        assert {"kind", "schema"} <= set(schema["required"])
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"kind": kind, "schema": 2}, schema)
