"""The report on a terminal: in color, and as wide as the terminal is."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.style import Style as RichStyle
from rich.text import Text

from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table

__all__ = ("show",)

_STYLES = {
    Style.PLAIN: RichStyle(),
    Style.STRONG: RichStyle(bold=True),
    Style.QUIET: RichStyle(dim=True),
    Style.GOOD: RichStyle(color="green"),
    Style.WARN: RichStyle(color="yellow"),
    Style.BAD: RichStyle(color="red", bold=True),
    Style.QUOTED: RichStyle(color="cyan"),
}

# Columns between two columns of a table.
_GAP = 2


def show(blocks: Iterable[Block], console: Console) -> None:
    """Write a report. Its texts are never read as markup, emoji codes or links."""
    for place, block in enumerate(blocks):
        if isinstance(block, Heading):
            if place:
                console.print()
            console.print(_text(block.spans))
        elif isinstance(block, Paragraph):
            _paragraph(block, console)
        else:
            _table(block, console)


def _paragraph(block: Paragraph, console: Console) -> None:
    """Wrap by hand: rich has no hanging indent. On a narrow terminal the hang gives way to the text."""
    indent = min(block.indent, console.width // 8)
    hang = min(block.hang, console.width // 8)
    text = _text(block.spans)
    lines = text.wrap(console, console.width - indent - hang)
    for place, line in enumerate(lines):
        console.print(Text(" " * (indent + (hang if place else 0))) + line)


def _table(block: Table, console: Console) -> None:
    """Write a table, or where it does not fit each of its rows as a sentence."""
    head = [tuple([Span(name, Style.QUIET) for name in block.head])] if any(block.head) else []
    grid = [[_text((cell,)) for cell in row] for row in (*head, *block.rows)]
    widths = [max(cell.cell_len for cell in column) for column in zip(*grid, strict=True)]
    if block.indent + sum(widths) + _GAP * (len(widths) - 1) > console.width:
        for row in block.rows:
            _paragraph(Paragraph(_sentence(block.head, row), block.indent), console)
        return
    for cells in grid:
        line = Text(" " * block.indent)
        for cell, width in zip(cells, widths, strict=True):
            line.append_text(cell).append(" " * (width - cell.cell_len + _GAP))
        line.rstrip()
        console.print(line)


def _sentence(head: tuple[str, ...], row: tuple[Span, ...]) -> tuple[Span, ...]:
    spans: list[Span] = []
    for name, cell in zip(head, row, strict=True):
        if cell.text:
            spans += [Span(f"{'  ' if spans else ''}{name}{' ' if name else ''}", Style.QUIET), cell]
    return tuple(spans)


def _text(spans: Iterable[Span]) -> Text:
    text = Text()
    for span in spans:
        text.append(inert(span.text), _STYLES[span.style])
    return text
