"""Settles the inquiries of a fleet in the background."""

from __future__ import annotations

import threading
from functools import partial

import anyio

from theodolite.core.reading import Failure
from theodolite.runtime.drive import asking, attempt
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.session import Session

__all__ = ("Worker",)

# Seconds between two looks for open inquiries: short beside the 50 ms that the fastest models take to answer, and some
# thousandths of one processor's time where nothing is open.
INTERVAL = 0.02


class Worker:
    """Drains the sessions of a Monitor, several at once, until it is stopped.

    Async hosts run `serve` in a task group of theirs; others call `start` and `stop`, which use a thread. The queue is
    the Monitor's and bounded there. `stop` lets what is under way come to its end for `patience` seconds; what is left
    stays open and is settled as ABANDONED when its session closes. A session that cannot be drained keeps no other
    waiting: its next decision says so.
    """

    def __init__(self, monitor: Monitor, *, concurrency: int = 8, interval: float = INTERVAL) -> None:
        self._monitor = monitor
        self._concurrency = concurrency
        self._interval = interval
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._busy: set[str] = set()

    async def serve(self, *, patience: float = 0.0) -> None:
        """Drain until `stop` is called; then finish what is open, for at most `patience` seconds."""
        limit = anyio.CapacityLimiter(self._concurrency)
        async with anyio.create_task_group() as group:
            while not self._stopping.is_set():
                self._dispatch(group, limit)
                await anyio.sleep(self._interval)
            self._dispatch(group, limit)
            group.cancel_scope.deadline = anyio.current_time() + patience

    def _dispatch(self, group: anyio.abc.TaskGroup, limit: anyio.CapacityLimiter) -> None:
        for session in self._monitor.waiting:
            if session.due and session.id not in self._busy:
                self._busy.add(session.id)
                group.start_soon(self._settle, session, limit)

    async def _settle(self, session: Session, limit: anyio.CapacityLimiter) -> None:
        try:
            async with limit:
                done = await attempt(partial(session.drain, due=True), "worker", "1")
                if isinstance(done, Failure):
                    session.note(done)
        finally:
            self._busy.discard(session.id)

    def start(self, *, patience: float = 5.0) -> None:
        """Serve on a thread of its own."""
        self._stopping.clear()
        serve, panel = partial(self.serve, patience=patience), self._monitor.fleet.panel
        self._thread = threading.Thread(
            target=lambda: anyio.run(asking, serve, panel), name="theodolite-worker", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Ask it to come to its end, and wait for the thread if there is one."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
