"""Recorded sessions shown to a person one by one, and what the person says of each, kept line by line."""

from __future__ import annotations

import os
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from msgspec.structs import replace

from theodolite.cli.asking import settings_of, without_models
from theodolite.cli.exits import NOT_JUDGED, NOTHING, say
from theodolite.cli.judging import Request, wired
from theodolite.cli.output import involved, spared, write_blocks
from theodolite.cli.recordings import Recordings
from theodolite.config.wiring import Instrument
from theodolite.core.errors import ConfigError
from theodolite.core.event import MessageObserved, ToolResultObserved
from theodolite.core.labels import Known, Label, Labels, encode_label, read_labels
from theodolite.core.reader import Recorded, Unreadable
from theodolite.core.redaction import Redactor, Scrubber
from theodolite.readers.detection import find_recordings
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, counted
from theodolite.reports.limits import NAME, ROWS
from theodolite.reports.pages import pages_of
from theodolite.reports.session import every_call, session_blocks
from theodolite.runtime.replay import Sighting, replay

__all__ = ("Labeling", "label_sessions")

# Sessions that can be gone back to, and characters of a note: our choice.
_BACK, _NOTE = 50, 500
_CHOICES = "c(lean)  d(rifted)  u(nknown)  b(ack)  s(kip)  q(uit); a note may follow: "


class Labeling(Request, frozen=True, kw_only=True):
    """What was asked for: the arguments of `dataset label`. `date` is today, as 2026-01-31."""

    labels: Path
    by: str
    date: str


class _Answer(StrEnum):
    CLEAN = "clean"
    DRIFTED = "drifted"
    UNKNOWN = "unknown"
    BACK = "back"
    SKIP = "skip"
    QUIT = "quit"


_KNOWN: Mapping[_Answer, Known | None] = {
    _Answer.CLEAN: Known.CLEAN,
    _Answer.DRIFTED: Known.DRIFTED,
    _Answer.UNKNOWN: None,
}


class _Shown(NamedTuple):
    """A session as it is shown."""

    session: str
    blocks: tuple[Block, ...]


def label_sessions(request: Labeling) -> int:
    """Show each session that has no label yet, ask for one, and return the exit status.

    An answer is in the file before the next session is shown. Raises TheodoliteError and KeyboardInterrupt.
    """
    settings = without_models(settings_of(request.config, model=None, system=None))
    # A file of labels may lie in the folder of the recordings, and is none of them.
    files = [file for file in find_recordings(request.paths) if file.absolute() != request.labels.absolute()]
    spared(request.labels, *files, *involved(replace(request, labels=Path()), settings), option="--labels")
    with wired(settings, request, asks=False) as instrument, _File(request.labels) as kept:
        sessions = _Sessions(instrument, files, request.reader)
        given: Counter[_Answer] = Counter()
        try:
            for shown, (answer, note) in _answers(sessions.unlabeled(kept.known), kept.known):
                given[answer] += 1
                if answer in _KNOWN:
                    known = _KNOWN[answer]
                    by = inert(request.by, NAME)
                    kept.add(Label(session=shown.session, known=known, by=by, date=request.date, note=note))
        finally:
            if sessions.count:
                _say_result(request, given, sessions)
    return NOTHING if sessions.count else NOT_JUDGED


def _say_result(request: Labeling, given: Counter[_Answer], sessions: _Sessions) -> None:
    told = ", ".join([f"{given[answer]} {answer}" for answer in _KNOWN if given[answer]]) or "no answer"
    say(f"{told}, kept in {request.labels}; of {counted(sessions.count, 'session')} met, {sessions.passed} had a label")
    if sessions.unreadable:
        paths = " ".join(map(str, request.paths))
        say(f"warning: {counted(sessions.unreadable, 'part')} cannot be read: theodolite scan {paths} tells which")


class _Sessions:
    """The sessions of some files in words, as they come. Counts them, and the parts that cannot be read."""

    def __init__(self, instrument: Instrument, files: Iterable[Path], reader: str | None) -> None:
        self.count = self.passed = self.unreadable = 0
        self._instrument = instrument
        self._held = Recordings(tuple(files), instrument.readers, reader=reader)
        self._words = _Words(instrument.monitor.fleet.redactor)

    def unlabeled(self, known: Mapping[str, Label]) -> Iterator[_Shown]:
        """Yield the sessions that have no label. Holds the sessions that are not over."""
        monitor = self._instrument.monitor
        pages = pages_of(monitor.detectors)
        recorded = (item for file in self._held.files for item in self._held.read(file))
        for item in replay(self._words.noted(recorded), monitor):
            if isinstance(item, Unreadable):
                self.unreadable += 1
                continue
            self.count += 1
            self.unreadable += len(item.unreadable)
            words = tuple(self._words.of(item.session))
            if item.session in known:
                self.passed += 1
            else:
                yield _Shown(item.session, (*self._judged(item, pages), *words))

    def _judged(self, item: Sighting, pages: Mapping[str, str]) -> Iterator[Block]:
        origin = self._held.origin(item.session)
        yield from session_blocks(item, origin, pages)
        yield from every_call(item, origin)


