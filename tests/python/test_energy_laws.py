# SPDX-License-Identifier: BSD-3-Clause
"""Laws of the time between failures: what every law that is registered is held to."""

from __future__ import annotations

import ast
import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draw

from conftest import ROOT
from perdure.energy.formulas import model, monte_carlo, renewal
from perdure.energy.formulas.model import Machine
from perdure.energy.laws import law_of, law_of_document, laws, usage_text
from perdure.energy.laws.exponential import Exponential
from perdure.energy.laws.law import Law
from perdure.energy.plan.failures import Failures, estimate, fitted
from perdure.energy.quantities import Wrong

settings.register_profile("perdure", deadline=None, print_blob=True, database=None)
settings.load_profile("perdure")

SEED = int(os.environ.get("PERDURE_TEST_SEED", "1"))
COUNT = 20_000
KOLMOGOROV = 1.95  # exceeded by one of a thousand samples
every_law = pytest.mark.parametrize("law", laws().values(), ids=str)
MACHINE = Machine(1 / 7200, 60, 900, 300, 700, 471, 258, 280, 100, 50)


@draw.composite
def members(drawn, law: type[Law]) -> Law:
    """A law of the family: usual parameters, changed by up to a factor of two."""
    values = {}
    for each in law.parameters:
        low, high = max(each.least, each.usual / 2), min(each.most, each.usual * 2)
        values[each.name] = drawn(draw.floats(low, high))
    return law(drawn(draw.floats(1e2, 1e7)), **values)


def some(law: type[Law]) -> list[Law]:
    """Three of the family: the usual one, and towards both ends."""
    factors = (1.0, 0.6, 1.7) if law.parameters else (1.0,)
    return [law(7200.0, **{each.name: each.usual * factor for each in law.parameters})
            for factor in factors]


@every_law
def test_the_hazard_is_what_takes_survival_away(law):
    @given(members(law), draw.floats(0.02, 0.98))
    def check(made, share):
        age = made.reached(share)
        step = 1e-5 * age
        slope = (made.survival(age + step) - made.survival(age - step)) / (2 * step)
        assert slope == pytest.approx(-made.hazard(age) * made.survival(age), rel=1e-5)

    check()


@every_law
def test_what_was_lived_grows_by_those_that_survive_and_ends_at_the_mean(law):
    @given(members(law), draw.floats(0.02, 0.98))
    def check(made, share):
        age = made.reached(share)
        step = 1e-5 * age
        slope = (made.lived(age + step) - made.lived(age - step)) / (2 * step)
        assert slope == pytest.approx(made.survival(age), rel=1e-5)
        assert made.lived(0.0) == 0
        assert made.lived(made.reached(renewal.TAIL)) == pytest.approx(made.mean_s, rel=1e-6)

    check()


@every_law
def test_the_age_that_a_share_reaches_is_the_inverse_of_survival(law):
    @given(members(law), draw.floats(1e-12, 0.99))
    def check(made, share):
        assert made.survival(made.reached(share)) == pytest.approx(share, rel=1e-6)

    check()


@every_law
def test_numbers_and_arrays_of_ages_give_the_same(law):
    made = some(law)[-1]
    ages = np.array([1.0, 500.0, 7200.0, 1e5])
    for method in (made.survival, made.hazard, made.lived):
        assert method(ages).tolist() == pytest.approx([float(method(age)) for age in ages])
    assert made.survival(np.array([0.0])).tolist() == [1.0]


@every_law
def test_drawn_gaps_are_distributed_by_survival(law):
    print(f"seed {SEED}")
    for made in some(law):
        gaps = np.sort(made.draw(np.random.default_rng(SEED), COUNT))
        below = 1 - made.survival(gaps)
        ranks = np.arange(COUNT + 1) / COUNT
        away = max(np.max(ranks[1:] - below), np.max(below - ranks[:-1]))
        assert away * math.sqrt(COUNT) < KOLMOGOROV, made


@every_law
def test_gaps_that_reached_an_age_go_on_as_survival_says(law):
    print(f"seed {SEED}")
    for made in some(law):
        gaps = made.draw(np.random.default_rng(SEED), COUNT)
        age, more = made.reached(0.5), made.reached(0.2)
        old = gaps[gaps > age]
        expected = made.survival(more) / made.survival(age)
        spread = math.sqrt(expected * (1 - expected) / old.size)
        assert abs(np.mean(old > more) - expected) < 4 * spread, made


@every_law
def test_text_and_document_name_the_law_again(law):
    for made in some(law):
        assert law_of_document(made.document(), made.mean_s, "a plan") == made
        assert law_of(made.text(17), made.mean_s) == made
    assert law.usage() in usage_text()


@every_law
def test_a_parameter_out_of_its_range_is_refused_with_the_range(law):
    for each in law.parameters:
        for value in (each.least / 2, each.most * 2, math.nan):
            with pytest.raises(Wrong, match=f"outside of {each.least:g} to {each.most:g}"):
                law(7200.0, **{**law.usual(7200.0).values(), each.name: value})


@every_law
def test_a_law_without_memory_is_exponential(law):
    for made in some(law):
        if made.memoryless:
            ages = np.geomspace(1, 1e5, 20)
            plain = Exponential(made.mean_s)
            assert made.survival(ages).tolist() == pytest.approx(plain.survival(ages).tolist())
            found = renewal.renewal([2500.0], MACHINE, made)
            assert found.epe_W == pytest.approx(model.epe(2500.0, MACHINE), rel=1e-6)


