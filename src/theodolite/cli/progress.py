"""How far a scan is, on standard error, for who waits at a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from theodolite.core.reader import Recorded

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

__all__ = ("Progress",)

# Nobody waits for what takes less than a second. After that, a look every hundred events costs nothing.
_PATIENCE = 1.0
_EVERY = 100


class Progress:
    """Shows files, sessions and events so far, from the first second on. Silent where standard error is no terminal.

    `streams` says that the report is written as it comes: on the same terminal the two would garble each other.
    """

    def __init__(self, total: int, *, streams: bool = False) -> None:
        self.files = 0
        self.sessions = 0
        self._total = total
        self._events = 0
        self._begun = time.monotonic()
        self._silent = not sys.stderr.isatty() or (streams and sys.stdout.isatty())
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def counting(self, recorded: Iterable[Recorded]) -> Iterator[Recorded]:
        """Yield what a file holds, and show how far it is."""
        for item in recorded:
            self._events += 1
            if self._events % _EVERY == 0 and not self._silent:
                self._show()
            yield item

    def _show(self) -> None:
        if self._bar is None:
            if time.monotonic() - self._begun < _PATIENCE:
                return
            self._bar = _bar(self._total)
            self._bar.start()
        rate = self._events / (time.monotonic() - self._begun)
        counts = f"{self.sessions:,} sessions, {self._events:,} events, {rate:,.0f} events/s"
        self._bar.update(self._bar.task_ids[0], completed=self.files, counts=counts)


def _bar(total: int) -> Bar:
    from rich.console import Console  # noqa: PLC0415 - only for who waits, and it takes a tenth of a second
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn  # noqa: PLC0415 - as above
    from rich.progress import Progress as Bar  # noqa: PLC0415 - as above

    columns = (SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TextColumn("files, {task.fields[counts]}"))
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    bar.add_task("scan", total=total, counts="")
    return bar
