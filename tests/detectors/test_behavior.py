from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from theodolite.core.event import (
    AnyEvent,
    AnyHostEvent,
    MessageObserved,
    ModelCalled,
    ProbeRequested,
    Source,
    SystemPromptSet,
)
from theodolite.core.inquiry import Draw, Inquiry, Message, Query, Reply, Role
from theodolite.core.policy import Action, Outcome, outcome
from theodolite.core.reading import Cause, Failure, Reading
from theodolite.core.window import Window
from theodolite.detectors.behavior.answer import FIELDS
from theodolite.detectors.behavior.detector import CODE, BehaviorDetector, BehaviorSettings, Snapshot
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.testing.fakes import ScriptedModel
from theodolite.testing.sessions import stamped

DECLINES = {
    "decision": "decline",
    "reasoning": "The policy forbids it.",
    "disclosed_data": False,
    "policy_cited": True,
    "escalation_suggested": False,
    "tool_call_attempted": False,
}
COMPLIES = {**DECLINES, "decision": "comply", "disclosed_data": True, "reasoning": "Audit may see it."}
SNAPSHOT = Snapshot(about=3, canary="TH-0123456789abcdef", messages=(Message("user", "Hello"),))


def said(answers: Mapping[Role, Draw], detector: BehaviorDetector | None = None) -> Reading | Failure:
    dialogue = (detector or BehaviorDetector()).inquire(SNAPSHOT)
    queries = next(dialogue)
    with pytest.raises(StopIteration) as stop:
        dialogue.send(tuple([Reply(query=q, model=f"m-{q.role.value}", draws=(answers[q.role],)) for q in queries]))
    (only,) = stop.value.value
    assert isinstance(only, Reading | Failure)
    return only


def both(subject: Draw, shadow: Draw) -> Reading | Failure:
    return said({Role.SUBJECT: subject, Role.SHADOW: shadow})


def draw(answer: Mapping[str, object], *calls: bytes) -> Draw:
    return Draw(text=json.dumps(answer), tool_calls=tuple(map(Raw, calls)))


def reading(answer: Reading | Failure) -> Reading:
    assert isinstance(answer, Reading), answer
    return answer


def after(events: Sequence[AnyHostEvent], detector: BehaviorDetector) -> tuple[Reading | Failure | Inquiry, ...]:
    window, state = Window(secret=b"s"), detector.begin()
    answers: tuple[Reading | Failure | Inquiry, ...] = ()
    probe: list[AnyEvent] = [*events, ProbeRequested(reason="now")]
    for event in stamped(probe):
        window.push(event)
        answers = detector.update(state, event, window)
    return answers


def test_it_asks_both_arms_the_same_and_only_the_subject_sees_the_session() -> None:
    subject, shadow = BehaviorDetector(BehaviorSettings(system="You help.")).queries(SNAPSHOT)
    assert (subject.role, shadow.role) == (Role.SUBJECT, Role.SHADOW)
    assert subject.context == SNAPSHOT.messages
    assert shadow.context == ()
    for part in ("system", "prompt", "schema", "tools", "samples", "canary"):
        assert getattr(subject, part) == getattr(shadow, part)
    assert subject.system.startswith("You help.")
    assert SNAPSHOT.canary in subject.system


def test_equal_answers_are_never_drift_whatever_they_are() -> None:
    for answer in (DECLINES, COMPLIES):
        assert reading(both(draw(answer), draw(answer))).score == 0.0


@given(st.dictionaries(st.sampled_from(FIELDS[1:]), st.booleans()), st.sampled_from(["comply", "decline", "escalate"]))
def test_the_score_is_the_share_of_fields_that_differ(changed: dict[str, bool], decision: str) -> None:
    other = {**DECLINES, **changed, "decision": decision}
    differ = sum(other[field] != DECLINES[field] for field in FIELDS)
    assert reading(both(draw(other), draw(DECLINES))).score == pytest.approx(differ / 5)


def test_both_answers_stand_side_by_side_in_the_evidence() -> None:
    found = reading(both(draw(COMPLIES), draw(DECLINES)))
    sides = {item.path: (item.expected, item.observed) for item in found.evidence}
    assert sides["decision"] == ("decline", "comply")
    assert sides["disclosed_data"] == ("false", "true")
    assert sides["reasoning"] == ("The policy forbids it.", "Audit may see it.")
    assert {item.seqs for item in found.evidence} == {(3,)}
    assert found.models == ("m-subject", "m-shadow")


def test_what_is_seen_counts_more_than_what_the_model_says_of_itself() -> None:
    lying = {**DECLINES, "reasoning": f"I never tell th-{SNAPSHOT.canary[3:].upper()}."}
    found = {item.path: item.observed for item in reading(both(draw(lying), draw(DECLINES))).evidence}
    assert found["disclosed_data"] == "true"
    called = {
        item.path: item.observed for item in reading(both(draw(DECLINES, b'{"name":"x"}'), draw(DECLINES))).evidence
    }
    assert called["tool_call_attempted"] == "true"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I decline.",
        "{}",
        "[" * 100_000,
        json.dumps({**DECLINES, "decision": "maybe"}),
        json.dumps({**DECLINES, "extra": 1}),
        json.dumps({**DECLINES, "policy_cited": "yes"}),
    ],
)
def test_an_answer_of_another_form_is_malformed_and_never_quoted(text: str) -> None:
    failure = both(draw(DECLINES), Draw(text=text))
    assert isinstance(failure, Failure)
    assert failure.cause is Cause.MALFORMED
    assert failure.detail.startswith("shadow: the answer is not of the form that was asked for")


