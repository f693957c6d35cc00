"""The sessions of a monitor as a whole, against those of its artefact: who counts, what is told, and no more."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random

import msgspec
import pytest

from theodolite.core.calibration import Band, Calibration, Population
from theodolite.core.detector import Answer, Feature
from theodolite.core.event import Event, ModelCalled, SessionEnded, ToolCallProposed
from theodolite.core.policy import Action
from theodolite.core.reading import Reading, Status
from theodolite.core.window import Window
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.population import LEAST, PopulationState, PopulationWatch
from theodolite.runtime.replay import replay
from theodolite.stats.shift import Direction
from theodolite.testing.fakes import Tally
from theodolite.testing.sessions import stamped

CODE = "scored.call"


@dataclass(frozen=True)
class Scored:
    """Scores a call by the name of its tool, and alarms at no score."""

    name: str = "scored"
    version: str = "1"
    reads: frozenset[type[Event]] = frozenset({ToolCallProposed})
    needs: frozenset[Feature] = frozenset()
    bands: Mapping[str, Band] = field(default_factory=lambda: {CODE: Band(alert=1.0, acts=False, finds=False)})

    def begin(self) -> Tally:
        return Tally()

    def update(self, state: Tally, event: Event, window: Window) -> Answer:
        del state, window
        assert isinstance(event, ToolCallProposed)
        name, _, surrogate = event.tool.partition(" ")
        said = Reading(detector=self.name, version="1", code=CODE, score=float(name), surrogate=bool(surrogate))
        return (said,)


def artefact(**changed: object) -> Calibration:
    given: dict[str, object] = {
        "schema": 1,
        "id": "shop-7",
        "status": "CALIBRATED",
        "alpha": 0.01,
        "date": "2026-11-30",
        "dataset": {"name": "shop"},
        "versions": {"scored": "1"},
        "bands": {},
        "agents": ["shop"],
        "models": ["m"],
        "population": {"code": CODE, "n": 100, "high": 0.9, "over": 9, "low": 0.2, "under": 25},
        **changed,
    }
    return msgspec.convert(given, Calibration)


def run(monitor: Monitor, name: str, scores: Iterable[str], *, agent: str = "shop", model: str = "m") -> None:
    with monitor.session(name, agent=agent) as session:
        if model:
            session.observe(ModelCalled(model=model))
        for score in scores:
            decision = session.observe(ToolCallProposed(tool=score))
            assert (decision.allowed, decision.action) == (True, Action.LOG_ONLY)


def seen(monitor: Monitor) -> PopulationState:
    state = monitor.population
    assert state is not None
    return state


def test_sessions_that_score_otherwise_make_it_time_to_calibrate_and_it_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    monitor = Monitor([Scored()], calibration=artefact())
    for number in range(40):
        run(monitor, f"s-{number}", ["0.3", "0.95", "0.1"])
    state = seen(monitor)
    assert (state.sessions, state.recalibrate, state.direction) == (40, True, Direction.HIGHER)
    assert state.e_value > 200
    [record] = caplog.records
    assert (record.name, record.levelno) == ("theodolite", logging.WARNING)
    said = record.getMessage()
    assert said.startswith("recalibrate: ")
    assert "lie higher than" in said
    assert "shop-7" in said
    assert "theodolite calibrate SESSIONS --out calibration.json" in said
    assert state.words.replace("40 sessions", "") == said.replace(f"{LEAST} sessions", "")


def test_sessions_that_score_lower_are_others_too() -> None:
    monitor = Monitor([Scored()], calibration=artefact())
    for number in range(60):
        run(monitor, f"s-{number}", ["0.1"])
    assert seen(monitor).direction is Direction.LOWER
    assert "lie lower than" in seen(monitor).words


def test_a_session_without_a_word_of_the_code_counts_as_zero_and_a_surrogate_says_nothing() -> None:
    monitor = Monitor([Scored()], calibration=artefact())
    for number in range(60):
        run(monitor, f"s-{number}", ["0.95 surrogate"] if number % 2 else [])
    assert seen(monitor).direction is Direction.LOWER


def test_nothing_of_it_is_a_signal_a_finding_or_a_decision() -> None:
    told: list[object] = []
    plain: list[object] = []
    for calibration, kept in ((artefact(), told), (artefact(population=None), plain)):
        monitor = Monitor([Scored()], calibration=calibration)
        for number in range(40):
            with monitor.session(f"s-{number}", agent="shop") as session:
                kept.append(session.observe(ModelCalled(model="m")))
                kept.append(session.observe(ToolCallProposed(tool="0.95")))
                kept.append(session.close())
    assert told == plain


@pytest.mark.parametrize("calibration", [None, artefact(population=None), artefact(versions={"scored": "2"})])
def test_without_an_artefact_that_says_where_scores_lay_nobody_watches(calibration: Calibration | None) -> None:
    assert Monitor([Scored()], calibration=calibration).population is None


def test_without_the_detector_nobody_watches() -> None:
    assert Monitor([], calibration=artefact()).population is None


@pytest.mark.parametrize(
    ("agent", "model", "counts"),
    [("shop", "m", 1), ("other", "m", 0), ("", "m", 0), ("shop", "n", 0), ("shop", "", 0)],
)
def test_sessions_of_others_than_the_artefact_names_do_not_count(agent: str, model: str, counts: int) -> None:
    monitor = Monitor([Scored()], calibration=artefact())
    run(monitor, "s-1", ["0.95"], agent=agent, model=model)
    assert seen(monitor).sessions == counts


def test_an_artefact_that_names_nobody_counts_everybody() -> None:
    monitor = Monitor([Scored()], calibration=artefact(status="REFERENCE", agents=[], models=[]))
    run(monitor, "s-1", ["0.95"], agent="any", model="")
    assert seen(monitor).sessions == 1


def test_fewer_than_ten_sessions_are_not_told_of_whatever_they_come_to() -> None:
    monitor = Monitor([Scored()], calibration=artefact())
    for number in range(LEAST - 1):
        run(monitor, f"s-{number}", ["0.95"])
    assert seen(monitor).e_value > 200
    assert (seen(monitor).recalibrate, seen(monitor).direction, seen(monitor).words) == (False, None, "")
    run(monitor, "s-9", ["0.5"])
    assert seen(monitor).recalibrate


def test_a_session_counts_once_when_it_is_over_and_one_without_an_event_not_at_all() -> None:
    monitor = Monitor([Scored()], calibration=artefact())
    monitor.session("empty", agent="shop").close()
    session = monitor.session("s-1", agent="shop")
    session.observe(ModelCalled(model="m"))
    assert seen(monitor).sessions == 0
    session.close()
    session.close()
    assert seen(monitor).sessions == 1


def test_a_session_that_was_saved_keeps_its_highest_score() -> None:
    monitor = Monitor([Scored()], calibration=artefact())
    for number in range(LEAST):
        session = monitor.session(f"s-{number}", agent="shop")
        session.observe(ModelCalled(model="m"))
        session.observe(ToolCallProposed(tool="0.95"))
        saved = session.save()
        other = Monitor([Scored()], calibration=artefact())
        other.restore(saved).observe(ToolCallProposed(tool="0.1"))
        other.close()
        assert seen(other).sessions == 1
        assert seen(other).e_value > 1.0
        session.close()


def test_sessions_that_were_recorded_are_not_counted_by_the_monitor_that_reads_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    monitor = Monitor([Scored()], calibration=artefact())
    for number in range(40):
        name = f"s-{number}"
        events = (ModelCalled(model="m"), ToolCallProposed(tool="0.95"), SessionEnded())
        recorded = stamped(events, session=name, agent="shop")
        assert len(list(replay(recorded, monitor))) == 1
    assert seen(monitor).sessions == 0
    assert not caplog.records


def test_in_whichever_order_sessions_end_their_number_is_the_same() -> None:
    dice = Random(7)  # noqa: S311 - a test, drawn alike each time
    monitor = Monitor([Scored()], calibration=artefact())
    sessions = [monitor.session(f"s-{number}", agent="shop") for number in range(50)]
    for session in sessions:
        session.observe(ModelCalled(model="m"))
        session.observe(ToolCallProposed(tool="0.95"))
    dice.shuffle(sessions)
    for session in sessions:
        session.close()
    assert (seen(monitor).sessions, seen(monitor).direction) == (50, Direction.HIGHER)


def test_threads_lose_no_session_and_the_line_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    monitor = Monitor([Scored()], calibration=artefact())

    def work(worker: int) -> None:
        for number in range(100):
            run(monitor, f"{worker}-{number}", ["0.95"])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert seen(monitor).sessions == 800
    assert len(caplog.records) == 1


def test_the_name_of_an_artefact_forges_no_line_of_a_log() -> None:
    state = PopulationState(
        calibration="a\nERROR all is lost\x1b[2J" + "x" * 500,
        sessions=40,
        e_value=300.0,
        recalibrate=True,
        direction=Direction.HIGHER,
    )
    assert state.words.isprintable()
    assert len(state.words) < 600


def test_the_status_of_an_artefact_says_whether_a_session_has_to_name_a_model() -> None:
    named = artefact()
    assert not named.names("shop", ())
    assert artefact(status="REFERENCE").names("shop", ())
    assert not artefact(status="REFERENCE").names("shop", ("m", "n"))
    assert named.status is Status.CALIBRATED


def test_a_population_of_a_detector_in_another_version_is_none() -> None:
    given = artefact(versions={})
    assert given.population == Population(code=CODE, n=100, high=0.9, over=9, low=0.2, under=25)
    assert PopulationWatch.of(given, [Scored()]) is None
    assert PopulationWatch.of(None, [Scored()]) is None
