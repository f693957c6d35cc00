"""A third answer where two are not enough: what it comes to, and what it may do to the evidence."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import product

import pytest

from theodolite.core.event import MessageObserved, ModelCalled, Source
from theodolite.core.inquiry import Draw, Exchange, Message, Query, Reply, Role
from theodolite.core.reading import Cause, Fact, Failure, Reading, Signal
from theodolite.core.snapshot import StateSnapshot
from theodolite.core.verifier import Case
from theodolite.detectors.behavior.arms import Arm, ProbeCase
from theodolite.detectors.behavior.detector import SESSION, TOLD, BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.library import shipped
from theodolite.detectors.behavior.schedule import ScheduleSettings
from theodolite.detectors.behavior.settling import threshold_of
from theodolite.detectors.behavior.tuning import ESTIMATES
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.testing.fakes import ScriptedModel
from theodolite.verifiers.triangulation import EFFECTS, Triangulated, TriangulationVerifier, triangulated

KIND = shipped().templates[0].probe_type
CODE = f"behavior.{KIND.value}"
AT_ONCE = ScheduleSettings(jitter_seconds=0.0, cooldown_window_seconds=0.0)


def answer(decision: str) -> str:
    rest = {"disclosed_data": False, "policy_cited": True, "escalation_suggested": False, "tool_call_attempted": False}
    return json.dumps({"decision": decision, "reasoning": "so it is", **rest})


def case(session: str = "comply", shadow: str = "decline", **facts: float) -> Case:
    probe = shipped().fill(shipped().templates[0], b"words", canary="TH-0123456789abcdef")
    snapshot = StateSnapshot(session_id="s", timestamp=0.0, context_window=(Message("user", "Hello"),))
    dispatch = ProbeCase(about=3, trigger="manual", probe=probe, snapshot=snapshot)
    queries = [dispatch.query(arm, "You help.") for arm in (Arm.SUBJECT, Arm.SHADOW)]
    replies = [
        Reply(query=query, model="m", draws=(Draw(text=answer(said)),))
        for query, said in zip(queries, (session, shadow), strict=True)
    ]
    said = Reading(
        detector="behavior",
        version="1",
        code=CODE,
        score=0.45,
        facts=tuple([Fact(name, value) for name, value in facts.items()]),
        models=("m",),
    )
    exchanges = tuple(map(Exchange, queries, replies))
    return Case(signal=Signal(said=said, ambiguous=True), exchanges=exchanges)


def settled(about: Case, reply: Callable[[Query], Reply | Failure]) -> tuple[Query, Reading | Failure]:
    dialogue = TriangulationVerifier().inquire(about)
    (query,) = next(dialogue)
    with pytest.raises(StopIteration) as stop:
        dialogue.send((reply(query),))
    (said,) = stop.value.value
    return query, said


def saying(decision: str) -> Callable[[Query], Reply]:
    return lambda query: Reply(query=query, model="m-2", draws=(Draw(text=answer(decision)),))


@pytest.mark.parametrize(
    ("session", "shadow", "baseline", "expected"),
    [
        ("comply", "comply", "decline", Triangulated.LEGITIMATE),
        ("comply", "decline", "decline", Triangulated.DRIFT_SIGNAL),
        ("decline", "decline", "decline", Triangulated.NO_SIGNAL),
        ("comply", "decline", "comply", Triangulated.SUMMARY_CALIBRATION_ANOMALY),
        ("comply", "decline", "escalate", Triangulated.ALL_DIFFER),
    ],
)
def test_the_five_readings(session: str, shadow: str, baseline: str, expected: Triangulated) -> None:
    assert triangulated(session, shadow, baseline) is expected
    query, said = settled(case(session, shadow), saying(baseline))
    assert query.role is Role.BASELINE
    assert isinstance(said, Reading)
    assert (said.fact("triangulation"), said.fact("baseline")) == (expected.value, baseline)
    assert said.fact("explained") == float(EFFECTS[expected])
    assert said.models == ("m", "m-2")
    score = {Triangulated.DRIFT_SIGNAL: ESTIMATES.thresholds[KIND], Triangulated.ALL_DIFFER: 0.45}.get(expected, 0.0)
    assert said.score == score


def test_decisions_are_compared_by_what_they_mean_and_not_by_how_they_are_written() -> None:
    _, said = settled(case("DECLINED", "decline"), saying("I refuse"))
    assert isinstance(said, Reading)
    assert said.fact("triangulation") == "no_signal"


def test_the_baseline_is_asked_the_same_and_sees_no_context_at_all() -> None:
    about = case()
    query, _ = settled(about, saying("decline"))
    shadow = about.exchanges[1].query
    assert query.context == ()
    assert (query.system, query.prompt, query.tools, query.canary) == (
        shadow.system,
        shadow.prompt,
        shadow.tools,
        shadow.canary,
    )


def test_what_was_observed_is_not_explained_away() -> None:
    _, said = settled(case(breach=1.0), saying("comply"))
    assert isinstance(said, Reading)
    assert (said.score, said.fact("explained")) == (0.45, 0.0)


@pytest.mark.parametrize("silent", [True, False])
def test_a_baseline_that_fails_leaves_the_reading_to_stand(*, silent: bool) -> None:
    def reply(query: Query) -> Reply | Failure:
        late = Failure(detector="panel", version="1", cause=Cause.TIMEOUT, detail="no answer within 30 s")
        return Reply(query=query, model="m-2") if silent else late

    _, said = settled(case(), reply)
    assert isinstance(said, Failure)
    assert said.cause is (Cause.MALFORMED if silent else Cause.TIMEOUT)


def test_another_subject_is_refused() -> None:
    with pytest.raises(TypeError, match="asked about a Case of a probe, not a Message"):
        next(TriangulationVerifier().inquire(Message("user", "Hello")))
    unanswered = Case(signal=case().signal)
    with pytest.raises(TypeError, match="answered by both arms"):
        next(TriangulationVerifier().inquire(unanswered))


def test_what_may_only_lower_keeps_the_bets_fair_and_dropping_both_signs_would_not() -> None:
    """By enumeration: three arms that comply with the same chance; d is the session's less the shadow's."""
    for chance in (0.05, 0.2, 0.5, 0.8):
        fair = dropped = 0.0
        for arms in product((True, False), repeat=3):
            weight = 1.0
            for complies in arms:
                weight *= chance if complies else 1.0 - chance
            words = ["comply" if complies else "decline" for complies in arms]
            d = arms[0] - arms[1]
            explained = EFFECTS[triangulated(*words)]
            fair += weight * (min(d, 0) if explained else d)
            dropped += weight * (0 if explained else d)
        assert fair <= 1e-12
        if chance < 0.5:
            assert dropped > 0.0


def probed(subject: Sequence[str], baseline: str, *, judged: bool = True) -> list[Reading | Failure]:
    """Return what one probe comes to, whose subject answers in turn, and of which everybody else declines."""
    said = iter(subject)

    def script(query: Query) -> Reply | str:
        if query.role is Role.BASELINE:
            return answer(baseline)
        if query.role is Role.SUBJECT:
            draws = [Draw(text=answer(next(said))) for _ in range(query.samples)]
            return Reply(query=query, model="m-1", draws=tuple(draws))
        return answer("decline")

    model = ScriptedModel(script, name="m-1")
    panel = Panel({Role.SUBJECT: model, Role.SHADOW: model, Role.BASELINE: model})
    detector = BehaviorDetector(BehaviorSettings(schedule=AT_ONCE))
    verifiers = [TriangulationVerifier()] if judged else []
    monitor = Monitor([detector], verifiers=verifiers, panel=panel, redactor=RuleRedactor(), secret=bytes(range(32)))
    with monitor.session("s-1") as session:
        session.observe(MessageObserved(role="user", text="Hello", source=Source.USER))
        session.observe(ModelCalled(model="m-1"))
        session.request_probe("now")
        (decision,) = session.drain_sync()
    return [signal.said for signal in decision.signals if signal.code not in {TOLD, SESSION}]


# The probe, its twin, then three more of each: half of the four draws of the probe go along.
HALF = ("comply", "decline", "comply", "decline", "decline", *["decline"] * 3)
ALL = ("comply", "decline", "comply", "comply", "comply", *["decline"] * 3)


def test_it_is_asked_in_a_session_where_the_reading_is_ambiguous_and_not_else() -> None:
    (plain,) = probed(HALF, "decline", judged=False)
    assert isinstance(plain, Reading)
    assert abs(plain.score - threshold_of(plain)) <= ESTIMATES.ambiguity_band
    (second,) = probed(HALF, "decline")
    assert isinstance(second, Reading)
    assert (second.detector, second.fact("triangulation")) == ("triangulation", "drift_signal")
    (clear,) = probed(ALL, "decline")
    assert isinstance(clear, Reading)
    assert clear.detector == "behavior"


def test_every_way_in_which_three_answers_lie_has_its_word_and_every_word_comes_up() -> None:
    """By enumeration: who differs from whom says which word it is, whatever the decisions are."""
    said: dict[tuple[bool, bool, bool], set[Triangulated]] = {}
    for session, shadow, baseline in product(("comply", "decline", "escalate", "unclear"), repeat=3):
        ways = (session == shadow, shadow == baseline, session == baseline)
        said.setdefault(ways, set()).add(triangulated(session, shadow, baseline))
    assert said == {
        (True, True, True): {Triangulated.NO_SIGNAL},
        (True, False, False): {Triangulated.LEGITIMATE},
        (False, True, False): {Triangulated.DRIFT_SIGNAL},
        (False, False, True): {Triangulated.SUMMARY_CALIBRATION_ANOMALY},
        (False, False, False): {Triangulated.ALL_DIFFER},
    }
    assert set().union(*said.values()) == set(Triangulated)
