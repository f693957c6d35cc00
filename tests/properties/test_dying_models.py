"""However models die, every session comes to its end with all that was seen without them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.core.detector import AnyDetector
from theodolite.core.errors import ModelError
from theodolite.core.event import AnyEvent, AnyHostEvent, InquirySettled, ToolCallProposed, TurnEnded
from theodolite.core.inquiry import Draw, Query, Reply, Role
from theodolite.core.policy import Decision
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Failure, Reading, Signal
from theodolite.core.store import verify
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.prober import Prober
from theodolite.runtime.replay import Sighting, replay
from theodolite.runtime.worker import Worker
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import AskingDetector, FakeClock, ScriptedDetector
from theodolite.testing.sessions import clean_session, hijacked_session, stamped, synthetic_session

SESSIONS: list[tuple[AnyHostEvent, ...]] = [
    clean_session(),
    hijacked_session(),
    synthetic_session(2, seed=1),
    synthetic_session(4, seed=2),
]
FATES = ("answers", "refuses", "breaks", "hangs", "is cancelled", "exits", "groups", "lies", "says nothing")


class Dying:
    """Answers each query as its fate has it."""

    name = "dying"
    max_concurrency = 3

    def __init__(self, fates: Sequence[str]) -> None:
        self.fates = fates
        self.asked = 0

    async def ask(self, query: Query) -> Reply:
        fate = self.fates[self.asked % len(self.fates)]
        self.asked += 1
        await anyio.lowlevel.checkpoint()
        match fate:
            case "refuses":
                raise ModelError("refused")
            case "breaks":
                raise RuntimeError("a bug in an adapter")
            case "hangs":
                await anyio.sleep(math.inf)
            case "is cancelled":
                raise anyio.get_cancelled_exc_class()
            case "exits":
                raise SystemExit(3)
            case "groups":
                raise ExceptionGroup("of a task group", [ExceptionGroup("inner", [OSError("reset by peer")])])
            case "lies":
                return Reply(query=Query(role=Role.JUDGE, prompt="another"), model=self.name)
            case "says nothing":
                return Reply(query=query, model=self.name)
            case _:
                pass
        return Reply(query=query, model=self.name, draws=(Draw(text=query.role.value),) * query.samples)


def passive() -> list[AnyDetector]:
    return [ScriptedDetector(script={ToolCallProposed: 0.75, TurnEnded: 0.25})]


def mixed(chosen: Sequence[int]) -> Iterator[AnyEvent]:
    """Yield the events of some sessions by turns."""
    streams = [list(stamped(SESSIONS[kind], session=f"s-{n}")) for n, kind in enumerate(chosen)]
    for together in zip_longest(*streams):
        yield from [event for event in together if event is not None]


def own(signals: Sequence[Signal]) -> list[Signal]:
    return [signal for signal in signals if signal.owner == "scripted"]


def of_host(decisions: Sequence[Decision]) -> list[tuple[int, bool, list[Signal]]]:
    return [(made.seq, made.allowed, own(made.signals)) for made in decisions if own(made.signals)]


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, len(SESSIONS) - 1), min_size=1, max_size=4),
    st.lists(st.sampled_from(FATES), min_size=1, max_size=8),
    st.integers(0, 3),
)
def test_no_session_and_no_passive_result_of_a_recording_is_lost(
    chosen: list[int], fates: list[str], ahead: int
) -> None:
    expected = [seen for seen in replay(mixed(chosen), Monitor(passive())) if isinstance(seen, Sighting)]
    panel = Panel(dict.fromkeys(Role, Dying(fates)), timeout=0.02)
    store = MemoryStore()
    monitor = Monitor([*passive(), AskingDetector()], panel=panel, store=store)
    with Prober(panel, reason="a test", ahead=ahead) as prober:
        seen = list(replay(mixed(chosen), monitor, prober))
    assert not [item for item in seen if isinstance(item, Unreadable)]
    sightings = [item for item in seen if isinstance(item, Sighting)]
    assert [one.session for one in sightings] == [one.session for one in expected]
    for one, without in zip(sightings, expected, strict=True):
        assert of_host(one.decisions) == of_host(without.decisions)
        assert [(row.tool, row.decision.allowed) for row in one.calls] == [
            (row.tool, row.decision.allowed) for row in without.calls
        ]
        [probe] = [s.said for made in one.decisions for s in made.signals if s.owner == "asking"]
        assert isinstance(probe, Reading | Failure)
        assert one.coverage.events[InquirySettled.__name__] == 1
    assert (monitor.sessions, monitor.fleet.waiting) == ((), ())
    assert verify(store).intact


@settings(max_examples=15)
@given(
    st.lists(st.integers(0, len(SESSIONS) - 1), min_size=1, max_size=3),
    st.lists(st.sampled_from(FATES), min_size=1, max_size=8),
)
def test_no_passive_result_of_a_live_session_is_lost_while_a_worker_drives_its_probes(
    chosen: list[int], fates: list[str]
) -> None:
    panel = Panel(dict.fromkeys(Role, Dying(fates)), timeout=0.01)
    store = MemoryStore()
    monitor = Monitor([*passive(), AskingDetector(on=TurnEnded)], panel=panel, store=store, clock=FakeClock())
    quiet = Monitor(passive(), clock=FakeClock())
    worker = Worker(monitor, interval=0.001)
    worker.start(patience=5.0)
    found: list[tuple[bool, list[tuple[str, float]]]] = []
    expected: list[tuple[bool, list[tuple[str, float]]]] = []
    for event in mixed(chosen):
        for instrument, told in ((monitor, found), (quiet, expected)):
            decision = instrument.session(event.session).take(event)
            scores = [(s.code, s.said.score) for s in own(decision.signals) if isinstance(s.said, Reading)]
            told.append((decision.allowed, scores))
    worker.stop()
    sessions = monitor.sessions
    for session in sessions:
        session.close()
        events = session.coverage().events
        assert events.get(InquirySettled.__name__, 0) == events.get(TurnEnded.__name__, 0)
    assert found == expected
    assert monitor.fleet.waiting == ()
    assert verify(store).intact


@pytest.mark.parametrize("fate", FATES)
def test_each_fate_is_told_of(fate: str) -> None:
    session = Monitor([AskingDetector()], panel=Panel(dict.fromkeys(Role, Dying([fate])), timeout=0.02)).session("s-1")
    session.request_probe("r")
    [decision] = session.drain_sync()
    [signal] = decision.signals
    assert isinstance(signal.said, Reading) is (fate == "answers")
    assert session.waiting == 0
