"""The statistics and scores of the probing protocol, against known values and against worlds whose truth is known."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from random import Random

import pytest
from probing_analysis import (
    area_over_skeletons,
    contexts_for_power,
    contexts_for_width,
    draws_for_shift,
    false_alarms,
    js,
    mean_over_skeletons,
)
from probing_contexts import Context, Kind, kept
from probing_scores import NAMES, Areas, Pair, Read, Verdict, compared, judged, scores

from theodolite.detectors.behavior.readout import ReadOut

SKELETONS = 60
CONTEXTS = kept()[: 4 * SKELETONS]
PROBES = ("one", "two", "three")


def read_out(odds: float) -> ReadOut:
    comply = 1 / (1 + math.exp(-odds))
    rest = (1 - comply) / 2
    return ReadOut(
        log_odds=odds,
        spread=0.0,
        rotations=3,
        probabilities=(comply, rest, rest),
        by_order=(odds,) * 3,
        exact=True,
    )


def world(violating: Callable[[Context], float], twin: Callable[[Context], float], noise: float = 0.3) -> Read:
    """Return what is read of a model whose log-odds are these, beside -3 and 3 without a context."""
    dice = Random(5)  # noqa: S311 - test data, not secrets

    def pair(context: Context) -> Pair:
        shared = dice.gauss(0, noise)
        return Pair(
            read_out(-3 + violating(context) + shared + dice.gauss(0, noise)),
            read_out(3 + twin(context) + shared + dice.gauss(0, noise)),
        )

    clean = Pair(read_out(-3), read_out(3))
    return Read(
        contexts=CONTEXTS,
        probes=PROBES,
        pairs={one.id: {probe: pair(one) for probe in PROBES} for one in CONTEXTS},
        empty=dict.fromkeys(PROBES, clean),
        summary={one.id: dict.fromkeys(PROBES, clean) for one in CONTEXTS},
    )


def areas(read: Read) -> dict[str, Areas]:
    return {name: compared(scored, draws=200) for name, scored in scores(read).items()}


def drift(context: Context) -> float:
    return 2.0 * (context.kind is Kind.TAINTED)


def topic(context: Context) -> float:
    return 2.0 * (context.kind in {Kind.TAINTED, Kind.HARD})


def nothing(context: Context) -> float:
    del context
    return 0.0


class TestAreas:
    def test_intervals_hold_the_truth_in_about_95_of_100(self) -> None:
        dice, held = Random(7), 0  # noqa: S311 - test data, not secrets
        truth = statistics.NormalDist().cdf(1.0 / math.sqrt(2))
        for _ in range(200):
            above = {str(number): dice.gauss(1, 1) for number in range(40)}
            below = {str(number): dice.gauss(0, 1) for number in range(40)}
            interval = area_over_skeletons(above, below, draws=100)
            held += interval.low <= truth <= interval.high
        assert 180 <= held <= 198

    def test_skeletons_without_both_kinds_are_left_out(self) -> None:
        assert area_over_skeletons({"a": 1.0, "b": 0.0}, {"a": 0.5}, draws=10).n == 1
        empty = area_over_skeletons({}, {})
        assert (empty.n, math.isnan(empty.value), math.isnan(empty.low)) == (0, True, True)

    def test_a_mean_has_its_interval(self) -> None:
        interval = mean_over_skeletons([0.0, 1.0] * 50)
        assert interval.low == pytest.approx(0.4, abs=0.03)
        assert interval.high == pytest.approx(0.6, abs=0.03)


class TestSizes:
    def test_contexts(self) -> None:
        assert [contexts_for_power(true) for true in (0.6, 0.65, 0.7)] == [131, 59, 33]
        assert contexts_for_width(0.7, 0.1) == 53
        assert 208 <= contexts_for_width(0.7, 0.05) <= 229

    def test_power_is_as_promised(self) -> None:
        dice, found = Random(11), 0  # noqa: S311 - test data, not secrets
        shift = statistics.NormalDist().inv_cdf(0.7) * math.sqrt(2)
        n = contexts_for_power(0.7)
        for _ in range(200):
            above = {str(number): dice.gauss(shift, 1) for number in range(n)}
            below = {str(number): dice.gauss(0, 1) for number in range(n)}
            found += area_over_skeletons(above, below, draws=100).low > 0.5
        assert 0.7 <= found / 200 <= 0.9

    def test_draws(self) -> None:
        assert draws_for_shift(0.05, 0.15) == 109
        assert draws_for_shift(0.05, 0.15, known=True) == 44

    def test_false_alarms_fall_with_references(self) -> None:
        few, many = false_alarms(10), false_alarms(100, worlds=1000)
        assert few[0] == pytest.approx(0.077, abs=0.006)
        assert many[0] == pytest.approx(0.052, abs=0.003)
        assert few[1] > many[1]


class TestDistances:
    def test_known_values(self) -> None:
        assert js((1.0, 0.0, 0.0), (0.0, 0.5, 0.5)) == pytest.approx(1.0)
        assert js((0.5, 0.5), (0.25, 0.75)) == pytest.approx(0.04879494)


class TestScores:
    def test_drift_is_found_by_the_primary_score(self) -> None:
        found = areas(world(drift, nothing))
        assert found["twin"].met
        assert judged(passed=True, primary=found["twin"], changed=True) is Verdict.DRIFT
        assert judged(passed=True, primary=found["twin"], changed=False) is Verdict.UNCONFIRMED
        assert judged(passed=False, primary=found["twin"], changed=True) is Verdict.NOT_MEASURABLE

    def test_a_topic_effect_on_violations_is_not_called_drift(self) -> None:
        found = areas(world(topic, nothing))
        assert found["twin"].tainted_plain.low > 0.5
        assert not found["twin"].met
        assert judged(passed=True, primary=found["twin"], changed=True) is Verdict.TOPIC

    def test_a_liking_that_hits_every_answer_goes_away_in_the_twin(self) -> None:
        found = areas(world(drift, drift))
        assert found["signed"].met
        assert found["twins alone"].met
        assert not found["twin"].met
        assert judged(passed=True, primary=found["twin"], changed=True) is Verdict.NOTHING

    def test_novelty_moves_distances_and_not_the_primary(self) -> None:
        read = world(lambda one: -topic(one), lambda one: -topic(one))
        found = areas(read)
        assert found["empty JS"].tainted_plain.low > 0.5
        assert found["ref JS"].tainted_plain.low > 0.5
        assert not found["twin"].met

    def test_every_score_is_made_for_every_context(self) -> None:
        made = scores(world(drift, nothing))
        assert made.keys() == NAMES.keys()
        for by_kind in made.values():
            assert set(by_kind) == {Kind.TAINTED, Kind.HARD, Kind.PLAIN}
            assert all(len(by_skeleton) == SKELETONS for by_skeleton in by_kind.values())

    def test_the_center_is_that_of_other_skeletons(self) -> None:
        made = scores(world(nothing, nothing, noise=0.0))
        assert all(value == 0.0 for by in made["twin"].values() for value in by.values())
        assert all(value == 0.0 for by in made["twin z"].values() for value in by.values())

    def test_one_outlier_does_not_rule_the_sum_of_z(self) -> None:
        def wild(context: Context) -> float:
            return 7.0 * (context.id == "s000-tainted")

        made = scores(world(wild, nothing))
        assert made["twin z"][Kind.TAINTED]["s000"] == 3.0

    def test_some_skeletons_can_be_looked_at_apart(self) -> None:
        made = scores(world(drift, nothing))
        held_out = frozenset(one.skeleton for one in CONTEXTS if one.held_out)
        assert compared(made["twin"], held_out).tainted_hard.n == len(held_out) == 18
