"""Sessions as replay gives them: real ones, and ones made up for a single question."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from msgspec.structs import replace

from theodolite.core.coverage import Coverage, Sight
from theodolite.core.event import AnyEvent
from theodolite.core.policy import Action, Decision, Outcome
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Cause, Evidence, Failure, Level, Reading, Signal, Status
from theodolite.detectors.trajectory.margin import MarginDetector
from theodolite.detectors.trajectory.shadow_memory import ShadowMemoryDetector
from theodolite.redactors.rules import RuleRedactor
from theodolite.reports.layout import plain
from theodolite.reports.text import TextReport
from theodolite.reports.totals import Run, Totals
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.replay import CallRow, Sighting, replay

Saw = Callable[..., Sighting]


@pytest.fixture(scope="session")
def replayed() -> Callable[[Iterable[AnyEvent], str], Sighting]:
    """Return a function that gives what the shipped detectors make of a session."""

    def run(events: Iterable[AnyEvent], session: str) -> Sighting:
        monitor = Monitor([MarginDetector(), ShadowMemoryDetector()], redactor=RuleRedactor())
        (sighting,) = replay([replace(event, session=session, agent="a-1") for event in events], monitor)
        assert isinstance(sighting, Sighting)
        return sighting

    return run


@pytest.fixture(scope="session")
def alarm() -> Callable[..., Signal]:
    """Return a function that makes a signal over its threshold."""

    def make(
        code: str = "margin.untrusted", *, source: int | None = None, score: float = 0.9, **fields: object
    ) -> Signal:
        detector = code.partition(".")[0]
        evidence = () if source is None else (Evidence(kind=f"{detector}.passage", seqs=(source, 9)),)
        said = Reading(detector=detector, version="1", code=code, score=score, evidence=evidence)
        known = {"level": Level.NOTABLE, "status": Status.REFERENCE, "finds": True, "acts": False, **fields}
        return replace(Signal(said=said), **known)

    return make


@pytest.fixture(scope="session")
def saw() -> Saw:
    """Return a function that makes a session of calls, each with its signals."""

    def make(
        *signals: tuple[Signal, ...],
        session: str = "s-1",
        agent: str = "a-1",
        tool: str = "send",
        outcome: Outcome = Outcome.FINDING,
        action: Action = Action.LOG_ONLY,
        allowed: bool = True,
        unreadable: tuple[Unreadable, ...] = (),
        unset: dict[str, int] | None = None,
    ) -> Sighting:
        made = [
            Decision(session=session, seq=seq, about=seq, signals=said, action=action, allowed=allowed)
            for seq, said in enumerate(signals, 5)
        ]
        sight = Sight(detector="margin", version="1", decides=True, blind=False, spoke=len(made), failed=0)
        return Sighting(
            session=session,
            agent=agent,
            outcome=outcome,
            action=action,
            coverage=Coverage(
                events={"ToolCallProposed": len(made)},
                channels={"tool_call_object": len(made)},
                unset=unset or {},
                detectors=(sight,),
            ),
            calls=tuple([CallRow(tool=tool, decision=decision) for decision in made]),
            decisions=tuple([decision for decision in made if decision.signals or not decision.allowed]),
            unreadable=unreadable,
        )

    return make


@pytest.fixture(scope="session")
def failure() -> Callable[..., Signal]:
    """Return a function that makes the signal of a detector that could not judge."""

    def make(cause: str = "error", detail: str = "it broke") -> Signal:
        return Signal(said=Failure(detector="margin", version="1", cause=Cause(cause), detail=detail))

    return make


@pytest.fixture(scope="session")
def told() -> Callable[..., str]:
    """Return a function that gives the plain report on some sessions."""

    def tell(*items: Sighting | Unreadable, run: Run | None = None) -> str:
        lines: list[str] = []
        totals, report = Totals(), TextReport(lambda blocks: lines.extend(plain(blocks)))
        for item in items:
            totals.add(item)
            report.add(item)
        report.end(totals, run or Run(version="1.0"))
        return "".join(lines)

    return tell