@every_law
def test_simulation_agrees_with_the_renewal_formula_and_the_hazard_rule_is_no_loss(law):
    print(f"seed {SEED}")
    for made in some(law):
        fixed = renewal.best_fixed_work(MACHINE, made)
        lazy = renewal.hazard_schedule(MACHINE, made)
        for schedule in ([fixed], lazy):
            played = monte_carlo.play(MACHINE, schedule, made, 300_000, SEED)
            expected = renewal.renewal(schedule, MACHINE, made)
            for mean, value in ((played.time_per_work, expected.time_per_work),
                                (played.epe_W, expected.epe_W)):
                assert abs(mean.value - value) < 3.5 * mean.sigma, made
        costs = [renewal.renewal(each, MACHINE, made).time_per_work for each in (lazy, [fixed])]
        assert costs[0] < costs[1] * 1.01, made


@every_law
def test_the_hazard_rule_holds_at_each_checkpoint(law):
    for made in some(law):
        machine = Machine(1 / 7200, 60, 90)
        age = machine.read_s
        for work_s in renewal.hazard_schedule(machine, made)[:50]:
            hazard = made.hazard(age + 0.5 * (work_s + machine.write_s))
            assert work_s == pytest.approx(math.sqrt(2 * machine.write_s / hazard), rel=1e-9)
            age += work_s + machine.write_s


@every_law
def test_a_law_is_found_again_in_its_own_failures(law):
    print(f"seed {SEED}")
    for made in some(law):
        gaps = made.draw(np.random.default_rng(SEED), 2000)
        found = estimate(Failures(tuple(gaps), float(gaps.sum()), gaps.size))
        if made.memoryless:
            continue
        assert found.law.name == made.name and found.advice == (
            f"failures are not exponential (chance explains them with {found.p_exponential:.2g}); "
            f"plan with --law {found.law.text(2)}"
        )
        assert found.law.mean_s == pytest.approx(7200, rel=0.25)
        for name, value in made.values().items():
            assert found.law.values()[name] == pytest.approx(value, rel=0.1)


@every_law
def test_stretches_without_a_failure_count_in_the_fit(law):
    """Half of the gaps are cut off at their median: a fit of the others alone is far off."""
    print(f"seed {SEED}")
    for made in some(law):
        gaps = made.draw(np.random.default_rng(SEED), 2000)
        limit = made.reached(0.5)
        seen, cut = gaps[gaps < limit], np.full((gaps >= limit).sum(), limit)
        lived = float(seen.sum() + cut.sum())
        _, found = fitted(law, Failures(tuple(seen), lived, seen.size, tuple(cut)))
        assert found.mean_s == pytest.approx(made.mean_s, rel=0.25)
        for name, value in made.values().items():
            assert found.values()[name] == pytest.approx(value, rel=0.12)


def test_failures_without_memory_are_rarely_called_others():
    print(f"seed {SEED}")
    random, advised = np.random.default_rng(SEED), 0
    for _ in range(60):
        gaps = random.exponential(7200.0, 60)
        advised += estimate(Failures(tuple(gaps), float(gaps.sum()), 60)).advice is not None
    assert advised <= 9  # 3 expected; one of a thousand such rows has more


def test_a_watch_that_ended_without_a_failure_lowers_the_least_mtbf():
    """Whoever stops in the midst of a gap may have been lucky: one failure more is possible."""
    from scipy.stats import chi2

    for censored, more in (((), 0), ((50.0,), 2)):
        found = estimate(Failures((300.0, 200.0, 400.0), 900.0 + sum(censored), 3, censored))
        assert found.low_s == pytest.approx(2 * found.mtbf_s * 3 / chi2.ppf(0.975, 6 + more))
        assert found.high_s == pytest.approx(2 * found.mtbf_s * 3 / chi2.ppf(0.025, 6))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("weibul:shape=1", "no law is called 'weibul'"), ("weibull", "written as weibull:shape=S"),
        ("weibull:form=1", "written as weibull:shape=S"), ("weibull:shape=x", "PARAMETER=NUMBER"),
        ("weibull:shape", "PARAMETER=NUMBER"), ("weibull:shape=0.01", "outside of 0.2 to 20"),
        ("weibull:shape=inf", "finite"), ("exponential:rate=1", "written as exponential"),
        ("", "no law is called ''"), ("weibull:", "PARAMETER=NUMBER"),
    ],
)
def test_what_is_no_law_is_refused_with_the_laws_there_are(text, said):
    with pytest.raises(Wrong, match=said):
        law_of(text)


@pytest.mark.parametrize("document", [None, [], {}, {"name": 3}, {"name": "weibull"},
                                      {"name": "weibull", "shape": "0.7"},
                                      {"name": "weibull", "shape": 1, "more": 2},
                                      {"name": "weibull", "shape": 10**400}])
def test_a_plan_with_a_damaged_law_is_refused(document):
    with pytest.raises(Wrong, match="^plan.json: law"):
        law_of_document(document, 1.0, "plan.json: law")


def words_of(file) -> set[str]:
    """What the code of a file names, without its comments and texts for people."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        named = [getattr(node, key, None) for key in ("id", "attr", "name", "module", "value")]
        found |= {word.lower() for word in named if isinstance(word, str)}
    return found


def test_no_branch_asks_which_law_it_is():
    """Adding a law is adding a file: nothing outside of the folder of laws names it."""
    folder = ROOT / "python/perdure"
    others = {file: words_of(file) for file in folder.rglob("*.py") if file.parent.name != "laws"}
    for name in laws():
        if name != "exponential":  # the default, and the model that formulas are derived for
            assert [str(file) for file, words in others.items() if name in words] == []
