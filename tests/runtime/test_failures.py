"""A monitor that fails is seen: in the decision, in the record, and in the coverage. The host never meets its fault."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

import msgspec
import pytest
from msgspec import Struct

from theodolite.core.calibration import Band
from theodolite.core.detector import Answer, Feature
from theodolite.core.errors import StoreError
from theodolite.core.event import AnyEvent, Event, ModelCalled, ProbeRequested, ToolCallProposed, TurnEnded
from theodolite.core.inquiry import Dialogue, Inquiry, Query, Reply
from theodolite.core.policy import Action, Decision, Mode, Policy
from theodolite.core.reading import Cause, Evidence, Fact, Failure, Reading
from theodolite.core.redaction import Redacted
from theodolite.core.store import Entry, Kind, Record, verify
from theodolite.core.window import Window
from theodolite.features.folds import Folds
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.drive import Panel
from theodolite.runtime.ledger import KeptCoverage, KeptDecision
from theodolite.runtime.monitor import Monitor
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import (
    AskingDetector,
    FullStore,
    NonsenseDetector,
    Question,
    QuietDetector,
    RaisingDetector,
    ScriptedDetector,
    ScriptedVerifier,
    Tally,
)


class Silent(Exception):  # noqa: N818 - an exception whose text cannot be had
    def __str__(self) -> str:
        raise RuntimeError("even this raises")


class Speaking:
    """Says whatever it is told to, at every event; `inquire` included."""

    name = "speaking"
    version = "1"
    needs: frozenset[Feature] = frozenset()
    reads: frozenset[type[Event]] = frozenset({TurnEnded, ToolCallProposed})
    bands: Mapping[str, Band] = {"speaking.x": Band(alert=0.5)}
    subject = Question

    def __init__(self, said: Callable[[], object]) -> None:
        self.said = said

    def begin(self) -> Tally:
        return Tally()

    def update(self, state: Tally, event: Event, window: Window) -> Answer:
        del state, event, window
        answer: Answer = self.said()  # type: ignore[assignment] # pyright: ignore[reportAssignmentType] - or what a plug-in takes for one
        return answer

    def inquire(self, subject: Struct) -> Dialogue:
        raise AssertionError(subject)


# Python code that ignores types, as plug-ins may.
any_reading: Callable[..., Reading] = Reading
any_inquiry: Callable[..., Inquiry] = Inquiry


def reading(**changes: object) -> Reading:
    return any_reading(**{"detector": "speaking", "version": "1", "code": "speaking.x", "score": 0.25, **changes})


def inquiry(**changes: object) -> Inquiry:
    subject = Question(prompt="?", seq=0)
    return any_inquiry(**{"asker": "speaking", "version": "1", "about": 0, "subject": subject, **changes})


def failures(decision: Decision) -> list[Failure]:
    return [signal.said for signal in decision.signals if isinstance(signal.said, Failure)]


def shown_everywhere(monitor: Monitor, store: MemoryStore, decision: Decision, detector: str) -> Failure:
    """Return the one failure of a decision, after looking for it in the record and in the coverage."""
    [failure] = failures(decision)
    assert failure.detector == detector
    kept = [record for record in store.read(session="s-1", code=f"{detector}.failure") if record.payload]
    [record] = kept
    assert record.payload is not None
    assert msgspec.json.decode(record.payload, type=KeptDecision).decision == decision
    assert monitor.session("s-1").coverage().failures == {detector: 1}
    assert verify(store).intact
    return failure


@pytest.mark.parametrize(
    ("error", "cause", "detail"),
    [
        (RuntimeError("the index is gone"), Cause.ERROR, "RuntimeError: the index is gone"),
        (KeyError("x"), Cause.ERROR, "KeyError: 'x'"),
        (ValueError("bad"), Cause.MALFORMED, "ValueError: bad"),
        (TypeError("bad"), Cause.MALFORMED, "TypeError: bad"),
        (RecursionError(), Cause.ERROR, "RecursionError"),
        (MemoryError(), Cause.ERROR, "MemoryError"),
        (RuntimeError("\ud800"), Cause.ERROR, r"RuntimeError: \ud800"),
        (ExceptionGroup("many", [ExceptionGroup("few", [ValueError("x")])]), Cause.MALFORMED, "ValueError: x"),
        (TimeoutError("x"), Cause.TIMEOUT, "TimeoutError: x"),
        (StoreError("the disk is full"), Cause.ERROR, "the disk is full"),
    ],
)
def test_an_update_that_raises_is_a_failure_everywhere(error: Exception, cause: Cause, detail: str) -> None:
    store = MemoryStore()
    monitor = Monitor([RaisingDetector(error=error), QuietDetector()], store=store, redactor=RuleRedactor())
    decision = monitor.session("s-1").observe(TurnEnded())
    failure = shown_everywhere(monitor, store, decision, "raising")
    assert (failure.cause, failure.detail) == (cause, detail)


def test_an_exception_whose_text_raises_is_a_failure_too() -> None:
    decision = Monitor([RaisingDetector(error=Silent())], redactor=RuleRedactor()).session("s-1").observe(TurnEnded())
    [failure] = failures(decision)
    assert failure.detail.endswith("Silent: <exception str() failed>")


def test_a_detector_that_raises_does_not_keep_the_others_from_being_heard() -> None:
    first, last = ScriptedDetector(script={TurnEnded: 0.75}, name="first"), ScriptedDetector(script={TurnEnded: 0.75})
    decision = Monitor([first, RaisingDetector(), last]).session("s-1").observe(TurnEnded())
    assert [signal.said.detector for signal in decision.signals] == ["first", "raising", "scripted"]


@pytest.mark.parametrize(
    "nonsense", [None, "", "drift", 0, 1.5, {}, {"score": 1}, frozenset[int](), iter([1]), object()]
)
def test_an_update_that_answers_with_nonsense_is_a_failure_everywhere(nonsense: object) -> None:
    store = MemoryStore()
    monitor = Monitor([NonsenseDetector(nonsense=nonsense)], store=store, redactor=RuleRedactor())
    decision = monitor.session("s-1").observe(TurnEnded())
    failure = shown_everywhere(monitor, store, decision, "nonsense")
    assert failure.cause is Cause.MALFORMED
    assert failure.detail.startswith(f"TypeError: update gave {type(nonsense).__name__}, not a tuple")


JUNK: dict[str, tuple[Callable[[], object], str]] = {
    "none in a tuple": (lambda: None, "NoneType is neither a Reading nor a Failure"),
    "a text in a tuple": (lambda: "drift", "str is neither"),
    "another's name": (lambda: reading(detector="margin"), "spoke in the name of margin 1"),
    "another version": (lambda: reading(version="2"), "spoke in the name of speaking 2"),
    "another's failure": (lambda: Failure(detector="x", version="1", cause=Cause.ERROR), "in the name of x 1"),
    "a code without a band": (lambda: reading(code="speaking.y"), "the code speaking.y, which is none of its own"),
    "evidence of another type": (lambda: reading(evidence=("event 4",)), "Encoding|Expected"),
    "a seq that is a text": (lambda: reading(evidence=(Evidence(kind="d.x", seqs=("4",)),)), "Expected `int`"),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as plug-ins may
    "a model that is a number": (lambda: reading(models=(5,)), "Expected `str`"),
    "an object that JSON cannot say": (lambda: reading(models=(object(),)), "unsupported"),
    "an asker that is another": (lambda: inquiry(asker="margin"), "an inquiry in the name of margin 1"),
    "an asker of another version": (lambda: inquiry(version="2"), "an inquiry in the name of speaking 2"),
    "an inquiry about the future": (lambda: inquiry(about=7), "about event 7, which has not happened"),
    "an inquiry about nothing": (lambda: inquiry(about=-1), "about event -1, which has not happened"),
    "an inquiry with another subject": (lambda: inquiry(subject=Tally()), "an inquiry about a Tally"),
    "an answer that cannot be made": (lambda: reading(score=math.nan), "outside"),
}


@pytest.mark.parametrize("junk", JUNK)
def test_what_is_no_answer_of_the_detector_s_is_a_failure_everywhere(junk: str) -> None:
    said, fault = JUNK[junk]
    store = MemoryStore()
    monitor = Monitor([Speaking(lambda: (said(),))], store=store, redactor=RuleRedactor())
    decision = monitor.session("s-1").observe(TurnEnded())
    failure = shown_everywhere(monitor, store, decision, "speaking")
    assert failure.cause is Cause.MALFORMED
    assert any(part in failure.detail for part in fault.split("|"))
    assert decision.open == 0


def test_an_inquiry_of_a_detector_that_cannot_ask_is_a_failure() -> None:
    opened = Inquiry(asker="nonsense", version="1", about=0, subject=Tally())
    decision = (
        Monitor([NonsenseDetector(nonsense=(opened,))], redactor=RuleRedactor()).session("s-1").observe(TurnEnded())
    )
    [failure] = failures(decision)
    assert "the detector has no method `inquire`" in failure.detail


def test_answers_before_the_nonsense_are_kept() -> None:
    monitor = Monitor([Speaking(lambda: [reading(), reading(score=0.75), "junk", reading()])])
    decision = monitor.session("s-1").observe(TurnEnded())
    assert [signal.alarmed for signal in decision.signals] == [False, True, False]
    assert len(failures(decision)) == 1


def test_what_a_detector_goes_on_to_change_is_not_what_was_said() -> None:
    facts = [Fact("rank", 1.0)]
    evidence = [Evidence(kind="speaking.x", seqs=(0,))]
    decision = (
        Monitor([Speaking(lambda: (reading(facts=facts, evidence=evidence),))]).session("s-1").observe(TurnEnded())
    )
    facts.append(Fact("rank", 2.0))
    evidence.clear()
    [signal] = decision.signals
    assert isinstance(signal.said, Reading)
    assert (signal.said.facts, len(signal.said.evidence)) == ((Fact("rank", 1.0),), 1)


# -- the store --------------------------------------------------------------------------------------------------------

ALARM = ScriptedDetector(script={TurnEnded: 0.75, ToolCallProposed: 0.75})
CALL = ToolCallProposed(tool="send_money", arguments={})


def test_a_store_that_is_full_is_a_failure_in_the_decision_and_in_the_coverage() -> None:
    store = FullStore(MemoryStore(), room=0)
    monitor = Monitor([ALARM], store=store, redactor=RuleRedactor())
    session = monitor.session("s-1")
    decision = session.observe(CALL)
    [failure] = failures(decision)
    assert (failure.detector, failure.cause, failure.detail) == (
        "store",
        Cause.ERROR,
        "the store is full: give it more room",
    )
    assert decision.allowed
    assert session.coverage().failures == {"store": 1}

    store.room = 100
    session.observe(TurnEnded())
    session.close()
    kept = [record for record in store.read(session="s-1") if record.kind is Kind.COVERAGE]
    assert kept[0].payload is not None
    assert msgspec.json.decode(kept[0].payload, type=KeptCoverage).coverage.failures == {"store": 1}
    assert verify(store).intact


@pytest.mark.parametrize("fail_closed", [False, True])
def test_a_call_whose_record_cannot_be_kept_is_refused_only_where_the_operator_fails_closed(
    fail_closed: bool,  # noqa: FBT001 - a column of the table
) -> None:
    store = FullStore(MemoryStore(), room=0)
    session = Monitor([ALARM], store=store, policy=Policy(fail_closed=fail_closed)).session("s-1")
    assert session.observe(CALL).allowed is not fail_closed
    assert session.observe(TurnEnded()).allowed


def test_a_store_that_is_full_when_an_event_is_cited_loses_the_decision_visibly() -> None:
    store = FullStore(MemoryStore(), room=1)
    session = Monitor([ALARM], store=store).session("s-1")
    assert [failure.detector for failure in failures(session.observe(CALL))] == ["store"]
    store.room = 100
    assert failures(session.observe(CALL)) == []
    assert verify(store).intact


@pytest.mark.parametrize("mode", [Mode.ENFORCE, Mode.WARN])
def test_a_detector_in_enforce_that_fails_refuses_a_call_where_the_operator_fails_closed(mode: Mode) -> None:
    monitor = Monitor([RaisingDetector()], policy=Policy(modes={"raising": mode}, fail_closed=True))
    decision = monitor.session("s-1").observe(CALL)
    assert decision.allowed is (mode is Mode.WARN)


# -- inquiries that find no place -------------------------------------------------------------------------------------


def test_an_inquiry_that_finds_the_queue_full_is_abandoned_visibly() -> None:
    store = MemoryStore()
    monitor = Monitor([AskingDetector()], capacity=1, store=store, redactor=RuleRedactor())
    first, second = monitor.session("s-0"), monitor.session("s-1")
    assert (first.request_probe("r").open, second.waiting) == (1, 0)
    decision = second.request_probe("r")
    failure = shown_everywhere(monitor, store, decision, "asking")
    assert (failure.cause, failure.detail, decision.open) == (Cause.ABANDONED, "the queue of inquiries is full", 0)
    first.close()
    assert second.request_probe("r").open == 1


def test_a_second_opinion_that_finds_the_queue_full_is_abandoned_in_the_same_decision() -> None:
    unsure = ScriptedDetector(script={TurnEnded: 0.5})
    verifier = ScriptedVerifier(codes=frozenset({"scripted.scripted"}))
    store = MemoryStore()
    monitor = Monitor([unsure], verifiers=[verifier], capacity=0, store=store)
    decision = monitor.session("s-1").observe(TurnEnded())
    assert shown_everywhere(monitor, store, decision, "scripted_verifier").cause is Cause.ABANDONED
    assert decision.signals[0].ambiguous


def test_closing_abandons_what_is_open_visibly() -> None:
    store = MemoryStore()
    monitor = Monitor([AskingDetector()], store=store, redactor=RuleRedactor(), capacity=1)
    session = monitor.session("s-1")
    opener = session.request_probe("r")
    [decision] = session.close()
    [failure] = failures(decision)
    assert (decision.about, decision.seq, decision.open) == (opener.seq, opener.seq + 1, 0)
    assert (failure.cause, failure.detail) == (
        Cause.ABANDONED,
        "the session was closed before the inquiry was settled",
    )
    assert [record.kind for record in store.read(session="s-1")] == [Kind.DECISION, Kind.COVERAGE]
    assert session.coverage().failures == {"asking": 1}
    assert monitor.session("s-2").request_probe("r").open == 1
    assert ProbeRequested.__name__ in session.coverage().events


# -- redactors, stores and recorders of others ------------------------------------------------------------------------


class Broken(RuleRedactor):
    """A redactor that fails at some texts: by an exception, or by an answer that is no text."""

    def __init__(self, fails: Callable[[str], object]) -> None:
        super().__init__()
        self.fails = fails

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        passed: Redacted = self.fails(value) if "confided" in value else super().text(value, secrets)  # type: ignore[assignment] # pyright: ignore[reportAssignmentType] - as plug-ins may
        return passed

    def field(self, name: str, value: str) -> Redacted:
        raise LookupError(name, value)


def raising(value: str) -> object:
    raise LookupError(f"no rule for {value}")


def speechless(value: str) -> object:
    del value
    return None


CONFIDED = Evidence(kind="speaking.x", seqs=(0,), observed="a number that was confided")


@pytest.mark.parametrize(
    ("fails", "cause"), [(raising, Cause.ERROR), (speechless, Cause.MALFORMED)], ids=["raises", "answers None"]
)
def test_a_redactor_that_fails_lets_nothing_pass_and_is_seen_in_the_same_decision(
    fails: Callable[[str], object], cause: Cause
) -> None:
    store = MemoryStore()
    said = reading(score=0.75, evidence=(CONFIDED,), facts=(Fact("word", "confided"),))
    monitor = Monitor([Speaking(lambda: (said,))], store=store, redactor=Broken(fails))
    decision = monitor.session("s-1").observe(TurnEnded())
    failure = shown_everywhere(monitor, store, decision, "redactor")
    assert failure.cause is cause
    passed = decision.signals[0].said
    assert isinstance(passed, Reading)
    assert passed.evidence[0].observed == "[REDACTED:TEXT]"
    assert (decision.signals[0].alarmed, passed.fact("word")) == (True, "[REDACTED:UNKNOWN_FIELD]")
    assert all(b"confided" not in bytes(record.payload or b"") for record in store.read())
    assert monitor.session("s-1").observe(TurnEnded()).seq == 1


def test_a_redactor_that_fails_at_an_event_that_is_cited_is_seen_and_the_record_is_kept_without_the_text() -> None:
    store = MemoryStore()
    said = reading(score=0.75, evidence=(Evidence(kind="speaking.x", seqs=(0,)),))
    session = Monitor([Speaking(lambda: (said,))], store=store, redactor=Broken(raising)).session("s-1")
    [failure] = failures(session.observe(ToolCallProposed(tool="pay", arguments={"to": "what was confided"})))
    assert (failure.detector, failure.cause) == ("redactor", Cause.ERROR)
    assert [record.kind for record in store.read()] == [Kind.EVENT, Kind.DECISION]
    assert all(b"confided" not in bytes(record.payload or b"") for record in store.read())
    assert session.coverage().failures == {"redactor": 1}


class Unplugged(MemoryStore):
    """A store that raises what a store may not."""

    def append(self, entry: Entry, *, durable: bool = False) -> Record:
        raise ConnectionError(f"no route to the store of {entry.session}, durable {durable}")


@pytest.mark.parametrize("fail_closed", [False, True])
def test_a_store_that_raises_what_it_may_not_is_a_failure_like_any_other(
    fail_closed: bool,  # noqa: FBT001 - a column of the table
) -> None:
    monitor = Monitor([ALARM], store=Unplugged(), redactor=RuleRedactor(), policy=Policy(fail_closed=fail_closed))
    session = monitor.session("s-1")
    decision = session.observe(CALL)
    [failure] = failures(decision)
    assert (failure.detector, failure.cause) == ("store", Cause.ERROR)
    assert failure.detail == "ConnectionError: no route to the store of s-1, durable False"
    assert (decision.allowed, decision.action) == (not fail_closed, Action.ELEVATED_REVIEW)
    assert session.coverage().failures == {"store": 1}
    with pytest.raises(StoreError, match="ConnectionError: no route to the store of s-1"):
        session.close()
    assert len(monitor.sessions) == 0


def test_a_recorder_that_raises_is_a_failure_and_the_decision_is_kept() -> None:
    def record(event: AnyEvent) -> None:
        raise OSError(f"no place for event {event.seq}")

    store = MemoryStore()
    session = Monitor([ALARM], store=store, redactor=RuleRedactor(), recorder=record).session("s-1")
    [failure] = failures(session.observe(CALL))
    assert (failure.detector, failure.detail) == ("recorder", "OSError: no place for event 0")
    assert [record.kind for record in store.read()] == [Kind.EVENT, Kind.DECISION]
    assert [failure.detector for failure in failures(session.observe(TurnEnded()))] == ["recorder"]


def test_a_panel_that_raises_is_a_failure_of_the_asker_and_leaves_nothing_open() -> None:
    class Torn(Panel):
        async def ask_all(self, queries: tuple[Query, ...]) -> tuple[Reply | Failure, ...]:
            raise LookupError(f"{len(queries)} queries are lost")

    store = MemoryStore()
    monitor = Monitor([AskingDetector()], panel=Torn(), store=store, redactor=RuleRedactor())
    session = monitor.session("s-1")
    session.request_probe("r")
    [decision] = session.drain_sync()
    failure = shown_everywhere(monitor, store, decision, "asking")
    assert (failure.cause, failure.detail, session.waiting) == (Cause.ERROR, "LookupError: 2 queries are lost", 0)


def test_a_detector_cannot_forget_that_a_model_is_not_the_session_s() -> None:
    session = Monitor([Speaking(lambda: (reading(score=0.75, models=("m-1",)),))]).session("s-1")
    before = session.observe(TurnEnded())
    session.observe(ModelCalled(model="m-1"))
    after = session.observe(TurnEnded())
    assert [(item.signals[0].acts, item.action) for item in (before, after)] == [
        (False, Action.LOG_ONLY),
        (True, Action.ELEVATED_REVIEW),
    ]


def test_a_fault_of_the_folds_is_a_failure_and_the_call_is_judged_still(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Folds, event: Event, operator: object) -> None:
        del self, operator
        if not isinstance(event, TurnEnded):
            raise RecursionError("too deep")

    monkeypatch.setattr(Folds, "fold", broken)
    with Monitor([QuietDetector()], policy=Policy(hold=True)).session("s") as session:
        decision = session.observe(ToolCallProposed(tool="bash", arguments={"command": "x"}))
        after = session.observe(TurnEnded())
    failures = [signal.said for signal in decision.signals if isinstance(signal.said, Failure)]
    assert [(failure.detector, failure.cause) for failure in failures] == [("features", Cause.ERROR)]
    assert not any(isinstance(signal.said, Failure) for signal in after.signals)
