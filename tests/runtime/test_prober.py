"""Recorded sessions are probed while the next ones are read."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import pytest

from theodolite.core.errors import ModelError
from theodolite.core.event import AnyEvent, ToolCallProposed
from theodolite.core.policy import Outcome
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Cause, Failure
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.prober import Prober
from theodolite.runtime.replay import Sighting, replay
from theodolite.testing.fakes import AskingDetector, ScriptedDetector, ScriptedModel, SeededModel
from theodolite.testing.sessions import clean_session, stamped

DETECTORS = (AskingDetector(), ScriptedDetector(script={ToolCallProposed: 0.75}))


def recordings(count: int, *names: str) -> Iterator[AnyEvent]:
    for number in range(count):
        name = names[number % len(names)] if names else f"s-{number}"
        yield from stamped(clean_session(), session=name)


def probed(monitor: Monitor, count: int, *names: str, ahead: int = 16) -> list[Sighting]:
    with monitor, Prober(monitor.fleet.panel, reason="a test", ahead=ahead) as prober:
        items = list(replay(recordings(count, *names), monitor, prober))
    assert not any(isinstance(item, Unreadable) for item in items)
    return [item for item in items if isinstance(item, Sighting)]


def said(sighting: Sighting, detector: str) -> list[object]:
    signals = [signal for decision in sighting.decisions for signal in decision.signals]
    return [signal.said for signal in signals if signal.said.detector == detector]


def test_each_session_is_probed_once_and_told_in_order(answered: Callable[..., Monitor]) -> None:
    model = SeededModel(1, max_concurrency=8)
    sightings = probed(answered(model, *DETECTORS), 40)
    assert [sighting.session for sighting in sightings] == [f"s-{number}" for number in range(40)]
    assert all(len(said(sighting, "asking")) == 1 for sighting in sightings)
    assert len(model.asked) == 80


def test_sessions_are_probed_beside_each_other(answered: Callable[..., Monitor]) -> None:
    model = SeededModel(1, max_concurrency=100, delay=0.2)
    start = time.perf_counter()
    probed(answered(model, *DETECTORS), 32, ahead=32)
    # One after the other they would take 6.4 s.
    assert time.perf_counter() - start < 3.2
    assert model.most_at_once > 16


def test_an_id_that_is_used_again_is_another_session(answered: Callable[..., Monitor]) -> None:
    sightings = probed(answered(SeededModel(1), *DETECTORS), 6, "s-1", "s-1", "s-2")
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
def test_a_model_that_is_down_takes_no_passive_result_away(
    model: ScriptedModel, cause: Cause, answered: Callable[..., Monitor]
) -> None:
    sightings = probed(answered(model, *DETECTORS, timeout=0.05), 5)
    assert len(sightings) == 5
    for sighting in sightings:
        assert len(said(sighting, "scripted")) == len(sighting.calls) > 0
        (failure,) = said(sighting, "asking")
        assert isinstance(failure, Failure)
        assert failure.cause is cause
        assert sighting.outcome is Outcome.FINDING


def test_nobody_is_probed_outside_of_the_context() -> None:
    prober = Prober(Panel(), reason="a test")
    with pytest.raises(RuntimeError, match="`with` statement"):
        prober.probe(Monitor().session("s-1"))
