"""Probes recorded sessions while the next ones are read."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Self

from anyio.from_thread import BlockingPortal, start_blocking_portal

from theodolite.core.policy import Decision
from theodolite.core.reading import Failure
from theodolite.runtime.drive import Panel, attempt
from theodolite.runtime.session import Session

__all__ = ("AHEAD", "Prober")

# Sessions that are probed at once. Our choice: a provider's usual limit on concurrent requests is of this order, and
# the Panel keeps each model's own.
AHEAD = 16


class Prober:
    """Drains sessions on an event loop of its own, several at once: a context manager.

    `reason` goes into the event that asks for each probe. Left in order, it waits for what is under way; left by an
    exception, Ctrl-C among them, it cancels that at once, and what is open is settled as ABANDONED.
    """

    def __init__(self, panel: Panel, *, reason: str, ahead: int = AHEAD) -> None:
        self.reason = reason
        self.ahead = ahead
        self._panel = panel
        self._portal: BlockingPortal | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start the event loop."""
        self._portal = self._stack.enter_context(start_blocking_portal())
        self._stack.callback(self._portal.call, self._panel.release)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Stop it."""
        self._portal = None
        self._stack.__exit__(kind, error, tb)

    def probe(self, session: Session) -> Future[tuple[Decision, ...]]:
        """Drain a session in the background. Raises RuntimeError outside of the context."""
        if self._portal is None:
            raise RuntimeError("a Prober is used in a `with` statement")
        return self._portal.start_task_soon(_drained, session)


async def _drained(session: Session) -> tuple[Decision, ...]:
    done = await attempt(partial(session.drain, due=False), "prober", "1")
    if isinstance(done, Failure):
        session.note(done)
        return ()
    return done