class _Words:
    """What was returned and said in sessions that are not over, redacted and cut: a hundred lines of each at most."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._said: dict[str, list[Block]] = {}

    def noted(self, recorded: Iterable[Recorded]) -> Iterator[Recorded]:
        """Yield what was recorded, and note what is to be shown."""
        for item in recorded:
            if isinstance(item, ToolResultObserved):
                self._note(item.session, f"{item.tool or 'a tool'} returned", item.text)
            elif isinstance(item, MessageObserved) and item.role == "assistant":
                self._note(item.session, "the agent said", item.text)
            yield item

    def of(self, session: str) -> Iterator[Block]:
        """Yield what a session showed, and forget it."""
        said = self._said.pop(session, [])
        if said:
            yield Heading((Span("What was returned and said"),))
        yield from said[:ROWS]
        if len(said) > ROWS:
            yield Paragraph((Span("... and more, which the recording has", Style.QUIET),))

    def _note(self, session: str, who: str, text: object) -> None:
        said = self._said.setdefault(session, [])
        if len(said) > ROWS or not (isinstance(text, str) and text):
            return
        scrub = Scrubber(self._redactor, (), ())
        quoted = Span(f'"{scrub.quote(text)}"', Style.QUOTED)
        said.append(Paragraph((Span(f"{scrub.quote(who)[:NAME]}: "), quoted)))


def _answers(sessions: Iterator[_Shown], known: Mapping[str, Label]) -> Iterator[tuple[_Shown, tuple[_Answer, str]]]:
    """Yield each session with its answer, until there are no more sessions or nobody answers."""
    behind: deque[_Shown] = deque(maxlen=_BACK)
    ahead: list[_Shown] = []
    while shown := ahead.pop() if ahead else next(sessions, None):
        _show(shown, known.get(shown.session))
        answer, note = _asked()
        if answer is _Answer.QUIT:
            return
        if answer is _Answer.BACK:
            ahead.append(shown)
            if behind:
                ahead.append(behind.pop())
            else:
                say("there is no session to go back to")
            continue
        yield shown, (answer, note)
        behind.append(shown)


def _show(shown: _Shown, before: Label | None) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(b"\n")
    write_blocks(shown.blocks, sys.stdout.buffer, terminal=sys.stdout.isatty())
    sys.stdout.buffer.flush()
    if before is not None:
        say(f"labeled before: {before.known or 'unknown'}")


def _asked() -> tuple[_Answer, str]:
    """Return the answer and the note of the next line that is one; without a line, nobody is there: quit."""
    stream = getattr(sys.stdin, "buffer", None)  # None where whoever started this program closed it
    while True:
        sys.stderr.write(_CHOICES)
        sys.stderr.flush()
        line = b"" if stream is None else stream.readline()
        if not line:
            sys.stderr.write("\n")
            return _Answer.QUIT, ""
        word, _, note = line.decode("utf-8", "backslashreplace").strip().partition(" ")
        fitting = [answer for answer in _Answer if word and answer.startswith(word.lower())]
        if len(fitting) == 1:
            return fitting[0], inert(note.strip(), _NOTE)
        say("one of the letters c, d, u, b, s, q is expected")


class _File:
    """A file of labels that answers are added to, each whole on the disk before it is counted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._labels = self._read()
        self.known: dict[str, Label] = dict(self._labels.of)

    def __enter__(self) -> Self:
        """Open the file, made if absent, after its last whole line. Raises ConfigError where that cannot be."""
        try:
            self._stream = self._path.open("ab")
            if self._labels.torn:
                say(f"warning: line {self._labels.torn} of {self._path} was cut short, and is taken away")
                self._stream.truncate(self._labels.whole)
            elif self._labels.whole and not self._ends():
                self._stream.write(b"\n")
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written ({error.strerror}): name another file") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Close it."""
        self._stream.close()

    def add(self, label: Label) -> None:
        """Keep a label. Raises ConfigError where the file takes no more, and for a session whose name is too long."""
        try:
            line = encode_label(label)
        except ValueError as error:
            raise ConfigError(f"session {inert(label.session, NAME)} cannot be kept: {error}; skip it") from error
        try:
            self._stream.write(line)
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written ({error.strerror}): free space, or ask again") from error
        self.known[label.session] = label

    def _read(self) -> Labels:
        if not self._path.exists():
            return Labels(of={})
        try:
            with self._path.open("rb") as stream:
                return read_labels(stream, str(self._path))
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be read ({error.strerror}): name another file") from error

    def _ends(self) -> bool:
        with self._path.open("rb") as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read() == b"\n"
