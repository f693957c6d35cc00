"""Every number by which probes are judged may come from an artefact, and each of them changes what it is for."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from theodolite.core.detector import Tunable
from theodolite.core.gate import Gate, Shown
from theodolite.core.inquiry import Draw, Query, Reply, Role
from theodolite.core.reading import Reading
from theodolite.detectors.behavior.accumulation import DriftAccumulator, ProbeOutcomeFacts
from theodolite.detectors.behavior.comparison import by_fields
from theodolite.detectors.behavior.detector import BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.library import shipped
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.detectors.behavior.tuning import ALIKE, ESTIMATES, FIELDS, JUDGMENT, PARTS, Tuning

from .behavior_answers import COMPLIES, DECLINES, answered, arm_of, compared, probed_case

Coefficients = Mapping[str, object]
KINDS = [kind.value for kind in ProbeType]


def positive(names: Sequence[str], least: float = 0.01, most: float = 10.0) -> st.SearchStrategy[dict[str, float]]:
    return st.fixed_dictionaries({name: st.floats(least, most) for name in names})


SHARES = st.floats(0.0, 1.0)
COEFFICIENTS = st.fixed_dictionaries(
    {},
    optional={
        "weights": positive(FIELDS),
        "multipliers": positive(KINDS),
        "thresholds": positive(KINDS, most=1.0),
        "ambiguity_band": SHARES,
        "judge": positive(JUDGMENT),
        "judged": SHARES,
        "penalties": positive(ALIKE, most=1.0),
        "longitudinal": positive(PARTS),
        "review": SHARES,
        "consistency": st.none() | st.integers(1, 99),
        "fractions": st.lists(st.floats(0.01, 0.99), min_size=3, max_size=3),
    },
)


def reading(coefficients: Coefficients) -> Reading:
    """Return what a probe comes to that is a little looser than its shadow, and that a judge finds to differ."""
    loose = {**DECLINES, "policy_cited": False}
    verdict = dict.fromkeys(JUDGMENT, False)

    def reply(query: Query) -> Reply:
        text = verdict if query.role is Role.JUDGE else loose if arm_of(query) == "subject" else DECLINES
        return Reply(query=query, model="m", draws=(Draw(text=json.dumps(text)),) * query.samples)

    probing = BehaviorDetector(BehaviorSettings(judge=True)).tuned(coefficients)
    return compared(answered(probing.inquire(probed_case()), reply))


PROBE = ProbeOutcomeFacts(probe_id="dd_01", probe_library_version="1.0.0")


def accumulated(coefficients: Coefficients) -> DriftAccumulator:
    accumulator, tuning = DriftAccumulator(), Tuning.of(coefficients)
    told, did = replace(PROBE, disclosed=True, resampled=(4, 0)), replace(PROBE, observed=(1.0,))
    for facts in (told, did, replace(PROBE, structural=True)):
        accumulator.add(facts, tuning)
    return accumulator


def review(coefficients: Coefficients) -> float:
    return accumulated(coefficients).longitudinal(Tuning.of(coefficients))


def composite(coefficients: Coefficients) -> float:
    return accumulated(coefficients).composite(Tuning.of(coefficients))


def notes(coefficients: Coefficients) -> object:
    return accumulated(coefficients).notes(tuning=Tuning.of(coefficients))


def fact(name: str) -> Callable[[Coefficients], object]:
    return lambda coefficients: reading(coefficients).fact(name)


def bands(coefficients: Coefficients) -> object:
    return BehaviorDetector().tuned(coefficients).bands


CASES: Sequence[tuple[Coefficients, Callable[[Coefficients], object]]] = (
    ({"weights": {**dict.fromkeys(FIELDS, 0.5), "policy_cited": 1.0}}, fact("fields")),
    ({"multipliers": dict.fromkeys(KINDS, 2.0)}, fact("fields")),
    ({"judge": dict.fromkeys(JUDGMENT, 0.1)}, fact("judged")),
    ({"judged": 0.5}, fact("fields")),
    ({"thresholds": dict.fromkeys(KINDS, 0.9)}, fact("threshold")),
    ({"thresholds": dict.fromkeys(KINDS, 0.9)}, bands),
    ({"ambiguity_band": 0.01}, bands),
    ({"penalties": dict.fromkeys(ALIKE, 0.9)}, fact("isolation")),
    ({"longitudinal": dict.fromkeys(PARTS, 1.0)}, composite),
    ({"review": 0.9}, review),
    ({"consistency": 2}, notes),
    ({"fractions": [0.1, 0.2, 0.3]}, lambda coefficients: accumulated(coefficients).e_value),
)


@pytest.mark.parametrize(("coefficients", "seen"), CASES, ids=[next(iter(given)) for given, _ in CASES])
def test_each_number_of_an_artefact_changes_what_it_is_for(
    coefficients: Coefficients, seen: Callable[[Coefficients], object]
) -> None:
    assert seen(coefficients) != seen({})


def test_every_number_may_come_from_an_artefact() -> None:
    assert {*Tuning.__struct_fields__} == {"fitted"}.union(*[given for given, _ in CASES])


def test_a_streak_that_is_never_noted_is_not_and_a_fitted_one_is_not_called_uncalibrated() -> None:
    accumulator = DriftAccumulator()
    for _ in range(6):
        accumulator.add(PROBE)
    (estimated,) = accumulator.notes()
    (fitted,) = accumulator.notes(tuning=Tuning.of({"consistency": 5}))
    assert ("UNCALIBRATED" in estimated, "UNCALIBRATED" in fitted) == (True, False)
    assert accumulator.notes(tuning=Tuning.of({"consistency": None})) == ()


@given(COEFFICIENTS)
def test_what_an_artefact_gives_is_read_written_and_read_alike(coefficients: Coefficients) -> None:
    tuning = Tuning.of(coefficients)
    assert Tuning.of(json.loads(json.dumps(tuning.coefficients()))) == tuning
    assert tuning.fitted == tuple(sorted(coefficients))
    for name in set(Tuning.__struct_fields__) - set(coefficients) - {"fitted"}:
        assert getattr(tuning, name) == getattr(ESTIMATES, name)


@given(
    st.sets(st.sampled_from(FIELDS)), st.sampled_from(FIELDS), st.sampled_from(ProbeType), COEFFICIENTS, st.floats(1, 9)
)
def test_what_differs_more_scores_no_less_and_weights_are_those_of_each_other(
    toward: set[str], more: str, kind: ProbeType, coefficients: Coefficients, scale: float
) -> None:
    tuning = Tuning.of(coefficients)
    least = by_fields(sorted(toward), kind, tuning)
    assert 0.0 <= least <= by_fields(sorted(toward | {more}), kind, tuning) + 1e-9 <= 1.0 + 1e-9
    scaled = Tuning(weights={name: scale * weight for name, weight in tuning.weights.items()})
    same = Tuning(weights=tuning.weights)
    assert by_fields(sorted(toward), kind, scaled) == pytest.approx(by_fields(sorted(toward), kind, same))


@pytest.mark.parametrize(
    ("coefficients", "told"),
    [
        ({"weight": {}}, "unknown field `weight`"),
        ({"fitted": []}, "fitted is no coefficient"),
        ({"weights": {"decision": 1.0}}, "a number for each of disclosed_data, decision"),
        ({"weights": dict.fromkeys(FIELDS, 0.0)}, "not all 0"),
        ({"weights": {**dict.fromkeys(FIELDS, 1.0), "decision": -0.1}}, "weights is .*-0.1"),
        ({"weights": {**dict.fromkeys(FIELDS, 1.0), "decision": math.nan}}, "weights is .*nan"),
        ({"judge": dict.fromkeys(JUDGMENT, 0.0)}, "judge is 0, 0, 0"),
        ({"longitudinal": dict.fromkeys(PARTS, math.inf)}, "longitudinal is inf"),
        ({"multipliers": dict.fromkeys(KINDS, 0.0)}, "multipliers is .* above 0"),
        ({"multipliers": {"canary": 1.0}}, "canary"),
        ({"thresholds": dict.fromkeys(KINDS, 1.1)}, "thresholds is .* at most 1"),
        ({"penalties": {**dict.fromkeys(ALIKE, 1.0), ALIKE[0]: 0.0}}, "penalties is .* above 0"),
        ({"ambiguity_band": 1.5}, "ambiguity_band is 1.5"),
        ({"judged": -0.5}, "judged is -0.5"),
        ({"review": "much"}, r"`float`, got `str`.*review"),
        ({"consistency": 0}, "consistency is 0"),
        ({"consistency": 2.5}, "consistency"),
        ({"fractions": [0.5]}, "fractions has 1 numbers, and 3"),
        ({"fractions": [0.5, 0.5, 1.0]}, "fractions is .* below 1"),
    ],
)
def test_a_coefficient_that_is_none_is_refused_with_what_belongs_there(coefficients: Coefficients, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        BehaviorDetector().tuned(coefficients)


def test_fitted_numbers_are_numbers_of_it() -> None:
    with pytest.raises(ValueError, match="fitted names"):
        Tuning(fitted=("speed",))


GATE = Gate(
    model="m",
    prompt_hash="",
    library=shipped().version,
    version=BehaviorDetector.version,
    wording="w",
    shown=Shown.PROBABILITIES,
    date="2026-11-30",
    pairs=12,
    auc=1.0,
    violation=-2.0,
    twin=2.0,
    decline_share=1.0,
    conform_share=1.0,
    spread=0.0,
    passed=True,
)


@pytest.mark.parametrize("first", ["tuned", "gated"])
def test_a_detector_keeps_its_numbers_when_it_is_given_gates_and_the_other_way_round(first: str) -> None:
    one, coefficients = BehaviorDetector(), {"fractions": [0.1, 0.2, 0.3], "ambiguity_band": 0.0}
    assert isinstance(one, Tunable)
    both = one.tuned(coefficients).with_gates({"m": GATE})
    if first == "gated":
        both = one.with_gates({"m": GATE}).tuned(coefficients)
    assert both.tuning == Tuning.of(coefficients)
    assert both.bands["behavior.data_disclosure"].width == 0.0

    def reply(query: Query) -> Reply:
        told = COMPLIES if arm_of(query) == "subject" else DECLINES
        return Reply(query=query, model="m", draws=(Draw(text=json.dumps(told)),) * query.samples)

    said = answered(both.inquire(probed_case()), reply)
    assert compared(said).fact("gate") == "passed"
