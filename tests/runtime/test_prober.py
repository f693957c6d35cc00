"""Recorded sessions are probed while the next ones are read."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import pytest

from theodolite.core.errors import ModelError
from theodolite.core.event import AnyEvent, ToolCallProposed
from theodolite.core.inquiry import Role
from theodolite.core.model import Model
from theodolite.core.policy import Outcome
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Cause, Failure
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.prober import Prober
from theodolite.runtime.replay import Sighting, replay
from theodolite.testing.fakes import AskingDetector, ScriptedDetector, ScriptedModel, SeededModel
from theodolite.testing.sessions import clean_session, stamped


def recordings(count: int, *names: str) -> Iterator[AnyEvent]:
    for number in range(count):
        name = names[number % len(names)] if names else f"s-{number}"
        yield from stamped(clean_session(), session=name)


def probed(count: int, model: Model, *names: str, ahead: int = 16, timeout: float = 30.0) -> list[Sighting]:
    panel = Panel({Role.SUBJECT: model, Role.SHADOW: model}, timeout=timeout)
    passive = ScriptedDetector(script={ToolCallProposed: 0.75})
    monitor = Monitor([AskingDetector(), passive], panel=panel)
    with monitor, Prober(panel, reason="a test", ahead=ahead) as prober:
        items = list(replay(recordings(count, *names), monitor, prober))
    assert not any(isinstance(item, Unreadable) for item in items)
    return [item for item in items if isinstance(item, Sighting)]


def said(sighting: Sighting, detector: str) -> list[object]:
    signals = [signal for decision in sighting.decisions for signal in decision.signals]
    return [signal.said for signal in signals if signal.said.detector == detector]


def test_each_session_is_probed_once_and_told_in_order() -> None:
    model = SeededModel(1, max_concurrency=8)
    sightings = probed(40, model)
    assert [sighting.session for sighting in sightings] == [f"s-{number}" for number in range(40)]
    assert all(len(said(sighting, "asking")) == 1 for sighting in sightings)
    assert len(model.asked) == 80


def test_sessions_are_probed_beside_each_other() -> None:
    model = SeededModel(1, max_concurrency=100, delay=0.2)
    start = time.perf_counter()
    probed(32, model, ahead=32)
    # One after the other they would take 6.4 s.
    assert time.perf_counter() - start < 3.2
    assert model.most_at_once > 16


def test_an_id_that_is_used_again_is_another_session() -> None:
    sightings = probed(6, SeededModel(1), "s-1", "s-1", "s-2")
    assert [sighting.session for sighting in sightings] == ["s-1", "s-1", "s-2"] * 2
    assert len({sighting.coverage.events["ToolCallProposed"] for sighting in sightings}) == 1
    assert all(len(said(sighting, "asking")) == 1 for sighting in sightings)


@pytest.mark.parametrize(
    ("model", "cause"),
    [
        (ScriptedModel(ModelError("nobody listens")), Cause.ERROR),
        (ScriptedModel(OSError("reset")), Cause.ERROR),
        (ScriptedModel("", delay=math.inf), Cause.TIMEOUT),
    ],
)
def test_a_model_that_is_down_takes_no_passive_result_away(model: ScriptedModel, cause: Cause) -> None:
    sightings = probed(5, model, timeout=0.05)
    assert len(sightings) == 5
    for sighting in sightings:
        assert len(said(sighting, "scripted")) == len(sighting.calls) > 0
        (failure,) = said(sighting, "asking")
        assert isinstance(failure, Failure)
        assert failure.cause is cause
        assert sighting.outcome is Outcome.FINDING


def test_being_interrupted_cancels_what_is_under_way_at_once() -> None:
    model = ScriptedModel("", delay=math.inf)
    panel = Panel({Role.SUBJECT: model, Role.SHADOW: model})

    def interrupted() -> Iterator[AnyEvent]:
        yield from recordings(3)
        raise KeyboardInterrupt

    start = time.perf_counter()
    monitor = Monitor([AskingDetector()], panel=panel)
    with pytest.raises(KeyboardInterrupt), monitor, Prober(panel, reason="a test") as prober:
        list(replay(interrupted(), monitor, prober))
    assert time.perf_counter() - start < 5.0


def test_nobody_is_probed_outside_of_the_context() -> None:
    prober = Prober(Panel(), reason="a test")
    with pytest.raises(RuntimeError, match="`with` statement"):
        prober.probe(Monitor().session("s-1"))
