"""What a report says of the settings' word on tools: whose results are trusted, and which names nobody met."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO

import msgspec
import pytest

from theodolite.core.policy import Outcome
from theodolite.reports.document import Document, Summary
from theodolite.reports.entries import document, session_report, summary
from theodolite.reports.html.page import HTMLWriter
from theodolite.reports.limits import PARTS
from theodolite.reports.summaries import Summaries
from theodolite.reports.totals import Run, Totals
from theodolite.runtime.replay import Sighting

Saw = Callable[..., Sighting]
Told = Callable[..., str]
RUN = Run(version="1.0", trusted=("contacts", "pay\x1broll"), unmet=("get_blance",))


def _page(run: Run) -> str:
    stream = BytesIO()
    HTMLWriter(stream).end(summary(Totals(), run))
    return stream.getvalue().decode()


def test_the_text_says_whose_results_are_trusted_and_which_names_nobody_met(saw: Saw, told: Told) -> None:
    text = " ".join(told(saw((), outcome=Outcome.CLEAN), run=RUN).split())
    assert r"By the settings only you and the user write what these tools return: contacts, pay\x1broll." in text
    assert "[tools] names get_blance, which no session here declares or calls: check how it is spelled." in text


def test_the_page_says_the_same() -> None:
    page = _page(RUN)
    assert r"By the settings only you and the user write what these tools return: contacts, pay\x1broll." in page
    assert "[tools] names get_blance, which no session here declares or calls: check how it is spelled." in page


def test_without_a_word_of_the_operator_nothing_is_said(saw: Saw, told: Told) -> None:
    run = Run(version="1.0")
    for said in (told(saw((), outcome=Outcome.CLEAN), run=run), _page(run)):
        assert "By the settings" not in said
        assert "[tools]" not in said


def test_of_very_many_names_the_first_are_told_and_the_others_counted(saw: Saw, told: Told) -> None:
    names = tuple([f"tool_{n:04}" for n in range(PARTS + 7)])
    text = " ".join(told(saw((), outcome=Outcome.CLEAN), run=Run(version="1", trusted=names, unmet=names)).split())
    assert text.count("tool_0049 and 7 more") == 2
    assert "tool_0050" not in text


def test_a_document_keeps_both_and_one_of_before_has_neither(saw: Saw) -> None:
    made = document([saw((), outcome=Outcome.CLEAN)], RUN)
    written = json.loads(msgspec.json.encode(made))
    assert written["summary"]["trusted"] == ["contacts", "pay\x1broll"]
    assert written["summary"]["unmet"] == ["get_blance"]
    del written["summary"]["trusted"], written["summary"]["unmet"]
    before = msgspec.convert(written, Document, strict=False)
    assert (before.summary.trusted, before.summary.unmet) == ((), ())


def _joined(*held: Summary, saw: Saw) -> Summary:
    summaries = Summaries("1.0")
    for one in held:
        summaries.add(session_report(saw((), outcome=Outcome.CLEAN)))
        summaries.close(one)
    return summaries.summary()


@pytest.mark.parametrize(
    ("first", "second", "trusted", "unmet"),
    [
        (RUN, RUN, RUN.trusted, RUN.unmet),
        (RUN, Run(version="1.0", trusted=("notes",)), ("contacts", "notes", "pay\x1broll"), ()),
        (RUN, Run(version="1.0", unmet=("get_blance", "x")), ("contacts", "pay\x1broll"), ("get_blance",)),
    ],
)
def test_of_several_documents_what_one_trusts_is_told_and_what_none_met(
    saw: Saw, first: Run, second: Run, trusted: tuple[str, ...], unmet: tuple[str, ...]
) -> None:
    joined = _joined(summary(Totals(), first), summary(Totals(), second), saw=saw)
    assert (joined.trusted, joined.unmet) == (trusted, unmet)
