"""A report for people, or for a view of machines, has less than five megabytes, and says what it leaves out."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from theodolite.core import intent
from theodolite.core.coverage import Coverage, Sight
from theodolite.core.event import Source
from theodolite.core.policy import Action, Decision, Outcome
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Cause, Evidence, Failure, Level, Reading, Signal, Status
from theodolite.reports.findings import findings
from theodolite.reports.html.page import HTMLWriter
from theodolite.reports.junit import JUnitWriter
from theodolite.reports.layout import plain
from theodolite.reports.limits import LARGEST
from theodolite.reports.room import Room
from theodolite.reports.sarif import SarifWriter
from theodolite.reports.text import TextReport
from theodolite.reports.totals import NOWHERE, Origin, Report, Run, Totals
from theodolite.reports.triage import Mark, Standing
from theodolite.reports.writer import WriterReport
from theodolite.runtime.replay import CallRow, Goal, Sighting, Step

Form = Callable[[BytesIO], Report]


def _text(stream: BytesIO, *, calls: bool = False) -> Report:
    """The text as a terminal of ASCII gets it, which is the longest: up to ten bytes for a character."""
    return TextReport(
        lambda blocks: stream.writelines(line.encode("ascii", "backslashreplace") for line in plain(blocks)),
        calls=calls,
    )


def _png(stream: BytesIO) -> Report:
    pytest.importorskip("resvg_py", reason="the extra png is not installed")
    from theodolite.reports.png import PNGWriter

    return WriterReport(PNGWriter(stream))


FORMS: dict[str, Form] = {
    "html": lambda stream: WriterReport(HTMLWriter(stream)),
    "junit": lambda stream: WriterReport(JUnitWriter(stream)),
    "sarif": lambda stream: WriterReport(SarifWriter(stream)),
    "text": _text,
    "calls": lambda stream: _text(stream, calls=True),
    "png": _png,
}
EACH_FORM = pytest.mark.parametrize("form", FORMS)


def _written(form: str, items: Iterable[Sighting | Unreadable], origin: Origin = NOWHERE) -> bytes:
    stream, totals = BytesIO(), Totals()
    report = FORMS[form](stream)
    for item in items:
        totals.add(item, origin)
        report.add(item, origin)
    report.end(totals, Run(version="1.0", calibration=origin.file, store=origin.file))
    return stream.getvalue()


def _signals(seq: int, text: str) -> tuple[Signal, ...]:
    said = text[:400]  # a redacted quotation is no longer
    kinds = ("margin.passage", "margin.argument", "margin.other")
    evidence = [
        Evidence(kind=kind, seqs=(seq, 20_000 + seq + n), path=said, expected=said, observed=said)
        for n in range(12)
        for kind in kinds
    ]
    reading = Reading(
        detector="margin",
        version="1",
        code="margin.untrusted",
        score=0.9,
        evidence=tuple(evidence if seq < 100 else evidence[:1]),
        models=(text,),
    )
    failed = Failure(detector=f"d{seq % 20}", version="1", cause=Cause.ERROR, detail=f"{said}{seq}")
    alarm = Signal(said=reading, level=Level.STRONG, status=Status.REFERENCE, finds=True, calibration=text)
    return alarm, Signal(said=failed)


def _session(text: str, turns: int, outcome: Outcome = Outcome.FINDING, name: str = "") -> Sighting:
    """A session of so many turns, each with a call that alarmed and failed, in which every text is the same."""
    loud = outcome in {Outcome.FINDING, Outcome.FAILED}
    made = [
        Decision(
            session=name or text,
            seq=seq,
            about=seq,
            signals=_signals(seq, text)[outcome is Outcome.FAILED :] if loud else (),
            allowed=False,
        )
        for seq in range(turns)
    ]
    sight = Sight(detector="margin", version="1", decides=True, blind=not loud, spoke=turns, failed=0)
    found = intent.ArgumentOrigin(
        path=text[:400], origin=intent.Origin.TOOL_RESULT, role=intent.Role.CREDENTIAL, seq=0, within=True
    )
    origins = (found,) * (12 if loud else 1)
    return Sighting(
        session=name or text,
        agent=text,
        outcome=outcome,
        action=Action.RESTRICTED_MODE,
        coverage=Coverage(events={"ToolCallProposed": turns}, channels={"unknown": turns}, detectors=(sight,)),
        goals=(Goal(seq=0, text=text[:400]),) * turns,
        calls=tuple([CallRow(tool=text, decision=decision, origins=origins) for decision in made]),
        decisions=tuple(made),
        steps=tuple(
            [Step(seq=seq, turn=seq, event="ToolCallProposed", source=Source.MODEL, tool=text) for seq in range(turns)]
        ),
        unreadable=(Unreadable(file=text, line=1, reason=text),) * (12 if loud and turns > 1 else loud),
    )


@EACH_FORM
@pytest.mark.parametrize(("piece", "times"), [("<", 10_000_000), ("\x00", 1_000_000)])
def test_ten_megabytes_in_every_name_of_a_session(form: str, piece: str, times: int) -> None:
    session = _session(piece * times, 1)
    origin = Origin(file=piece * 4_000, reader="x")
    assert len(_written(form, [session, *session.unreadable], origin)) < LARGEST


@EACH_FORM
@pytest.mark.slow
def test_a_session_of_ten_thousand_turns(form: str) -> None:
    assert len(_written(form, [_session('"' * 500, 10_000)])) < LARGEST


def _many(text: str, turns: int, count: int) -> Iterator[Sighting]:
    """Yield so many sessions of all outcomes, one after the other, each of its own name."""
    kinds = [_session(text, turns, outcome, name="x") for outcome in Outcome]
    yield from (replace(kinds[n % len(kinds)], session=f"s-{n}") for n in range(count))


@EACH_FORM
@pytest.mark.slow
def test_a_hundred_thousand_sessions(form: str) -> None:
    assert len(_written(form, _many("x", 1, 100_000))) < LARGEST


@EACH_FORM
@pytest.mark.slow
@pytest.mark.parametrize("text", ["&" * 500, "\U0001f600" * 500])
def test_huge_sessions_of_which_not_all_fit(form: str, text: str) -> None:
    written = _written(form, _many(text, 25, 100))
    assert len(written) < LARGEST
    more = {
        "html": b"more sessions",
        "sarif": b"more findings",
        "text": b"more sessions",
        "calls": b"more sessions",
        "junit": b"unexplained",
    }
    assert more.get(form, b"") in written


@pytest.mark.parametrize("form", ["html", "junit", "sarif", "text", "calls"])
@pytest.mark.slow
def test_memory_does_not_grow_with_sessions_that_do_not_fit(form: str) -> None:
    report, totals, held = FORMS[form](BytesIO()), Totals(), list[int]()
    tracemalloc.start()
    try:
        for n, session in enumerate(_many("&" * 400, 1, 8_000)):
            totals.add(session)
            report.add(session)
            if n in {5_000, 7_999}:
                held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    before, after = held
    assert before < 30_000_000
    assert after - before < 500_000


def test_of_sessions_that_do_not_fit_findings_come_first_and_the_others_are_counted() -> None:
    """Clean sessions come before the findings, and fill the file: they give way to them."""
    clean = _session("&" * 500, 1, Outcome.CLEAN)
    found = _session("&" * 500, 1)
    items = [replace(kind, session=f"{kind.outcome}-{n}") for kind in (clean, found) for n in range(4_000)]
    written = _written("junit", items)
    assert len(written) < LARGEST
    (suite,) = ET.fromstring(written)  # noqa: S314 - written here
    cases = suite.findall("testcase")
    left_out = [case for case in cases if case.get("classname") == "theodolite.left_out"]
    failures = [case for case in cases if case.find("failure") is not None]
    counts = {
        tag: int("".join(re.findall(r"and ([\d,]+) more", case.get("name") or "")).replace(",", ""))
        for case in left_out
        for tag in ([child.tag for child in case] or [""])
    }
    assert failures[0].get("name") == "finding-0"
    assert len(failures) - ("failure" in counts) + counts.get("failure", 0) == 4_000
    assert len(cases) - len(left_out) + sum(counts.values()) == 8_000
    assert counts[""] > 0
    assert suite.get("tests") == str(len(cases))
    assert suite.get("failures") == str(len(failures))


def test_of_findings_that_do_not_fit_the_new_ones_come_first_and_all_come_before_what_went_wrong() -> None:
    session = _session('"' * 500, 300)
    known = Origin(marks={found.fingerprint: Mark(standing=Standing.KNOWN) for found in findings(session)})
    stream = BytesIO()
    report, totals = FORMS["sarif"](stream), Totals()
    for origin in (known, known, known, NOWHERE, NOWHERE, NOWHERE):
        report.add(_session('"' * 500, 40, Outcome.FAILED), NOWHERE)
        report.add(session, origin)
    report.end(totals, Run(version="1.0"))
    assert len(stream.getvalue()) < LARGEST
    (run,) = json.loads(stream.getvalue())["runs"]
    new = [result for result in run["results"] if "baselineState" not in result]
    told = [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    said = re.findall(r"and ([\d,]+) more ([a-z ]+):", " ".join(told))
    counts = {kind: int(count.replace(",", "")) for count, kind in said}
    assert "findings" not in counts or len(new) == len(run["results"])
    assert len(new) + counts.get("findings", 0) == 900
    assert len(run["results"]) - len(new) + counts["findings that are not new"] == 900
    assert counts["notifications"] > 0


@given(st.lists(st.tuples(st.binary(max_size=9), st.integers(0, 3))), st.integers(0, 40))
def test_a_room_holds_what_fits_by_rank_and_in_order(given: list[tuple[bytes, int]], size: int) -> None:
    room = Room(size)
    for piece, rank in given:
        room.add(piece, rank)
    pieces = list(room.pieces(0, 1, 2, 3))
    assert sum(map(len, pieces)) <= size
    rest = iter(given)
    assert all(piece in (one for one, _ in rest) for piece in pieces), "they stand in the order in which they came"
    for rank in range(4):
        assert room.held(rank) + room.left_out[rank] == sum(other == rank for _, other in given)


@given(st.lists(st.tuples(st.integers(0, 2), st.binary(min_size=1, max_size=9))), st.integers(0, 40))
def test_what_comes_of_higher_ranks_takes_no_room_from_the_first(given: list[tuple[int, bytes]], size: int) -> None:
    whole, alone = Room(size), Room(size)
    for rank, piece in given:
        whole.add(piece, rank)
        if rank == 0:
            alone.add(piece)
    assert list(whole.pieces(0)) == list(alone.pieces(0))
