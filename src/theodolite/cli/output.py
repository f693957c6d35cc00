"""Where a report goes, and in which form it is written there."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct

from theodolite.cli.choices import Form, Retold
from theodolite.cli.exits import say
from theodolite.cli.triaging import SUPPRESSIONS
from theodolite.config.models import LocalSettings
from theodolite.config.settings import FILE, Settings
from theodolite.core.arguments import is_sequence
from theodolite.core.errors import ConfigError
from theodolite.reports.json import JSONLinesReport, JSONReport
from theodolite.reports.layout import Block, plain
from theodolite.reports.text import TextReport
from theodolite.reports.totals import Report
from theodolite.reports.writer import Writer, WriterReport

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ("Show", "check_drawable", "involved", "opened", "reporting", "spared", "write_blocks", "writing")

_NOTHING: Mapping[str, float] = MappingProxyType({})
# What a SQLite file begins with, and what it has beside it while it is in use: https://www.sqlite.org/fileformat.html,
# section 1.2, and https://www.sqlite.org/tempfiles.html, sections 2.1 to 2.3.
SQLITE = b"SQLite format 3\0"
_BESIDE = ("", "-journal", "-wal", "-shm")

Show = Callable[[Iterable[Block]], None]
"""Writes blocks somewhere."""


def spared(output: Path | None, *others: Path, option: str = "--output") -> None:
    """Refuse to write over what a command reads or keeps, and over any database, which may be evidence.

    A folder among the others stands for what is in it. Links are followed. Raises ConfigError with the option.
    """
    if output is None:
        return
    for other in others:
        same = any(_same(output, other.with_name(f"{other.name}{ending}")) for ending in _BESIDE if other.name)
        if same or (other.is_dir() and Path(os.path.realpath(other)) in Path(os.path.realpath(output)).parents):
            raise ConfigError(f"{option} {output} is what this command reads or keeps: name another file")
    if output.is_file() and _begins(output, SQLITE):
        raise ConfigError(f"{option} {output} is a database, and may be evidence: name another file")


def involved(request: Struct, settings: Settings) -> tuple[Path, ...]:
    """Return what a command reads or keeps, as far as it is named before anything is searched.

    That is every path among its arguments but `output`, those of its settings, and the files that it looks for by
    itself. A folder among the arguments may be written to: the recordings in it are the caller's to add.
    """
    named: list[object] = [getattr(request, name) for name in request.__struct_fields__ if name != "output"]
    listed = [one for given in named for one in (given if is_sequence(given) else (given,))]
    paths = [one for one in listed if isinstance(one, Path) and not one.is_dir()]
    store = settings.store
    kept = (store.path, store.key_file, store.raw_events, store.shelf, settings.calibration)
    weights = [model.model for model in settings.models.values() if isinstance(model, LocalSettings)]
    set_so = [Path(settings.folder, path) for path in (*kept, *weights) if path]
    return (*paths, *set_so, Path(FILE), Path(SUPPRESSIONS))


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return os.path.realpath(one) == os.path.realpath(other)


def _begins(file: Path, head: bytes) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(len(head)) == head
    except OSError:
        return False  # whoever writes to it says why


@contextmanager
def reporting(
    form: Form,
    path: Path | None,
    pages: Mapping[str, str],
    thresholds: Mapping[str, float] = _NOTHING,
    *,
    text: Callable[[Show], Report] | None = None,
) -> Generator[Report, None, None]:
    """Give the report that writes to a file, or to standard output.

    `pages` are those of plug-ins, `thresholds` the scores from which codes alarm; `text` makes the report for people,
    where it is not the one of a scan. Raises ConfigError when the form cannot go there, or the file cannot be written,
    and MissingExtraError when the form needs what is not installed.
    """
    check_drawable(form, path)
    with opened(path) as stream:
        if form is Form.JSON:
            yield JSONReport(stream)
        elif form is Form.JSONL:
            yield JSONLinesReport(stream)
        elif form is Form.TEXT:
            terminal = path is None and sys.stdout.isatty()
            show = partial(write_blocks, stream=stream, terminal=terminal)
            yield TextReport(show, pages=pages) if text is None else text(show)
        else:
            yield WriterReport(_writer(Retold(form), stream, pages), thresholds=thresholds)


@contextmanager
def writing(form: Retold, path: Path | None) -> Generator[Writer, None, None]:
    """Give what writes sessions of a document in a form. Only when all is written is it put where it goes.

    Raises as `reporting` does.
    """
    check_drawable(Form(form), path)
    with TemporaryFile() as held:
        yield _writer(form, held, {})
        held.seek(0)
        with opened(path) as stream:
            shutil.copyfileobj(held, stream)


def check_drawable(form: Form, path: Path | None) -> None:
    """Raise ConfigError where a picture would go to a terminal, and warn where it will have no text."""
    if form is Form.PNG:
        from theodolite.reports.png import has_fonts  # noqa: PLC0415 - an extra

        if path is None and sys.stdout.isatty():
            raise ConfigError("a picture cannot be shown on a terminal: name a file with --output FILE")
        if not has_fonts():
            say("warning: this system has no font, so that the picture has no text: install one, DejaVu for instance")


@contextmanager
def opened(path: Path | None) -> Generator[BinaryIO, None, None]:
    """Give what a report is written to, standard output without a path. Raises ConfigError where it cannot be."""
    if path is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        file = _File(path, "wb")
    except OSError as error:
        raise ConfigError(f"the report cannot be written to {path} ({error.strerror}): name another file") from error
    with io.BufferedWriter(file) as stream:
        yield stream


class _File(io.FileIO):
    """A file that a report is written to; that it takes no more is then known from what else may go wrong."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write. Raises ConfigError where that cannot be, and BrokenPipeError where nobody reads any more."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise ConfigError(
                f"the output cannot be written to {self.name!s} ({error.strerror}): free space, or name another file"
            ) from error


def _writer(form: Retold, stream: BinaryIO, pages: Mapping[str, str]) -> Writer:
    """Return a writer. Each is imported when it is used: together they cost a tenth of a second."""
    if form is Retold.HTML:
        from theodolite.reports.html.page import HTMLWriter  # noqa: PLC0415 - as above

        return HTMLWriter(stream, pages=pages)
    if form is Retold.JUNIT:
        from theodolite.reports.junit import JUnitWriter  # noqa: PLC0415 - as above

        return JUnitWriter(stream, pages=pages)
    if form is Retold.SARIF:
        from theodolite.reports.sarif import SarifWriter  # noqa: PLC0415 - as above

        return SarifWriter(stream, pages=pages)
    from theodolite.reports.png import PNGWriter  # noqa: PLC0415 - as above

    return PNGWriter(stream)


def write_blocks(blocks: Iterable[Block], stream: BinaryIO, *, terminal: bool) -> None:
    """Write the blocks of a report: drawn for the terminal that standard output is, or plain."""
    encoding = sys.stdout.encoding if stream is sys.stdout.buffer else "utf-8"
    texts = _drawn(blocks) if terminal else plain(blocks)
    stream.writelines(text.encode(encoding, "backslashreplace") for text in texts)


def _drawn(blocks: Iterable[Block]) -> Iterator[str]:
    from rich.console import Console  # noqa: PLC0415 - a pipe does not need it, and it takes a tenth of a second

    from theodolite.reports.terminal import show  # noqa: PLC0415 - as above

    console = Console(highlight=False, markup=False, emoji=False)
    with console.capture() as shown:
        show(blocks, console)
    yield shown.get()
