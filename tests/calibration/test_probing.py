from __future__ import annotations

import math
from random import Random

import pytest
from msgspec.structs import replace

from theodolite.calibration.probing import code_of, counted, put_probes, tuned
from theodolite.calibration.sample import Probed, Sample
from theodolite.calibration.table import Table
from theodolite.core.labels import Known
from theodolite.detectors.behavior.accumulation import DriftAccumulator, ProbeOutcomeFacts
from theodolite.detectors.behavior.bands import SESSION
from theodolite.detectors.behavior.judge import SemanticJudgment
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.detectors.behavior.seen import Composite, ProbeSeen
from theodolite.detectors.behavior.tuning import ESTIMATES, Tuning

KIND = ProbeType.SCOPE_EXPANSION
QUIET = ProbeSeen(
    kind=KIND,
    probe="p",
    library="1.0.0",
    model="m-1",
    toward=(),
    stricter=False,
    judgment=None,
    lacking=(),
    observed=(0.0,),
    decided=(0.0,),
    rise=0.0,
    breach=False,
    measurable=True,
    unclear=False,
    malformed=False,
    cached=False,
    opinion="",
    explained=False,
    threshold=0.6,
    score=0.0,
)
COMPOSITE = Composite(
    library="1.0.0",
    frequency=0.0,
    trend=0.0,
    category=0.0,
    structural=0.0,
    longest=4,
    probes=4,
    failed=0,
    disclosures=0,
    confirmed=0,
    e_value=1.0,
    observed=1.0,
    decided=1.0,
    exactly=1.0,
)


def sessions(n: int = 60, probes: int = 4, *, seed: int = 1) -> list[Sample]:
    """Sessions in which `decision` tells drift, `policy_cited` is chance, and what is bet grows in drifted ones."""
    rng = Random(seed)  # noqa: S311 - a test, drawn alike each time
    samples: list[Sample] = []
    for number in range(2 * n):
        drifted = number >= n
        put: list[ProbeSeen] = []
        for _ in range(probes):
            toward: tuple[str, ...] = ("decision",) if rng.random() < (0.6 if drifted else 0.05) else ()
            toward += ("policy_cited",) if rng.random() < 0.4 else ()
            judgment = SemanticJudgment(
                policy_ref_match=rng.random() < 0.5,
                decision_direction_match=rng.random() < (0.2 if drifted else 0.9),
                context_contradiction=False,
            )
            draw = float(rng.random() < (0.7 if drifted else 0.1)) - float(rng.random() < 0.1)
            put.append(
                replace(QUIET, toward=toward, judgment=judgment, observed=(draw,), score=0.8 * ("decision" in toward))
            )
        frequency = sum("decision" in one.toward for one in put) / probes
        told = replace(COMPOSITE, frequency=frequency, trend=rng.random())
        known = Known.DRIFTED if drifted else Known.CLEAN
        probed = Probed(probes=tuple(put), composite=told)
        highest = {code_of(KIND): max(one.score for one in put)}
        samples.append(Sample(session=f"{known}-{number}", known=known, probed=probed, highest=highest))
    return samples


def fitted(samples: list[Sample]) -> Tuning:
    table = Table.of(samples)
    every = range(len(table))
    return counted(table, every, table.rows(Known.CLEAN), tuned(table, every), 0.01)


def test_what_tells_drift_weighs_and_what_is_chance_does_not() -> None:
    tuning = fitted(sessions(120))
    assert set(tuning.fitted) >= {"weights", "multipliers", "judge", "judged", "longitudinal", "review", "fractions"}
    assert tuning.weights["decision"] == 1.0
    assert tuning.weights["policy_cited"] < 0.3
    assert tuning.judge["decision_direction_match"] > 0.6
    assert tuning.longitudinal["frequency"] > 0.7
    assert math.isclose(sum(tuning.longitudinal.values()), 1.0, abs_tol=0.01)
    assert max(tuning.fractions) > 0.5


