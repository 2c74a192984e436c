"""Plans and profiles: their schemas, what the commands read, and the cases that the library is
tested with too (src/energy/schema_test.cpp).

A case of tests/schemas/cases.json takes away what stands `at` a place of a good document, or says
what it `is` instead; `by` tells who reads that place: the library, the commands, or both.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest

from conftest import ROOT, in_this_process

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
