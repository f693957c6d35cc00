"""What models hold for an event loop of ours they give back: once, after the last answer, and in a second at most."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import anyio
import anyio.lowlevel
import pytest

from theodolite.core.errors import ModelError
from theodolite.core.event import AnyEvent
from theodolite.core.inquiry import Draw, Query, Reply, Role
from theodolite.core.policy import Decision
from theodolite.core.reading import Reading
from theodolite.runtime.drive import GOODBYE, Panel, asking
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.prober import Prober
from theodolite.runtime.replay import replay
from theodolite.runtime.worker import Worker
from theodolite.testing.fakes import AskingDetector
from theodolite.testing.sessions import clean_session, stamped


class Holding:
    """Holds a client for each event loop, as hosted models do: a call under which it is closed fails."""

    name = "holding"
    max_concurrency = 4

    def __init__(self, *, delay: float = 0.0, closing: float = 0.0) -> None:
        self.released: list[object] = []  # the event loops
        self.closed = 0
        self.answered = 0
        self._delay = delay
        self._closing = closing

    async def ask(self, query: Query) -> Reply:
        await anyio.sleep(self._delay)
        if anyio.lowlevel.current_token() in self.released:
            raise ModelError("the client was closed under the call")
        self.answered += 1
        return Reply(query=query, model=self.name, draws=(Draw(text="no"),) * query.samples)

    async def release(self) -> None:
        self.released.append(anyio.lowlevel.current_token())
        await anyio.sleep(self._closing)
        self.closed += 1


def instrument(*models: Holding) -> Monitor:
    """Return a Monitor in which the models play the roles in turn."""
    panel = Panel({role: models[place % len(models)] for place, role in enumerate(Role)})
    return Monitor([AskingDetector()], panel=panel)


def by_a_prober(monitor: Monitor) -> None:
    with Prober(monitor.fleet.panel, reason="a test") as prober:
        session = monitor.session("s-1")
        session.request_probe("r")
        prober.probe(session)


def by_a_worker(monitor: Monitor) -> None:
    monitor.session("s-1").request_probe("r")
    worker = Worker(monitor, interval=0.002)
    worker.start()
    worker.stop()


def by_a_plain_call(monitor: Monitor) -> None:
    session = monitor.session("s-1")
    session.request_probe("r")
    session.drain_sync()


def beside_a_loop(monitor: Monitor) -> None:
    async def host() -> None:
        await anyio.lowlevel.checkpoint()
        by_a_plain_call(monitor)

    anyio.run(host)


WAYS = [by_a_prober, by_a_worker, by_a_plain_call, beside_a_loop]


@pytest.mark.parametrize("way", WAYS)
def test_each_loop_of_ours_releases_each_model_once_and_after_its_answers(way: Callable[[Monitor], None]) -> None:
    both, judge = Holding(delay=0.05), Holding()
    monitor = Monitor([AskingDetector()], panel=Panel({Role.SUBJECT: both, Role.SHADOW: both, Role.JUDGE: judge}))
    for loops in (1, 2):
        way(monitor)
        assert (both.answered, len(both.released), len(judge.released)) == (2 * loops, loops, loops)
    assert both.released == judge.released
    assert both.released[0] != both.released[1]


@pytest.mark.parametrize("way", WAYS[:3])
def test_nobody_waits_long_for_models_that_do_not_come_to_an_end(way: Callable[[Monitor], None]) -> None:
    models = [Holding(closing=math.inf) for _ in range(4)]
    began = time.monotonic()
    way(instrument(*models))
    assert time.monotonic() - began < 3 * GOODBYE  # one after the other they would have four of it
    assert [len(model.released) for model in models] == [1] * 4


def test_a_prober_that_is_left_in_order_waits_for_a_slow_answer() -> None:
    monitor = instrument(Holding(delay=0.3))
    session = monitor.session("s-1")
    session.request_probe("r")
    with Prober(monitor.fleet.panel, reason="a test") as prober:
        answer = prober.probe(session)
    [decision] = answer.result(timeout=0)
    assert isinstance(decision, Decision)
    assert [type(signal.said) for signal in decision.signals] == [Reading]


def test_a_prober_that_is_interrupted_is_left_at_once_and_still_releases() -> None:
    models = [Holding(delay=math.inf, closing=6.0) for _ in range(4)]
    monitor = instrument(*models)

    def interrupted() -> Iterator[AnyEvent]:
        yield from stamped(clean_session())
        yield from stamped(clean_session(), session="s-2")
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), monitor, Prober(monitor.fleet.panel, reason="a test") as prober:
        list(replay(interrupted(), monitor, prober))
    assert time.monotonic() - began < 3 * GOODBYE
    assert [len(model.released) for model in models] == [1] * 4


def test_work_that_is_cancelled_has_its_models_close_in_order() -> None:
    model = Holding(closing=0.02)

    async def give_up() -> None:
        with anyio.move_on_after(0.01):
            await asking(anyio.sleep_forever, Panel({Role.SUBJECT: model}))

    anyio.run(give_up)
    assert model.closed == 1


def test_a_model_that_fails_to_release_takes_nothing_from_the_others() -> None:
    class Broken(Holding):
        async def release(self) -> None:
            await super().release()
            raise RuntimeError("no goodbye")

    broken, whole = Broken(), Holding(closing=0.05)
    monitor = instrument(broken, whole)
    by_a_plain_call(monitor)
    assert (len(broken.released), len(whole.released)) == (1, 1)
    assert (broken.answered, whole.answered) == (1, 1)