def test_signs_are_kept_where_the_data_say_otherwise() -> None:
    """Clean sessions differ more than drifted ones: nothing may weigh below nothing."""
    turned = [replace(one, known=Known.CLEAN if one.known is Known.DRIFTED else Known.DRIFTED) for one in sessions()]
    tuning = fitted(turned)
    assert min(tuning.weights.values()) >= 0.0
    assert min(tuning.judge.values()) >= 0.0
    assert tuning.weights["decision"] == 0.0


def test_too_few_sessions_leave_the_estimates() -> None:
    tuning = fitted(sessions(20))
    assert set(tuning.fitted) <= {"consistency", "penalties"}
    assert tuning.weights == ESTIMATES.weights


def test_a_streak_is_noted_that_the_measured_variation_does_not_explain() -> None:
    tuning = fitted(sessions())
    clean = [one for one in sessions() if one.known is Known.CLEAN]
    probes = [probe for one in clean if one.probed for probe in one.probed.probes]
    # By the weights that were fitted, and not by those that the replay had.
    share = sum(probe.scored(tuning) >= tuning.thresholds[probe.kind] for probe in probes) / len(probes)
    assert tuning.consistency is not None
    assert (1 - share) ** tuning.consistency <= 0.01 < (1 - share) ** (tuning.consistency - 1)
    still = [
        replace(one, probed=Probed(probes=(QUIET,) * 4, composite=COMPOSITE)) if one.known is Known.CLEAN else one
        for one in sessions()
    ]
    assert fitted(still).consistency is None


def test_a_penalty_is_how_much_less_a_difference_says_where_arms_are_not_alike() -> None:
    apart = [
        replace(
            one,
            session=f"apart-{one.session}",
            probed=Probed(
                probes=tuple(
                    [replace(QUIET, lacking=("same_sampling_config",), breach=bool(place % 2)) for place in range(4)]
                ),
            ),
        )
        for one in sessions()
        if one.known is Known.CLEAN
    ]
    tuning = fitted([*sessions(), *apart])
    assert tuning.penalties["same_sampling_config"] < 0.3
    assert tuning.penalties["same_model_version"] == ESTIMATES.penalties["same_model_version"]


def test_scores_are_those_of_the_numbers_that_were_fitted() -> None:
    samples = sessions()
    table = Table.of(samples)
    tuning = tuned(table, range(len(table)))
    put_probes(table, tuning)
    for row, sample in enumerate(samples):
        assert sample.probed is not None
        assert table.scores(code_of(KIND))[row] == max(one.scored(tuning) for one in sample.probed.probes)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_fitted_is_what_the_detector_takes(seed: int) -> None:
    from theodolite.detectors.behavior.detector import BehaviorDetector

    tuning = fitted(sessions(seed=seed))
    assert BehaviorDetector().tuned(tuning.coefficients()).tuning == tuning


def test_what_is_bet_on_with_other_fractions_is_what_an_accumulator_makes_of_it() -> None:
    samples = [replace(one, highest={**one.highest, SESSION: 0.5}) for one in sessions()]
    table = Table.of(samples)
    tuning = tuned(table, range(len(table)))
    put_probes(table, tuning)
    for row, sample in enumerate(samples):
        assert sample.probed is not None
        accumulator, highest = DriftAccumulator(probe_library_version=""), 1.0
        for one in sample.probed.probes:
            facts = ProbeOutcomeFacts(
                probe_id="p", probe_library_version="", observed=one.observed, decision=one.decided
            )
            accumulator.add(facts, tuning)
            highest = max(highest, accumulator.evidence)
        assert table.scores(SESSION)[row] == 1.0 - 1.0 / highest


def test_a_difference_that_was_upheld_is_at_its_threshold_wherever_that_is() -> None:
    [one, *_] = sessions()
    assert one.probed is not None
    upheld = tuple([replace(probe, opinion="drift_signal") for probe in one.probed.probes])
    table = Table.of([replace(one, probed=Probed(probes=upheld, composite=COMPOSITE))])
    put_probes(table, ESTIMATES)
    assert table.scores(code_of(KIND))[0] == 1.0
