"""What the road to a model adds to its answers: a comparison beside one call, and a fleet of sessions beside one call.

Usage: python benchmarks/models.py [--short]. Exits with 1 when a budget is exceeded. Times are of the clock, since
waiting is what is measured: the least of several rounds is what the machine can do when nothing else disturbs it. Of a
fleet whose queries were all under way at once, it is also no more than one call and the time of the CPU.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
from timing import row

from theodolite.core.inquiry import Query, Role
from theodolite.core.model import Model
from theodolite.models.openai import OpenAIModel
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.worker import Worker
from theodolite.testing.fakes import AskingDetector, ScriptedModel
from theodolite.testing.provider import FakeProvider

# Seconds that a model takes to answer.
CALL = 0.05
SESSIONS = 200
SIDES = tuple([Query(role=role, prompt="May a refund be paid?") for role in (Role.SUBJECT, Role.SHADOW)])


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


async def comparison(model: Model, rounds: int) -> tuple[float, float]:
    """Return the least seconds of one call, and of a subject and its shadow side by side."""
    panel = Panel({Role.SUBJECT: model, Role.SHADOW: model})
    await panel.ask_all(SIDES)
    alone, both = math.inf, math.inf
    for _ in range(rounds):
        alone = min(alone, await _timed(lambda: panel.ask_all(SIDES[:1])))
        both = min(both, await _timed(lambda: panel.ask_all(SIDES)))
    return alone, both


async def settled(call: float, work: Callable[[Monitor], Awaitable[object]]) -> float:
    """Return the seconds in which a fleet is settled whose model takes all of its queries at once."""
    model = ScriptedModel("no", delay=call, max_concurrency=2 * SESSIONS)
    with Monitor([AskingDetector()], panel=Panel(dict.fromkeys(Role, model))) as monitor:
        for number in range(SESSIONS):
            monitor.session(f"s-{number}").request_probe("benchmark")
        used = time.process_time()
        took = await _timed(partial(work, monitor))
        used = time.process_time() - used
        assert not monitor.waiting
    return min(took, call + used) if model.most_at_once == 2 * SESSIONS else took


async def _drained(monitor: Monitor) -> None:
    async with anyio.create_task_group() as group:
        for session in monitor.sessions:
            group.start_soon(session.drain)


async def _worked_off(monitor: Monitor) -> None:
    worker = Worker(monitor, concurrency=SESSIONS)
    worker.stop()  # after what is open now
    await worker.serve(patience=60.0)


def main() -> int:
    """Print all figures; return 1 when a budget is exceeded."""
    short = "--short" in sys.argv
    rounds = 8 if short else 40
    alone, both = anyio.run(comparison, ScriptedModel("no", delay=CALL), rounds)
    row("reference: one call to a model of 50 ms, in process", alone * 1e3, "ms")
    met = row("a subject and its shadow", both / alone, "calls", budget=1.1)
    with FakeProvider("no", delay=CALL) as provider:
        served = OpenAIModel("m-1", base_url=provider.base_url, api_key="none")
        alone, both = anyio.run(comparison, served, rounds)
    row("one call to a model of 50 ms, over HTTP on loopback", alone * 1e3, "ms")
    # A short run is one of a machine that others use: client and server together then show how busy it is.
    met &= row("a subject and its shadow, over HTTP", both / alone, "calls", budget=None if short else 1.1)
    for call in (CALL,) if short else (CALL, 4 * CALL, 20 * CALL):
        for name, work in (("drained", _drained), ("by a worker", _worked_off)):
            least = min(anyio.run(settled, call, work) for _ in range(4))
            told = f"{SESSIONS} sessions, a probe each, a call of {call * 1e3:g} ms: {name}"
            met &= row(told, least / call, "calls", budget=4.0)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
