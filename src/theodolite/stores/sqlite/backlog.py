"""What is sealed and not yet on disk: a bounded queue, those who wait for it, and the work of emptying it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from theodolite.core.errors import StoreError
from theodolite.core.store import Record
from theodolite.stores.sqlite.aside import taken
from theodolite.stores.sqlite.commit import Chain

__all__ = ("Backlog", "Turn")

_STAYS: Final = "what was not written stays in memory and is tried again: do not append it twice"
_ENDED: Final = "the store is closed, or its writing thread has died: open it again"


class Turn(NamedTuple):
    """Somebody who waits: since which attempt, and until when (seconds of the monotonic clock)."""

    since: int
    until: float

    def wait(self, gate: threading.Lock) -> None:
        """Wait at a gate until something has changed, or the time is up."""
        gate.acquire(timeout=max(0.0, self.until - time.monotonic()))


class Backlog:
    """Sealed records in order, bounded by `room` (bytes); safe for several threads.

    Callers hold `lock` around `admit` and `put`, so that nothing comes between the sealing of a record and its place in
    the queue; nobody waits while he holds it. One thread runs `work`, which hands all there is to a function, as one
    group: at once when somebody waits, otherwise after `linger` seconds, in which a group can grow. A group that fails
    stays where it is and is tried again when somebody waits or has been told, or after `retry` seconds. Nobody waits
    longer than `limit` seconds.

    A signal handler may raise in a caller wherever Python code is entered and a call returns. So there are plain locks
    alone here, which `with` takes and gives back in one step: a Condition, an Event or a Queue may be left taken.
    """

    def __init__(self, *, room: int, linger: float, retry: float, limit: float) -> None:
        self.lock = threading.Lock()
        self.limit: Final = limit
        self._room: Final = room
        self._linger: Final = linger
        self._retry: Final = retry
        self._bell = taken()  # given back when there is something to do
        self._gates: list[threading.Lock] = []  # given back when something has changed
        self._pending: deque[tuple[Record, int]] = deque()
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

    def turn(self) -> Turn:
        """Return the turn of somebody who comes now."""
        return Turn(self._attempts, time.monotonic() + self.limit)

    def admit(self, size: int, turn: Turn, *, waits: bool) -> threading.Lock | None:
        """Return None where there is room for a record of that size, else where to wait before asking again.

        With `waits` the caller is going to `wait` for the record. Raises StoreError after a group has failed, to the
        first who does not wait, and to all when there is no room; and after the end.
        """
        if self._stopping or self._stopped:
            raise StoreError(_ENDED)
        full = bool(self._pending) and self._bytes + size > self._room
        if self._fault is not None and not waits and (full or not self._told):
            self._told = True
            self._rush()
            raise StoreError(f"{self._fault} ({self.left} records wait in memory; this one was not taken)")
        return self._gate(turn, "the memory for waiting records is full; this one was not taken") if full else None

    def put(self, record: Record, size: int, chain: Chain) -> None:
        """Queue a record that was admitted, and move the end of its chain."""
        self._ring()  # before the rest: who is rung for then waits for the lock
        if 2 * (self._bytes + size) > self._room:
            self._hurry = True
        # No call but the last, so that no signal handler comes between: all of this happens, or nothing.
        chain.n = record.n
        chain.hash = record.hash
        self._bytes += size
        self._added += 1
        self._pending.append((record, size))

    def wait(self) -> None:
        """Wait until all that was put before is settled. Raises StoreError when an attempt that begins now fails."""
        ticket, turn = self._added, self.turn()
        while True:
            with self.lock:
                if self._settled >= ticket:
                    return
                gate = self._gate(turn, _STAYS)
            turn.wait(gate)

    def _gate(self, turn: Turn, consequence: str) -> threading.Lock:
        """Return where to wait for the next change. Raises StoreError where none is to be waited for."""
        if self._failed > turn.since and self._fault is not None:
            raise StoreError(f"{self._fault} ({consequence})") from self._fault
        if self._stopped:
            raise StoreError(f"the store was closed or its writing thread has died ({consequence})")
        if time.monotonic() >= turn.until:
            raise StoreError(
                f"the disk has not answered for {self.limit:g} s, and {self.left} records are in memory alone: look "
                f"for a fault of the disk ({consequence})"
            )
        gate = taken()
        self._gates.append(gate)
        self._rush()
        return gate

    def _rush(self) -> None:
        self._hurry = True
        self._ring()

    def _ring(self) -> None:
        if self._bell.locked():
            self._bell.release()

    def _open_gates(self) -> None:
        for gate in self._gates:
            gate.release()
        self._gates.clear()

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
                self._open_gates()

    def _take(self) -> tuple[Record, ...]:
        while self._idle():
            self._bell.acquire()
        until = time.monotonic() + (self._linger if self._fault is None else self._retry)
        while not (self._hurry or self._stopping) and (left := until - time.monotonic()) > 0:
            self._bell.acquire(timeout=left)
        with self.lock:
            if not self._pending or (self._stopping and self._fault is not None):
                self._stopped = True  # under the same lock, so that nothing is admitted any more
                return ()
            self._hurry = False
            self._attempts += 1
            return tuple([record for record, _ in self._pending])

    def _idle(self) -> bool:
        with self.lock:
            return not self._pending and not self._stopping

    def _fail(self, fault: StoreError) -> None:
        with self.lock:
            self._failed, self._fault, self._told = self._attempts, fault, False
            self._open_gates()

    def _settle(self, count: int) -> None:
        with self.lock:
            for _ in range(count):
                _, size = self._pending.popleft()
                self._bytes -= size
            self._settled += count
            self._fault = None
            self._open_gates()

    def stop(self) -> None:
        """End the work once the queue is empty or an attempt fails. Nothing is admitted from now on."""
        with self.lock:
            self._stopping = True
            self._ring()
