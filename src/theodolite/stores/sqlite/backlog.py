"""What is sealed and not yet on disk: a bounded queue, those who wait for it, and the work of emptying it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from theodolite.core.errors import StoreError
from theodolite.core.store import Record

__all__ = ("Backlog",)

_ENDED: Final = "the store is closed, or its writing thread has died: open it again"


class Backlog:
    """Sealed records in order, bounded by `room` (bytes); safe for several threads.

    Callers hold `lock` around `admit`, `put` and `wait`, so that nothing comes between the sealing of a record and its
    place in the queue. One thread runs `work`, which hands all there is to a function, as one group: at once when
    somebody waits, otherwise after `linger` seconds, in which a group can grow. A group that fails stays where it is
    and is tried again when somebody waits or has been told, or after `retry` seconds.
    """

    def __init__(self, *, room: int, linger: float, retry: float) -> None:
        self.lock = threading.Lock()
        self._room: Final = room
        self._linger: Final = linger
        self._retry: Final = retry
        self._wanted = threading.Condition(self.lock)
        self._changed = threading.Condition(self.lock)
        self._pending: deque[Record] = deque()
        self._sizes: deque[int] = deque()
        self._bytes = self._added = self._settled = 0
        self._hurry = self._stopping = self._stopped = False
        # Attempts are numbered, so that nobody is told of the failure of one that had begun before he came.
        self._attempts = self._failed = 0
        self._fault: StoreError | None = None
        self._told = True

    @property
    def left(self) -> int:
        """How many records wait."""
        return len(self._pending)

    def ready(self) -> None:
        """Raise the StoreError of the newest attempt, if it failed, and that of the end. Takes no lock."""
        if (fault := self._fault) is not None:
            raise StoreError(f"{fault} (records that wait in memory: {self.left})") from fault
        if self._stopping or self._stopped:
            raise StoreError(_ENDED)

    def admit(self, size: int, *, waits: bool) -> None:
        """Wait for room for a record of that size. With `waits` the caller is going to `wait` for it.

        Raises StoreError after a group has failed, to the first who does not wait, and to all when there is no room;
        and after the end.
        """
        if self._stopping or self._stopped:
            raise StoreError(_ENDED)
        full = bool(self._pending) and self._bytes + size > self._room
        if self._fault is not None and not waits and (full or not self._told):
            self._told = True
            self._rush()
            raise StoreError(f"{self._fault} ({self.left} records wait in memory; this one was not taken)")
        since = self._attempts
        while self._pending and self._bytes + size > self._room:
            self._pause(since, "the memory for waiting records is full; this one was not taken")

    def put(self, record: Record, size: int) -> None:
        """Queue a record that was admitted."""
        self._pending.append(record)
        self._sizes.append(size)
        self._bytes += size
        self._added += 1
        if len(self._pending) == 1:
            self._wanted.notify()
        elif 2 * self._bytes > self._room:
            self._rush()

    def wait(self) -> None:
        """Wait until all that was put before is settled. Raises StoreError when an attempt that begins now fails."""
        ticket, since = self._added, self._attempts
        while self._settled < ticket:
            self._pause(since, "what was not written stays in memory and is tried again: do not append it twice")

    def _rush(self) -> None:
        self._hurry = True
        self._wanted.notify()

    def _pause(self, since: int, consequence: str) -> None:
        if not self._stopped:
            self._rush()
            self._changed.wait()
        if self._failed > since and self._fault is not None:
            raise StoreError(f"{self._fault} ({consequence})") from self._fault
        if self._stopped:
            raise StoreError(f"the store was closed or its writing thread has died ({consequence})")

    def work(self, commit: Callable[[tuple[Record, ...]], None]) -> None:
        """Hand over group after group until `stop`. What `commit` raises, other than StoreError, ends the work."""
        try:
            while group := self._take():
                try:
                    commit(group)
                except StoreError as fault:
                    self._fail(fault)
                else:
                    self._settle(len(group))
        finally:
            with self.lock:
                self._stopped = True
                self._changed.notify_all()

    def _take(self) -> tuple[Record, ...]:
        with self.lock:
            while not self._pending and not self._stopping:
                self._wanted.wait()
            if not self._hurry and not self._stopping:
                self._wanted.wait(self._linger if self._fault is None else self._retry)
            if not self._pending or (self._stopping and self._fault is not None):
                self._stopped = True  # under the same lock, so that nothing is admitted any more
                return ()
            self._hurry = False
            self._attempts += 1
            return tuple(self._pending)

    def _fail(self, fault: StoreError) -> None:
        with self.lock:
            self._failed, self._fault, self._told = self._attempts, fault, False
            self._changed.notify_all()

    def _settle(self, count: int) -> None:
        with self.lock:
            for _ in range(count):
                self._pending.popleft()
                self._bytes -= self._sizes.popleft()
            self._settled += count
            self._fault = None
            self._changed.notify_all()

    def stop(self) -> None:
        """End the work once the queue is empty or an attempt fails. Nothing is admitted from now on."""
        with self.lock:
            self._stopping = True
            self._wanted.notify()
