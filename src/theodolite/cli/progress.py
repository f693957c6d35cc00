"""How far a scan is, on standard error, for who waits: a bar on a terminal, a line now and then anywhere else."""

from __future__ import annotations

import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from theodolite.cli.exits import say
from theodolite.core.reader import Recorded
from theodolite.reports.layout import counted

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

__all__ = ("Progress",)

# Nobody waits for what takes less than a second; after that, a look every hundred events costs nothing.
_PATIENCE = 1.0
_EVERY = 100
# Seconds between two lines in a log: often enough to see that it lives, seldom enough to read the rest. Our choice.
_LINES = 10.0


class Progress:
    """Shows files, sessions and events so far, their rate, and the time left by the bytes that were read.

    On a terminal it is a bar, from the first second on; elsewhere a plain line every ten seconds. The time left takes
    the bytes still to be read to be as slow as those before. It is not told where a file has no size, as a pipe has
    none, nor when all was read. `streams` says that the report is written as it comes: on the same terminal the two
    would garble each other, and nothing is shown. `clock` gives seconds.
    """

    def __init__(
        self, files: Sequence[Path], *, streams: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.files = 0
        self.sessions = 0
        self._sizes = [_size(file) for file in files]
        self._total = sum(size or 0 for size in self._sizes)
        self._before = 0
        self._read = 0
        self._events = 0
        self._clock = clock
        self._begun = clock()
        self._told = self._begun
        self._terminal = sys.stderr.isatty()
        self._silent = self._terminal and streams and sys.stdout.isatty()
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

    def filed(self) -> None:
        """Take that the file under way is done."""
        self._before += self._sizes[self.files] or 0
        self._read = 0
        self.files += 1

    def reached(self, place: int) -> None:
        """Take how many bytes of the file under way were read."""
        self._read = place

    def left(self) -> float | None:
        """Return the seconds that reading will still take; None where nobody can say."""
        done, rest = self._done, self._total - self._done
        known = done > 0 and rest > 0 and None not in self._sizes
        return (self._clock() - self._begun) * rest / done if known else None

    @property
    def _done(self) -> int:
        return self._before + self._read

    def __str__(self) -> str:
        """Return how far it is, in a line: what matters most comes first, since a terminal may cut it."""
        seconds, left = max(self._clock() - self._begun, 1e-9), self.left()
        parts = [
            *([] if left is None else [f"{_span(left)} left"]),
            f"{self.files:,} of {counted(len(self._sizes), 'file')}",
            *([] if None in self._sizes else [f"{self._done / 1e6:,.1f} of {self._total / 1e6:,.1f} MB"]),
            counted(self.sessions, "session"),
            counted(self._events, "event"),
            f"{self._events / seconds:,.0f} a second",
        ]
        return ", ".join(parts)

    def _show(self) -> None:
        now = self._clock()
        if not self._terminal:
            if now - self._told >= _LINES:
                self._told = now
                say(f"scanning: {self}")
        elif now - self._begun >= _PATIENCE:
            if self._bar is None:
                self._bar = _bar(self._total)
                self._bar.start()
            self._bar.update(self._bar.task_ids[0], completed=self._done, told=str(self))


def _size(file: Path) -> int | None:
    """Return the size of a file, None where it has none."""
    try:
        found = file.stat()
    except OSError:
        return None  # whoever reads it says why
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _span(seconds: float) -> str:
    """Return a time as a clock shows it.

    >>> _span(3725.0), _span(59.6)
    ('1:02:05', '1:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _bar(total: int) -> Bar:
    from rich.console import Console  # noqa: PLC0415 - only for who waits, and it takes a tenth of a second
    from rich.progress import BarColumn, SpinnerColumn, TextColumn  # noqa: PLC0415 - as above
    from rich.progress import Progress as Bar  # noqa: PLC0415 - as above

    columns = (SpinnerColumn(), BarColumn(bar_width=20), TextColumn("{task.fields[told]}", markup=False))
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    bar.add_task("scan", total=total or None, told="")
    return bar