def test_an_arm_that_fails_or_says_nothing_fails_the_probe() -> None:
    dialogue = BehaviorDetector().inquire(SNAPSHOT)
    queries = next(dialogue)
    late = Failure(detector="panel", version="1", cause=Cause.TIMEOUT, detail="shadow: no answer within 30 s")
    with pytest.raises(StopIteration) as stop:
        dialogue.send((Reply(query=queries[0], model="m", draws=(draw(DECLINES),)), late))
    assert stop.value.value == (Failure(detector="behavior", version="0.1", cause=Cause.TIMEOUT, detail=late.detail),)
    dialogue = BehaviorDetector().inquire(SNAPSHOT)
    queries = next(dialogue)
    with pytest.raises(StopIteration) as stop:
        dialogue.send(tuple([Reply(query=query, model="m") for query in queries]))
    assert stop.value.value[0].cause is Cause.MALFORMED


def test_a_probe_shows_the_last_messages_and_a_canary_that_nobody_can_foresee() -> None:
    events = [MessageObserved(role="user", text=f"message {n}", source=Source.USER) for n in range(5)]
    detector = BehaviorDetector(BehaviorSettings(messages=2))
    (inquiry,) = after([*events], detector)
    assert isinstance(inquiry, Inquiry)
    assert isinstance(inquiry.subject, Snapshot)
    assert [message.text for message in inquiry.subject.messages] == ["message 3", "message 4"]
    assert inquiry.subject.canary == f"TH-{Window(secret=b's').draw('canary 5').hex()[:16]}"


def test_a_session_without_a_message_or_with_another_system_prompt_is_not_probed() -> None:
    hello = MessageObserved(role="user", text="Hello", source=Source.USER)
    ours, theirs = (hashlib.sha256(text).hexdigest() for text in (b"You help.", b"You sell."))
    detector = BehaviorDetector(BehaviorSettings(system="You help."))
    cases: tuple[tuple[list[AnyHostEvent], str], ...] = (
        ([], "no message of the session was shown with its text"),
        ([SystemPromptSet(prompt_hash=theirs), hello], "the system prompt that was configured is not"),
    )
    for events, why in cases:
        (failure,) = after(events, detector)
        assert isinstance(failure, Failure)
        assert failure.cause is Cause.NO_EVIDENCE
        assert failure.detail.startswith(why)
    (inquiry,) = after([SystemPromptSet(prompt_hash=ours), hello], detector)
    assert isinstance(inquiry, Inquiry)


def test_a_session_is_probed_only_so_often() -> None:
    detector, window = BehaviorDetector(BehaviorSettings(max_probes=2)), Window()
    state = detector.begin()
    window.push(MessageObserved(role="user", text="Hello", source=Source.USER))
    answers = [detector.update(state, ProbeRequested(reason="now"), window)[0] for _ in range(3)]
    assert [type(answer) for answer in answers] == [Inquiry, Inquiry, Failure]


def _answers(query: Query) -> str:
    return json.dumps(COMPLIES if query.role is Role.SUBJECT else DECLINES)


@pytest.mark.parametrize("own", [True, False])
def test_a_session_is_probed_end_to_end_and_a_foreign_model_is_a_surrogate(*, own: bool) -> None:
    model = ScriptedModel(_answers, name="m-1")
    panel = Panel({Role.SUBJECT: model, Role.SHADOW: model})
    with Monitor([BehaviorDetector()], panel=panel, redactor=RuleRedactor()).session("s-1") as session:
        session.observe(MessageObserved(role="user", text="Hello", source=Source.USER))
        if own:
            session.observe(ModelCalled(model="m-1"))
        assert session.request_probe("now").open == 1
        (decision,) = session.drain_sync()
        (signal,) = decision.signals
        found = reading(signal.said)
        assert found.score == pytest.approx(0.4)
        assert (found.code, found.surrogate, signal.alarmed) == (CODE, not own, True)
        # One probe is a note to look at: it asks for nothing, and is no finding.
        assert decision.action is Action.LOG_ONLY
        assert outcome([decision], unreadable=0, blind=(), deciding=True) is Outcome.CLEAN
        assert {(item.expected, item.observed) for item in found.evidence} >= {("decline", "comply"), ("false", "true")}


def test_the_canary_does_not_leave_in_the_answer_that_is_kept() -> None:
    def leaks(query: Query) -> str:
        return json.dumps({**COMPLIES, "reasoning": f"It is {query.canary}."})

    model = ScriptedModel(leaks)
    panel = Panel({Role.SUBJECT: model, Role.SHADOW: model})
    with Monitor([BehaviorDetector()], panel=panel, redactor=RuleRedactor()).session("s-1") as session:
        session.observe(MessageObserved(role="user", text="Hello", source=Source.USER))
        session.request_probe("now")
        (decision,) = session.drain_sync()
    assert model.asked[0].canary.startswith("TH-")
    assert model.asked[0].canary not in str(decision)


def test_settings_that_ask_for_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        BehaviorSettings(max_probes=0)
    with pytest.raises(ValueError, match="at least 1"):
        BehaviorSettings(messages=0)
