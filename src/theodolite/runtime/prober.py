"""Probes recorded sessions while the next ones are read."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Self

from anyio.abc import TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal

from theodolite.core.policy import Decision
from theodolite.core.reading import Failure
from theodolite.runtime.drive import Panel, asking, attempt
from theodolite.runtime.session import Session

__all__ = ("AHEAD", "Prober")

# Sessions that are probed at once. Our choice: a provider's usual limit on concurrent requests is of this order, and
# the Panel keeps each model's own.
AHEAD = 16


class Prober:
    """Drains sessions on an event loop of its own, several at once: a context manager.

    `reason` goes into the event that asks for each probe, of which a session gets `probes`. Left in order, it waits for
    what is under way; left by an exception, Ctrl-C among them, it cancels that at once, and what is open is settled as
    ABANDONED. Only then do the models release what they hold for its loop.
    """

    def __init__(self, panel: Panel, *, reason: str, probes: int = 1, ahead: int = AHEAD) -> None:
        self.reason = reason
        self.probes = probes
        self.ahead = ahead
        self._panel = panel
        self._portal: BlockingPortal | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start the event loop."""
        _, self._portal = self._stack.enter_context(start_blocking_portal()).start_task(self._serve)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Stop it."""
        portal, self._portal = self._portal, None
        with self._stack:
            if portal is not None:
                portal.call(portal.stop, error is not None)

    def probe(self, session: Session) -> Future[tuple[Decision, ...]]:
        """Drain a session in the background. Raises RuntimeError outside of the context."""
        if self._portal is None:
            raise RuntimeError("a Prober is used in a `with` statement")
        return self._portal.start_task_soon(_drained, session)

    async def _serve(self, *, task_status: TaskStatus[BlockingPortal]) -> None:
        async def probing() -> None:
            # In a portal of its own, within that of the loop, so that its tasks have ended while the loop still runs.
            async with BlockingPortal() as portal:
                task_status.started(portal)
                await portal.sleep_until_stopped()

        await asking(probing, self._panel)


async def _drained(session: Session) -> tuple[Decision, ...]:
    done = await attempt(partial(session.drain, due=False), "prober", "1")
    if isinstance(done, Failure):
        session.note(done)
        return ()
    return done
