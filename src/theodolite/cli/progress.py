"""How far a verb is, on standard error, for who waits: a bar on a terminal, a line now and then anywhere else."""

from __future__ import annotations

import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from theodolite.cli.exits import say
from theodolite.core.reader import Recorded
from theodolite.reports.escaping import inert
from theodolite.reports.layout import counted

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

__all__ = ("EVERY", "Display", "Probes", "Progress", "span")

# Nobody waits for what takes less than a second; after that, a look every hundred items costs nothing.
_PATIENCE = 1.0
EVERY = 100
# Seconds between two lines in a log: often enough to see that it lives, seldom enough to read the rest. Our choice.
_LINES = 10.0
# Seconds from which on it is said beforehand how long something will take. Our choice: nobody leaves for less.
_LONG = 60.0


class Display:
    """Shows how far something is: on a terminal a bar, from the first second on; elsewhere a line every ten seconds.

    `doing` stands before each line. A `hidden` one shows nothing, one that is not `patient` shows its bar at once.
    `clock` gives seconds.
    """

    def __init__(
        self,
        doing: str = "",
        *,
        hidden: bool = False,
        patient: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._before = doing and f"{doing}: "
        self._hidden = hidden
        self._patience = _PATIENCE if patient else 0.0
        self._clock = clock
        self._begun = self._told = clock()
        self._terminal = sys.stderr.isatty()
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return self._clock() - self._begun

    def left(self, done: float, total: float) -> float | None:
        """Return the seconds that the rest will take, if it goes on as so far; None where nothing or all is done."""
        return self.seconds * (total - done) / done if 0 < done < total else None

    def show(self, done: float, total: float | None, told: Callable[[], str]) -> None:
        """Show that so much of the total is done, if it is time for it, with what is told of it in a line."""
        now = self._clock()
        if self._hidden:
            return
        if not self._terminal:
            if now - self._told >= _LINES:
                self._told = now
                say(f"{self._before}{told()}")
        elif now - self._begun >= self._patience:
            if self._bar is None:
                self._bar = _bar()
                self._bar.start()
            self._bar.update(self._bar.task_ids[0], completed=done, total=total or None, told=told())

    def say(self, text: str) -> None:
        """Say something once, in a line of its own: above the bar, where there is one."""
        if self._hidden:
            return
        if self._bar is None:
            say(f"{self._before}{text}")
        else:
            self._bar.console.print(inert(f"{self._before}{text}"), markup=False, highlight=False, soft_wrap=True)

    def foretell(self, calls: float, first: float | None, *, at_once: int = 1) -> bool:
        """Say how long so many calls will take by the first of them, where that is long; return whether it was known.

        `first` is the seconds that it took, None before it is over.
        """
        if first is None:
            return False
        seconds = first * calls / at_once
        if seconds >= _LONG:
            one = "one at a time" if at_once == 1 else f"{at_once} at a time"
            self.say(
                f"about {counted(round(calls), 'call')}, {one}; the first took {first:,.1f} s, and all will take about "
                f"{span(seconds)}"
            )
        return True


class Probes(Struct, kw_only=True):
    """Probes so far: of how many sessions, how many of those are over, the calls foreseen for them and answered.

    `first` is how many seconds the first call took, `at_once` how many calls are under way at once.
    """

    sessions: int = 0
    over: int = 0
    foreseen: int = 0
    answered: int = 0
    first: float | None = None
    at_once: int = 1


class Progress:
    """Shows how far the reading of files is, and the probing of what they hold, with the time left.

    Where nobody is probed, the time left takes the bytes still to be read to be as slow as those before. It is not told
    where a file has no size, as a pipe has none, nor when all was read. Where somebody is, it takes the calls still to
    come to be as slow as those that were answered, and the bytes still to be read to hold as many as those before; once
    the first call is over it says how long all will take, if that is more than a minute. `doing`
    and `clock` are those of a Display. `streams` says that the report is written as it comes: on the same terminal the
    two would garble each other, and nothing is shown.
    """

    def __init__(
        self,
        files: Sequence[Path],
        *,
        doing: str = "scanning",
        streams: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.files = 0
        self.sessions = 0
        self.probes = Probes()
        self._foretold = False
        self._sizes = [_size(file) for file in files]
        self._total = sum(size or 0 for size in self._sizes)
        self._before = 0
        self._read = 0
        self._events = 0
        garbled = streams and sys.stderr.isatty() and sys.stdout.isatty()
        self._display = Display(doing, hidden=garbled, clock=clock)

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Take the bar away."""
        self._display.__exit__(kind, error, tb)

    def counting(self, recorded: Iterable[Recorded]) -> Iterator[Recorded]:
        """Yield what a file holds, and show how far it is."""
        for item in recorded:
            self._events += 1
            if self._events % EVERY == 0:
                self.show()
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
        """Return the seconds that it will still take; None where nobody can say."""
        if self.probes.sessions:
            return self._display.left(self.probes.answered, self._calls)
        return None if None in self._sizes else self._display.left(self._done, self._total)

    def show(self) -> None:
        """Show how far it is."""
        if self.probes.sessions:
            probes = self.probes
            if not self._foretold:
                self._foretold = self._display.foretell(self._calls, probes.first, at_once=probes.at_once)
            self._display.show(probes.answered, self._calls, self.__str__)
        else:
            self._display.show(self._done, self._total, self.__str__)

    def __str__(self) -> str:
        """Return how far it is, in a line: what matters most comes first, since a terminal may cut it."""
        left = self.left()
        parts = [] if left is None else [f"{span(left)} left"]
        files = f"{self.files:,} of {counted(len(self._sizes), 'file')}"
        if self.probes.sessions:
            calls = f"{self.probes.answered:,} of about {counted(round(self._calls), 'call')} answered"
            return ", ".join([*parts, calls, self._probed(), files])
        rate = f"{self._events / max(self._display.seconds, 1e-9):,.0f} a second"
        size = [] if None in self._sizes else [f"{self._done / 1e6:,.1f} of {self._total / 1e6:,.1f} MB"]
        told = [counted(self.sessions, "session"), counted(self._events, "event"), rate]
        return ", ".join([*parts, files, *size, *told])

    @property
    def _done(self) -> int:
        return self._before + self._read

    @property
    def _whole(self) -> bool:
        """Whether all was read."""
        return self.files == len(self._sizes)

    @property
    def _expected(self) -> float:
        """How many sessions will have been probed in the end."""
        known = not (self._whole or None in self._sizes) and 0 < self._done < self._total
        return self.probes.sessions * (self._total / self._done if known else 1.0)

    @property
    def _calls(self) -> float:
        """About how many calls will have been answered in the end."""
        probes = self.probes
        each = probes.foreseen / probes.sessions if probes.sessions else 0.0
        return max(float(probes.answered), each * self._expected)

    def _probed(self) -> str:
        over, all_told = self.probes.over, round(self._expected)
        if not self._whole and None in self._sizes:
            return f"{over:,} of {all_told:,} or more sessions probed"
        about = "" if self._whole else "about "
        return f"{over:,} of {about}{counted(all_told, 'session')} probed"


def _size(file: Path) -> int | None:
    """Return the size of a file, None where it has none."""
    try:
        found = file.stat()
    except OSError:
        return None  # whoever reads it says why
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def span(seconds: float) -> str:
    """Return a time as a clock shows it.

    >>> span(3725.0), span(59.6)
    ('1:02:05', '1:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _bar() -> Bar:
    from rich.console import Console  # noqa: PLC0415 - only for who waits, and it takes a tenth of a second
    from rich.progress import BarColumn, SpinnerColumn, TextColumn  # noqa: PLC0415 - as above
    from rich.progress import Progress as Bar  # noqa: PLC0415 - as above

    columns = (SpinnerColumn(), BarColumn(bar_width=20), TextColumn("{task.fields[told]}", markup=False))
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    bar.add_task("", total=None, told="")
    return bar
