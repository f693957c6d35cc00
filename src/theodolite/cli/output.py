"""Where a report goes, and in which form it is written there."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from theodolite.cli.choices import Form
from theodolite.core.errors import ConfigError
from theodolite.reports.json import JSONLinesReport, JSONReport
from theodolite.reports.layout import Block, plain
from theodolite.reports.text import TextReport
from theodolite.reports.totals import Report

__all__ = ("reporting", "write_blocks")


@contextmanager
def reporting(form: Form, path: Path | None, pages: Mapping[str, str]) -> Generator[Report, None, None]:
    """Give the report that writes to a file, or to standard output; `pages` are those of plug-ins.

    Raises ConfigError when the file cannot be opened.
    """
    if path is None:
        sys.stdout.flush()
        yield _report(form, sys.stdout.buffer, terminal=sys.stdout.isatty(), pages=pages)
        sys.stdout.buffer.flush()
        return
    try:
        stream = path.open("wb")
    except OSError as error:
        raise ConfigError(f"the report cannot be written to {path} ({error.strerror}): name another file") from error
    with stream:
        yield _report(form, stream, terminal=False, pages=pages)


def _report(form: Form, stream: BinaryIO, *, terminal: bool, pages: Mapping[str, str]) -> Report:
    if form is Form.JSON:
        return JSONReport(stream)
    if form is Form.JSONL:
        return JSONLinesReport(stream)
    return TextReport(lambda blocks: write_blocks(blocks, stream, terminal=terminal), pages=pages)


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
