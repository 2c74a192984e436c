# SPDX-License-Identifier: BSD-3-Clause
"""Laws of the time between failures, one file each; whoever needs one asks here by its name.

Adding a law takes one new file in this folder: copy weibull.py. The command line, plans, fits of
lists of failures and the tests then know it by themselves.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from perdure.energy.laws.law import Law, registered_laws
from perdure.energy.quantities import Wrong, is_number


@lru_cache(maxsize=1)
def laws() -> dict[str, type[Law]]:
    """Every law by its name, the one with fewest parameters first."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    found = sorted(registered_laws, key=lambda law: (len(law.parameters), law.name))
    return {law.name: law for law in found}


def usage_text() -> str:
    """How each law is written, and what it is."""
    return "; ".join(law.usage() for law in laws().values())


def law_of(text: str, mean_s: float = 1.0) -> Law:
    """The law that "weibull:shape=0.7" names. Raises Wrong."""
    name, colon, rest = text.partition(":")
    values: dict[str, object] = {}
    for word in rest.split(",") if colon else ():
        key, equals, value = word.partition("=")
        try:
            values[key.strip()] = float(value)
        except ValueError:
            raise Wrong(f"--law {text}: '{word}' is not PARAMETER=NUMBER; {usage_text()}") from None
    return _made(name.strip(), values, mean_s, f"--law {text}")


def law_of_document(document: object, mean_s: float, where: str) -> Law:
    """The law that a plan names; the reverse of Law.document(). Raises Wrong."""
    if not isinstance(document, dict):
        raise Wrong(f"{where} is {document!r}; it must be an object with the name of a law: plan "
                    "again")
    values = {key: value for key, value in document.items() if key != "name"}
    return _made(document.get("name"), values, mean_s, where)


def _made(name: object, values: dict[str, object], mean_s: float, where: str) -> Law:
    law = laws().get(name) if isinstance(name, str) else None
    if law is None:
        raise Wrong(f"{where}: no law is called {name!r}; there are {usage_text()}")
    if set(values) != {each.name for each in law.parameters}:
        raise Wrong(f"{where}: {name} is written as {law.usage()}")
    numbers = {key: float(value) for key, value in values.items() if is_number(value)}
    if len(numbers) != len(values):
        raise Wrong(f"{where}: the parameters of {name} must be finite numbers")
    try:
        return law(mean_s, **numbers)
    except Wrong as wrong:
        raise Wrong(f"{where}: {wrong}") from None
