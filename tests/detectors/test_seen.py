"""What readings of probes say is read back as it was, and comes to the same score by the same numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from theodolite.core.event import MessageObserved, ModelCalled, Source
from theodolite.core.gate import Gate, Reason, Shown
from theodolite.core.inquiry import Draw, Query, Reply, Role
from theodolite.core.reading import Reading
from theodolite.detectors.behavior.detector import SESSION, TOLD, BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.library import shipped
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.detectors.behavior.seen import composite, seen
from theodolite.detectors.behavior.tuning import ALIKE, ESTIMATES, FIELDS, JUDGMENT, Tuning
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.testing.fakes import ScriptedModel
from theodolite.verifiers.triangulation import TriangulationVerifier

from .behavior_answers import AT_ONCE, COMPLIES, DECLINES, answered, arm_of, compared, probed_case

ANSWERS = st.fixed_dictionaries(
    {
        "decision": st.sampled_from(["comply", "decline", "escalate", "well"]),
        "reasoning": st.sampled_from(["The policy forbids it.", "Fine."]),
        **{name: st.booleans() for name in FIELDS if name not in {"decision", "reasoning"}},
    }
)
VERDICTS = st.fixed_dictionaries({name: st.booleans() for name in JUDGMENT})
TUNINGS = st.sampled_from(
    [
        ESTIMATES,
        Tuning(judged=1.0, weights=dict(zip(FIELDS, (0.0, 3.0, 1.0, 0.2, 0.5, 0.1), strict=True))),
        Tuning(multipliers=dict.fromkeys(ESTIMATES.multipliers, 3.0), penalties=dict.fromkeys(ALIKE, 1.0)),
    ]
)


def gate(*, passed: bool) -> Gate:
    return Gate(
        model="m",
        prompt_hash="",
        library=shipped().version,
        version=BehaviorDetector.version,
        wording="w",
        shown=Shown.SAMPLES,
        date="2026-11-30",
        pairs=12,
        auc=1.0 if passed else 0.5,
        violation=-2.0,
        twin=2.0,
        decline_share=1.0,
        conform_share=1.0,
        spread=0.0,
        passed=passed,
        reasons=() if passed else (Reason.OVERLAP,),
    )


def reading(
    answers: Mapping[str, Mapping[str, object]], verdict: Mapping[str, bool], tuning: Tuning, gates: Mapping[str, Gate]
) -> Reading:
    def reply(query: Query) -> Reply:
        text = verdict if query.role is Role.JUDGE else answers[arm_of(query)]
        draw = Draw(text=json.dumps(text), vouched=query.role is not Role.JUDGE)
        return Reply(query=query, model="m", draws=(draw,) * query.samples)

    probing = BehaviorDetector(BehaviorSettings(judge=True), gates=gates, tuning=tuning)
    return compared(answered(probing.inquire(probed_case()), reply))


@given(st.tuples(ANSWERS, ANSWERS, ANSWERS), VERDICTS, TUNINGS, st.sampled_from([None, True, False]))
def test_what_was_seen_comes_to_the_score_of_its_reading(
    arms: tuple[dict[str, object], ...],
    verdict: dict[str, bool],
    tuning: Tuning,
    passed: bool | None,  # noqa: FBT001 - drawn
) -> None:
    gates = {} if passed is None else {"m": gate(passed=passed)}
    said = reading(dict(zip(("subject", "shadow", "reference"), arms, strict=True)), verdict, tuning, gates)
    found = seen(said)
    assert found is not None
    assert found.scored(tuning) == pytest.approx(said.score)
    assert found.judgment is not None
    assert {name: getattr(found.judgment, name) for name in JUDGMENT} == verdict
    assert found.measurable is (passed is not False)
    assert {item.path for item in said.evidence if item.kind == "behavior.toward"} == set(found.toward)
    assert found.observed == (said.fact("observed"),)


def session(subject: Mapping[str, object], baseline: Mapping[str, object], times: int) -> list[Reading]:
    """Return all that is said in a session that is probed so often, as it is kept; everybody else declines."""

    def script(query: Query) -> str:
        said = {Role.SUBJECT: subject, Role.BASELINE: baseline}.get(query.role, DECLINES)
        return json.dumps(said)

    panel = Panel(dict.fromkeys((Role.SUBJECT, Role.SHADOW, Role.BASELINE), ScriptedModel(script, name="m-1")))
    monitor = Monitor(
        [BehaviorDetector(BehaviorSettings(schedule=AT_ONCE, samples=1), tuning=NEAR)],
        verifiers=[TriangulationVerifier()],
        panel=panel,
        redactor=RuleRedactor(),
        secret=bytes(range(32)),
    )
    readings: list[Reading] = []
    with monitor.session("s-1") as one:
        one.observe(MessageObserved(role="user", text="Hello", source=Source.USER))
        one.observe(ModelCalled(model="m-1"))
        for _ in range(times):
            one.request_probe("now")
            signals = [signal.said for decision in one.drain_sync() for signal in decision.signals]
            readings += [said for said in signals if isinstance(said, Reading)]
    return readings


# By the numbers below it is ambiguous: a second opinion is asked.
LOOSE = {**DECLINES, "decision": "escalate", "policy_cited": False, "escalation_suggested": True}
NEAR = Tuning(thresholds=dict.fromkeys(ProbeType, 0.2))


@pytest.mark.parametrize(
    ("baseline", "opinion"),
    [(DECLINES, "drift_signal"), (LOOSE, "summary_calibration_anomaly"), (COMPLIES, "all_differ")],
)
def test_a_session_that_was_kept_is_read_back_probe_by_probe(baseline: Mapping[str, object], opinion: str) -> None:
    readings = session(LOOSE, baseline, 6)
    found = [one for one in map(seen, readings) if one is not None]
    wholes = [one for one in map(composite, readings) if one is not None]
    assert len(found) == len(wholes) == 6
    assert {one.opinion for one in found} == {opinion}
    assert [one.scored(NEAR) for one in found] == pytest.approx([one.score for one in found])
    assert {one.library for one in found} == {one.library for one in wholes} == {shipped().version}
    assert {one.model for one in found} == {"m-1"}
    assert {one.lacking for one in found} == {("same_system_prompt_hash",)}
    assert {one.toward for one in found} == {("policy_cited",)}
    assert all(one.threshold == NEAR.thresholds[one.kind] for one in found)
    assert wholes[-1].longitudinal(ESTIMATES) == pytest.approx(
        next(said.fact("longitudinal") for said in reversed(readings) if said.code == SESSION)
    )


@pytest.mark.parametrize(("subject", "streak"), [(DECLINES, 5), (COMPLIES, 0)], ids=["clean", "drifted"])
def test_the_longest_streak_without_drift_is_told(subject: Mapping[str, object], streak: int) -> None:
    told = [one for one in map(composite, session(subject, DECLINES, 5)) if one is not None]
    assert [one.probes for one in told] == [1, 2, 3, 4, 5]
    assert told[-1].longest == streak


@pytest.mark.parametrize("opinion", ["drift_signal", "legitimate"])
def test_a_second_opinion_has_the_effect_that_it_had(opinion: str) -> None:
    explained = opinion == "legitimate"
    said = compared(answered(BehaviorDetector().inquire(probed_case()), _alike))
    found = seen(said)
    assert found is not None
    second = replace(found, opinion=opinion, explained=explained)
    assert second.scored(ESTIMATES) == (0.0 if explained else ESTIMATES.thresholds[found.kind])


def _alike(query: Query) -> Reply:
    return Reply(query=query, model="m", draws=(Draw(text=json.dumps(DECLINES)),) * query.samples)


def test_other_readings_are_none_and_so_are_those_of_before() -> None:
    said = compared(answered(BehaviorDetector().inquire(probed_case()), _alike))
    assert composite(said) is None
    assert seen(replace(said, facts=tuple([one for one in said.facts if not one.name.startswith("toward_")]))) is None
    for code in (TOLD, "hijack.call"):
        assert seen(replace(said, code=code)) is None
    whole = next(one for one in session(DECLINES, DECLINES, 1) if one.code == SESSION)
    assert seen(whole) is None
    assert composite(replace(whole, facts=())) is None
