"""A controller in time that a test lets pass, with what it dispatched and when."""

from __future__ import annotations

import heapq

import anyio
import anyio.lowlevel

from theodolite.api.probing.controller import (
    Dispatch,
    ProbeController,
    ProbeScheduleConfig,
    RuntimeEvent,
)
from theodolite.testing.fakes import FakeClock

SECRET = b"a secret of this test"
AT_ONCE = ProbeScheduleConfig(jitter_seconds=0.0)


async def settled() -> None:
    """Let all others go on as far as they can; anyio.wait_all_tasks_blocked takes 0.1 s for that."""
    for _ in range(30):
        await anyio.lowlevel.checkpoint()


class Timeline:
    """A clock, and sleepers that wake in order when `pass_to` lets time pass."""

    def __init__(self) -> None:
        self.clock = FakeClock(1_000.0)
        self.sleepers: list[tuple[float, int, anyio.Event]] = []
        self._count = 0

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0.0:
            await anyio.lowlevel.checkpoint()
            return
        self._count += 1
        woken = anyio.Event()
        heapq.heappush(self.sleepers, (self.clock.now + seconds, self._count, woken))
        await woken.wait()

    async def pass_to(self, moment: float) -> None:
        await settled()
        while self.sleepers and self.sleepers[0][0] <= moment:
            self.clock.now, _, woken = heapq.heappop(self.sleepers)
            woken.set()
            await settled()
        self.clock.now = moment

    async def pass_by(self, seconds: float) -> None:
        await self.pass_to(self.clock.now + seconds)


class Host:
    """A controller with what it dispatched, and when."""

    def __init__(self, config: ProbeScheduleConfig = AT_ONCE) -> None:
        self.time = Timeline()
        self.sent: list[tuple[float, str, str]] = []
        self.faults: list[BaseException] = []
        self.controller = ProbeController(
            config, self._dispatch, secret=SECRET, clock=self.time.clock, sleep=self.time.sleep
        )

    async def _dispatch(self, dispatch: Dispatch) -> None:
        self.sent.append((self.time.clock.now - 1_000.0, dispatch.session_id, dispatch))
        await anyio.lowlevel.checkpoint()
        if self.faults:
            raise self.faults.pop()


def event(kind: str = "manual", tokens: int = 0, session: str = "s", *, external: bool = False) -> RuntimeEvent:
    return RuntimeEvent(session_id=session, event_type=kind, token_count=tokens, has_external_content=external)


def timed(config: ProbeScheduleConfig = AT_ONCE) -> tuple[ProbeController, FakeClock]:
    clock = FakeClock(0.0)
    return ProbeController(config, secret=SECRET, clock=clock), clock
