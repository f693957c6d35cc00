"""Where a report goes, and in which form it is written there."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import BinaryIO

from theodolite.cli.choices import Form, Retold
from theodolite.cli.exits import say
from theodolite.core.errors import ConfigError
from theodolite.reports.json import JSONLinesReport, JSONReport
from theodolite.reports.layout import Block, plain
from theodolite.reports.text import TextReport
from theodolite.reports.totals import Report
from theodolite.reports.writing import Writer, WriterReport

__all__ = ("reporting", "write_blocks", "writing")

_NOTHING: Mapping[str, float] = MappingProxyType({})


@contextmanager
def reporting(
    form: Form, path: Path | None, pages: Mapping[str, str], thresholds: Mapping[str, float] = _NOTHING
) -> Generator[Report, None, None]:
    """Give the report that writes to a file, or to standard output.

    `pages` are those of plug-ins, `thresholds` the scores from which codes alarm. Raises ConfigError when the form
    cannot go there, or the file cannot be opened, and MissingExtraError when the form needs what is not installed.
    """
    _check(form, path)
    with _opened(path) as stream:
        if form is Form.JSON:
            yield JSONReport(stream)
        elif form is Form.JSONL:
            yield JSONLinesReport(stream)
        elif form is Form.TEXT:
            terminal = path is None and sys.stdout.isatty()
            yield TextReport(lambda blocks: write_blocks(blocks, stream, terminal=terminal), pages=pages)
        else:
            yield WriterReport(_writer(Retold(form), stream, pages, thresholds))


@contextmanager
def writing(form: Retold, path: Path | None) -> Generator[Writer, None, None]:
    """Give what writes sessions of a document in a form. Only when all is written is it put where it goes.

    Raises as `reporting` does.
    """
    _check(Form(form), path)
    with TemporaryFile() as held:
        yield _writer(form, held, {}, _NOTHING)
        held.seek(0)
        with _opened(path) as stream:
            shutil.copyfileobj(held, stream)


def _check(form: Form, path: Path | None) -> None:
    if form is Form.PNG:
        from theodolite.reports.png import has_fonts  # noqa: PLC0415 - an extra

        if path is None and sys.stdout.isatty():
            raise ConfigError("a picture cannot be shown on a terminal: name a file with --output FILE")
        if not has_fonts():
            say("warning: this system has no font, so that the picture has no text: install one, DejaVu for instance")


@contextmanager
def _opened(path: Path | None) -> Generator[BinaryIO, None, None]:
    if path is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        stream = path.open("wb")
    except OSError as error:
        raise ConfigError(f"the report cannot be written to {path} ({error.strerror}): name another file") from error
    with stream:
        yield stream


def _writer(form: Retold, stream: BinaryIO, pages: Mapping[str, str], thresholds: Mapping[str, float]) -> Writer:
    """Return a writer. Each is imported when it is used: together they cost a tenth of a second."""
    if form is Retold.HTML:
        from theodolite.reports.html.page import HTMLWriter  # noqa: PLC0415 - as above

        return HTMLWriter(stream, pages=pages, thresholds=thresholds)
    if form is Retold.JUNIT:
        from theodolite.reports.junit import JUnitWriter  # noqa: PLC0415 - as above

        return JUnitWriter(stream, pages=pages)
    if form is Retold.SARIF:
        from theodolite.reports.sarif import SarifWriter  # noqa: PLC0415 - as above

        return SarifWriter(stream, pages=pages)
    from theodolite.reports.png import PNGWriter  # noqa: PLC0415 - as above

    return PNGWriter(stream, thresholds=thresholds)


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
