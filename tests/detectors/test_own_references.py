"""What a session is held against: the operator's own benign contexts where they are enough, else the shipped ones."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from theodolite.core.event import MessageObserved, ProbeRequested
from theodolite.core.gate import Gate, Shown
from theodolite.core.inquiry import Inquiry, Message
from theodolite.core.reading import Failure, Reading
from theodolite.core.window import Window
from theodolite.detectors.behavior.arms import ProbeCase
from theodolite.detectors.behavior.detector import SESSION, BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.library import shipped
from theodolite.detectors.behavior.references import Kind, Length, Reference, held_against, lacking, like, nearest
from theodolite.detectors.behavior.schedule import ScheduleSettings
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.monitor import Monitor
from theodolite.testing.fakes import PolicyModel
from theodolite.testing.fakes.policies import TAINT
from theodolite.testing.sessions import stamped

SIZES = {Length.BRIEF: 20, Length.SHORT: 900, Length.MEDIUM: 4_000, Length.LONG: 9_000}


def own(length: Length, count: int = 30, hard: int = 10) -> list[Reference]:
    return [
        Reference(
            id=f"own-{n}",
            kind=Kind.HARD if n < hard else Kind.PLAIN,
            topic="own",
            said=(Message("user", f"{n} " + "x" * SIZES[length]),),
        )
        for n in range(count)
    ]


def shown(detector: BehaviorDetector, length: Length) -> set[Message]:
    """Return what is said in the benign contexts that ten probes of a session of that length get."""
    window, state = Window(secret=b"s"), detector.begin()
    contexts: list[tuple[Message, ...]] = []
    for event in stamped(
        [MessageObserved(role="user", text="y" * SIZES[length]), *[ProbeRequested(reason="now")] * 10]
    ):
        window.push(event)
        for answer in detector.update(state, event, window):
            assert isinstance(answer, Inquiry)
            assert isinstance(answer.subject, ProbeCase)
            contexts.append(answer.subject.reference)
    assert len(contexts) == 10
    return {message for context in contexts for message in context}


def said(contexts: Sequence[Reference]) -> set[Message]:
    return {message for context in contexts for message in context.said}


@pytest.mark.parametrize("length", [Length.BRIEF, Length.SHORT, Length.MEDIUM])
def test_thirty_of_a_length_take_the_place_of_the_shipped_ones_and_fewer_do_not(length: Length) -> None:
    assert held_against(length, own(length)) == tuple(own(length))
    assert held_against(length, own(length, 29)) == held_against(length) == like(length)
    assert held_against(length, own(Length.LONG)) == like(length)


@pytest.mark.parametrize(
    ("hard", "why"),
    [
        (0, "0 of 30 benign contexts of the length 'LENGTH' are of the kind 'hard', and at least 10 of each kind"),
        (9, "9 of 30 benign contexts of the length 'LENGTH' are of the kind 'hard', and at least 10 of each kind"),
        (10, ""),
        (20, ""),
        (21, "9 of 30 benign contexts of the length 'LENGTH' are of the kind 'plain', and at least 10 of each kind"),
        (30, "0 of 30 benign contexts of the length 'LENGTH' are of the kind 'plain', and at least 10 of each kind"),
    ],
)
@pytest.mark.parametrize("length", list(Length))
def test_against_one_kind_alone_no_session_is_held_and_it_is_said_which_is_lacking(
    length: Length, hard: int, why: str
) -> None:
    contexts = own(length, hard=hard)
    assert lacking(length, contexts).startswith(why.replace("LENGTH", length.value))
    assert bool(lacking(length, contexts)) is bool(why)
    assert (nearest(length, contexts) == tuple(contexts)) is not bool(why)
    if why:
        assert nearest(length, contexts) == nearest(length)
        with pytest.raises(ValueError, match=f"of the length '{length.value}' are of the kind"):
            like(length, contexts)
    # Those of another length make up for nothing.
    other = Length.LONG if length is Length.BRIEF else Length.BRIEF
    assert bool(lacking(length, [*contexts, *own(other, hard=30), *own(other, hard=0)])) is bool(why)


def test_long_sessions_have_the_operator_s_contexts_or_those_of_medium_length() -> None:
    assert nearest(Length.LONG, own(Length.LONG)) == tuple(own(Length.LONG))
    assert nearest(Length.LONG) == like(Length.MEDIUM)
    assert nearest(Length.LONG, own(Length.MEDIUM)) == tuple(own(Length.MEDIUM))
    with pytest.raises(ValueError, match="0 benign contexts are of the length 'long'"):
        held_against(Length.LONG, own(Length.MEDIUM))


@pytest.mark.parametrize("length", list(Length))
def test_a_probe_shows_the_operator_s_own_also_once_gates_are_known(length: Length) -> None:
    settings = BehaviorSettings(
        scheduled=False, schedule=ScheduleSettings(jitter_seconds=0.0, cooldown_window_seconds=0.0)
    )
    detector = BehaviorDetector(settings, references=own(length))
    assert shown(BehaviorDetector(settings), length) <= said(nearest(length))
    for one in (detector, detector.with_gates({})):
        messages = shown(one, length)
        assert len(messages) > 3
        assert messages <= said(own(length))


def gate() -> Gate:
    """Return the gate of a model that shows probabilities, measured behind brief contexts."""
    library = shipped()
    return Gate(
        model="m-1",
        prompt_hash="",
        library=library.version,
        version=BehaviorDetector.version,
        wording="proceed",
        shown=Shown.PROBABILITIES,
        date="2026-11-30",
        pairs=12,
        auc=1.0,
        violation=-3.0,
        twin=3.0,
        decline_share=1.0,
        conform_share=1.0,
        spread=0.1,
        passed=True,
        references={"brief": {probe.probe_id: tuple(map(float, range(30))) for probe in library.probes}},
    )


def test_of_a_long_session_drawn_decisions_count_and_it_is_said_why_no_exact_one_is_read() -> None:
    detector = BehaviorDetector(BehaviorSettings(scheduled=False), gates={"m-1": gate()})
    model = PolicyModel(templates=shipped().templates, name="m-1", drift=12.0, anew=True)
    monitor = Monitor([detector], redactor=RuleRedactor(), secret=bytes(range(32)))
    with monitor.session("s-1") as session:
        session.observe(MessageObserved(role="user", text=f"{TAINT} " + "y " * 4_500))
        session.request_probe("now")
        (decision,) = session.drain_sync(model.reply)
    failures = [signal.said.detail for signal in decision.signals if isinstance(signal.said, Failure)]
    assert len(failures) == 1
    assert "no benign contexts of length long were measured: measure some with --gate" in failures[0]
    whole = next(signal.said for signal in decision.signals if signal.code == SESSION)
    assert isinstance(whole, Reading)
    decided = whole.fact("decided")
    assert isinstance(decided, float)
    assert decided > 1.0
    assert whole.fact("exactly") == 1.0
    assert whole.score > 0.0
