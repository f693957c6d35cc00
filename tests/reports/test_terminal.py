"""On a terminal the same report has color, and fits."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table
from theodolite.reports.terminal import show
from theodolite.reports.text import TextReport
from theodolite.reports.totals import Run, Totals
from theodolite.runtime.replay import Sighting
from theodolite.testing.sessions import hijacked_session


def _drawn(blocks: list[Block], width: int, *, color: bool = False) -> str:
    stream = StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
    )
    show(blocks, console)
    return stream.getvalue()


@pytest.fixture
def blocks(replayed: Callable[..., Sighting]) -> list[Block]:
    found: list[Block] = []
    totals, report = Totals(), TextReport(found.extend)
    sighting = replayed(hijacked_session(), "a-session-with-a-name-of-its-own")
    totals.add(sighting)
    report.add(sighting)
    report.end(totals, Run(version="1.0"))
    return found


@pytest.mark.parametrize("width", [40, 80, 200])
def test_it_fits_any_width_and_loses_nothing(blocks: list[Block], width: int) -> None:
    text = _drawn(blocks, width)
    assert all(cell_len(line) <= width for line in text.splitlines())
    squeezed = "".join(text.split())
    for part in ("ALARMmargin.untrusted", "send_money(event7)", "[REDACTED:EMAIL]", "explainmargin.untrusted"):
        assert part in squeezed


def test_findings_have_color(blocks: list[Block]) -> None:
    assert "\x1b[1;31mFinding in session \x1b[0m" in _drawn(blocks, 100, color=True)


def test_no_color_means_none(blocks: list[Block]) -> None:
    assert "\x1b" not in _drawn(blocks, 100)


def test_a_table_that_does_not_fit_becomes_sentences() -> None:
    table = Table(("event", "call"), ((Span("7"), Span("send_all_the_money_away", Style.BAD)),))
    assert _drawn([table], 40) == "  event  call\n  7      send_all_the_money_away\n"
    assert _drawn([table], 30).split() == ["event", "7", "call", "send_all_the_money_away"]


def test_a_table_without_names_of_columns_begins_with_its_rows() -> None:
    table = Table(("", ""), ((Span("/to"), Span("from the user")),))
    assert _drawn([table], 40) == "  /to  from the user\n"
    assert _drawn([table], 16).split() == ["/to", "from", "the", "user"]


def test_wide_characters_keep_columns_apart() -> None:
    table = Table(("call", "said"), ((Span("支付"), Span("x")), (Span("ab"), Span("y"))))
    assert _drawn([table], 40).splitlines()[1:] == ["  支付  x", "  ab    y"]


def test_a_paragraph_hangs_and_a_heading_stands_apart() -> None:
    text = _drawn([Heading((Span("One"),)), Paragraph((Span("some words that wrap"),)), Heading((Span("Two"),))], 16)
    assert text.splitlines() == ["One", "  some words ", "    that wrap", "", "Two"]
