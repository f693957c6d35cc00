"""The parts of a report for people, and their plain form. Every text in them is made inert where it is written."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from theodolite.reports.escaping import inert

__all__ = ("Block", "Heading", "Paragraph", "Span", "Style", "Table", "counted", "plain")

# A plain report looks the same wherever it is written, so its width does not depend on where that is.
WIDTH = 100


class Style(StrEnum):
    """What a text is, for a terminal that can show it."""

    PLAIN = ""
    STRONG = "strong"
    QUIET = "quiet"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    QUOTED = "quoted"


class Span(NamedTuple):
    """A stretch of text in one style."""

    text: str
    style: Style = Style.PLAIN


class Heading(Struct, frozen=True):
    """Begins a part of the report."""

    spans: tuple[Span, ...]


class Paragraph(Struct, frozen=True):
    """Spans that are read one after the other; lines after the first stand `hang` further to the right."""

    spans: tuple[Span, ...]
    indent: int = 2
    hang: int = 2


class Table(Struct, frozen=True):
    """Rows of as many cells. `head` names the columns; the last one may be of any width."""

    head: tuple[str, ...]
    rows: tuple[tuple[Span, ...], ...]
    indent: int = 2


Block = Heading | Paragraph | Table


def counted(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "session"), counted(2_000, "session")
    ('1 session', '2,000 sessions')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def plain(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the lines of a report without color, each with its newline.

    >>> seen = Table(("who", "how often"), ((Span("me"), Span("2")),))
    >>> print("".join(plain([Heading((Span("Seen"),)), seen])), end="")
    Seen
      who  how often
      me   2
    """
    for place, block in enumerate(blocks):
        if isinstance(block, Heading):
            yield "\n" * (place > 0)
            yield from _wrapped(block.spans, indent=0, hang=2)
        elif isinstance(block, Paragraph):
            yield from _wrapped(block.spans, indent=block.indent, hang=block.hang)
        else:
            yield from _table(block)


def _wrapped(spans: Iterable[Span], *, indent: int, hang: int) -> Iterator[str]:
    text = "".join([inert(span.text) for span in spans])
    rest = " " * (indent + hang)
    for line in textwrap.wrap(text, WIDTH, initial_indent=" " * indent, subsequent_indent=rest):
        yield f"{line}\n"


def _table(table: Table) -> Iterator[str]:
    rows = [table.head] if any(table.head) else []
    rows += [tuple([inert(cell.text) for cell in row]) for row in table.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield f"{' ' * table.indent}{'  '.join(cells)}".rstrip() + "\n"
