"""A call of the wrong shape is told with what is wrong, where, and which types: in text, with each call, in HTML."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from theodolite.contracts import read
from theodolite.core.contract import Kind
from theodolite.core.event import (
    GoalStated,
    SessionEnded,
    Source,
    ToolCallProposed,
    ToolResultObserved,
)
from theodolite.core.reading import Evidence, Reading, Signal
from theodolite.detectors.fusion import HijackFusion
from theodolite.detectors.payload.detector import PayloadDetector
from theodolite.detectors.trajectory.hijack import HijackDetector
from theodolite.redactors.rules import RuleRedactor
from theodolite.reports.calls import shown_as_argument
from theodolite.reports.entries import document
from theodolite.reports.html.page import HTMLWriter
from theodolite.reports.junit import JUnitWriter
from theodolite.reports.layout import plain
from theodolite.reports.limits import ANSWERS, PIECES
from theodolite.reports.shapes import misfit, words
from theodolite.reports.text import TextReport
from theodolite.reports.totals import Report, Run, Totals
from theodolite.reports.writer import WriterReport
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.replay import Sighting, replay
from theodolite.testing.sessions import hijacked_session

SCHEMA = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "quantity": {"type": "integer"}},
    "required": ["item"],
    "additionalProperties": False,
}
TOOL = {"name": "createOrder", "inputSchema": SCHEMA, "outputSchema": SCHEMA}
RUN = Run(version="1.0")
MISLEADING = ("passage", "goal explains", "the request does not either", "from the user")


def _seen(arguments: dict[str, object], *, result: str = "ok") -> Sighting:
    payload = PayloadDetector(contracts=read([TOOL]))
    monitor = Monitor([HijackDetector(), payload], fusions=[HijackFusion()], redactor=RuleRedactor())
    events = (
        GoalStated(text="Order 2 tea please, and 5 of x", source=Source.USER),
        ToolCallProposed(tool="createOrder", arguments=arguments),
        ToolResultObserved(tool="createOrder", text=result, source=Source.TOOL),
        SessionEnded(),
    )
    (seen,) = replay([replace(event, session="s-1") for event in events], monitor)
    assert isinstance(seen, Sighting)
    return seen


def _written(report: Report, item: Sighting) -> None:
    totals = Totals()
    totals.add(item)
    report.add(item)
    report.end(totals, RUN)


def _text(item: Sighting, *, calls: bool = False) -> str:
    lines: list[str] = []
    _written(TextReport(lambda blocks: lines.extend(plain(blocks)), calls=calls), item)
    return " ".join("".join(lines).split())


def _page(item: Sighting) -> str:
    stream = BytesIO()
    _written(WriterReport(HTMLWriter(stream)), item)
    shown = re.sub(r"<style.*?</style>|<[^>]+>", " ", stream.getvalue().decode(), flags=re.DOTALL)
    return " ".join(shown.replace("&quot;", '"').split())


@pytest.mark.parametrize(
    ("arguments", "kind", "place", "expected", "observed"),
    [
        ({"item": "tea", "quantity": "2"}, Kind.DOUBLE_ENCODED, "/quantity", "integer", "string"),
        ({"item": "tea", "quantity": "two"}, Kind.TYPE_MISMATCH, "/quantity", "integer", "string"),
        ({"item": 5}, Kind.TYPE_MISMATCH, "/item", "string", "integer"),
        ({"item": "tea", "x": 5}, Kind.UNKNOWN_FIELD, "/x", "absent", "integer"),
        ({"quantity": 2}, Kind.MISSING_REQUIRED, "/item", "present", "absent"),
        ({"item": None}, Kind.NULL_NOT_ALLOWED, "/item", "string", "null"),
    ],
)
class TestOneCall:
    def test_text_says_what_is_wrong_and_nothing_of_passages_and_goals(
        self, arguments: dict[str, object], kind: Kind, place: str, expected: str, observed: str
    ) -> None:
        text = _text(_seen(arguments))
        said = f'evidence: {words(kind)}: at {place}, expected "{expected}", observed "{observed}"'
        assert f"{said} (payload.{kind}, event 1)" in text
        finding = text.partition("1. payload.shape")[2].partition("Summary")[0]
        assert not [word for word in MISLEADING if word in finding]
        assert "goal:" not in finding

    def test_each_call_says_it_too_instead_of_why_its_score_is_low(
        self, arguments: dict[str, object], kind: Kind, place: str, expected: str, observed: str
    ) -> None:
        each = _text(_seen(arguments), calls=True).partition("Calls of session")[2]
        said = f'shape: {words(kind)}: at {place}, expected "{expected}", observed "{observed}"'
        assert f"{said} (payload.{kind}" in each
        assert "why:" not in each
        assert "goal explains" not in each

    def test_a_page_says_it_in_the_finding_and_with_the_call(
        self, arguments: dict[str, object], kind: Kind, place: str, expected: str, observed: str
    ) -> None:
        page = _page(_seen(arguments))
        finding, _, calls = page.partition("Every call")
        assert f"{words(kind)} ( payload.{kind} ) at {place} , event 1 {expected} {observed}" in finding
        assert f'{words(kind)}: at {place}, expected "{expected}", observed "{observed}" (payload.{kind})' in calls
        assert "No passage" not in page
        assert "goal explains" not in page
        assert "came from" not in finding.partition("Findings")[2]

    def test_the_sentences_for_tools_say_it(
        self, arguments: dict[str, object], kind: Kind, place: str, expected: str, observed: str
    ) -> None:
        stream = BytesIO()
        _written(WriterReport(JUnitWriter(stream)), _seen(arguments))
        told = stream.getvalue().decode().replace("&quot;", '"')
        assert f'{words(kind)}: at {place}, expected "{expected}", observed "{observed}" (payload.{kind}' in told


def _piece(kind: str, **fields: str) -> Evidence:
    return Evidence(kind=kind, seqs=(5,), **fields)


def test_each_kind_has_words_of_its_own() -> None:
    said = [words(kind) for kind in Kind]
    assert all(said)
    assert len(set(said)) == len(said)


@given(st.sampled_from(Kind), st.text(max_size=400), st.text(max_size=400), st.text(max_size=400))
def test_a_misfit_is_one_line_of_bounded_length_without_control_characters(
    kind: Kind, path: str, expected: str, observed: str
) -> None:
    said = misfit(_piece(f"payload.{kind}", path=path, expected=expected, observed=observed))
    assert said.startswith(words(kind))
    assert said.isprintable()
    assert len(said) < 4_000


def test_arguments_as_a_whole_have_a_place_and_a_tool_that_does_not_exist_has_none() -> None:
    said = misfit(_piece("payload.not_json", expected="a JSON object", observed="text that is no JSON"))
    assert f'{words(Kind.NOT_JSON)}: at the top, expected "a JSON object", observed "text that is no JSON" (' in said
    said = misfit(_piece("payload.unknown_operation", expected="a declared tool", observed="another name"))
    assert f'{words(Kind.UNKNOWN_OPERATION)}: expected "a declared tool", observed "another name" (' in said
    assert misfit(_piece("payload.too_deep")) == f"{words(Kind.TOO_DEEP)}: at the top (payload.too_deep)"


def test_a_kind_that_nobody_knows_has_no_words() -> None:
    assert words("schema") == ""


@pytest.mark.parametrize("kind", Kind)
def test_evidence_of_shape_is_told_also_where_the_argument_is(
    kind: Kind, alarm: Callable[..., Signal], saw: Callable[..., Sighting]
) -> None:
    signal = alarm("payload.shape")
    assert isinstance(signal.said, Reading)
    evidence = (_piece(f"payload.{kind}", path="/item", expected="one thing", observed="another"),)
    seen = saw((replace(signal, said=replace(signal.said, evidence=evidence)),))
    told = f'{words(kind)}: at /item, expected "one thing", observed "another" (payload.{kind}'
    assert told in _text(seen)
    assert told in _text(seen, calls=True).partition("Calls of session")[2]
    assert f"{words(kind)} ( payload.{kind} ) at /item , event 5 one thing another" in _page(seen)


@pytest.mark.parametrize(
    ("kind", "covered"), [("hijack.target", True), ("payload.type_mismatch", False), ("x.y", False)]
)
def test_only_evidence_of_where_a_value_came_from_is_told_with_its_argument(kind: str, *, covered: bool) -> None:
    assert shown_as_argument(_piece(kind, path="/to"), {5: frozenset({"/to"})}) is covered


def test_what_a_contract_allows_and_does_not_declare_is_told_with_each_call() -> None:
    loose = {**TOOL, "inputSchema": {"type": "object", "properties": {"item": {"type": "string"}}}}
    monitor = Monitor([PayloadDetector(contracts=read([loose]))], redactor=RuleRedactor())
    events = (ToolCallProposed(tool="createOrder", arguments={"x": 5}), SessionEnded())
    (seen,) = replay([replace(event, session="s-1") for event in events], monitor)
    assert isinstance(seen, Sighting)
    assert words(Kind.UNDECLARED_FIELD) not in _text(seen)
    assert f"shape: {words(Kind.UNDECLARED_FIELD)}: at /x" in _text(seen, calls=True)


def test_a_result_of_another_shape_is_told_between_the_calls() -> None:
    each = _text(_seen({"item": "tea"}, result='{"item": 7}'), calls=True).partition("Calls of session")[2]
    assert f'result: event 2: {words(Kind.TYPE_MISMATCH)}: at /item, expected "string", observed "integer"' in each


def test_a_page_tells_a_result_of_another_shape_too() -> None:
    page = _page(_seen({"item": 5}, result='{"item": 7}'))
    assert f'event 2: {words(Kind.TYPE_MISMATCH)}: at /item, expected "string", observed "integer" (' in page
    assert "Results" not in _page(_seen({"item": 5}, result='{"item": "tea"}'))


def test_of_very_many_results_a_page_tells_the_first() -> None:
    items = tuple([_piece("payload.type_mismatch", path=f"/{n}") for n in range(20)])
    (session,) = document([_seen({"item": 5})], RUN).sessions
    (model,) = [signal for signal in session.signals if signal.code == "payload.shape"]
    wrong = [replace(model, code="payload.result", seq=n, about=n, evidence=items) for n in range(100, 130)]
    stream = BytesIO()
    writer = HTMLWriter(stream)
    writer.add(replace(session, signals=(*session.signals, *wrong)))
    writer.end(document([], RUN).summary)
    page = stream.getvalue().decode()
    assert page.count("(payload.type_mismatch)") == ANSWERS * PIECES + 1
    assert "... and 12 more places that do not fit: --format json has all" in page
    assert "... and 20 more results: --format json has all" in page


def test_a_call_of_both_faults_keeps_its_passage_and_its_reasons() -> None:
    calls = [event for event in hijacked_session() if isinstance(event, ToolCallProposed)]
    tools = [{"name": call.tool, "inputSchema": {"type": "object", "required": ["no_such"]}} for call in calls]
    unique = list({tool["name"]: tool for tool in tools}.values())
    payload = PayloadDetector(contracts=read(unique))
    monitor = Monitor([HijackDetector(), payload], fusions=[HijackFusion()], redactor=RuleRedactor())
    (seen,) = replay([replace(event, session="s-1") for event in hijacked_session()], monitor)
    assert isinstance(seen, Sighting)
    text, page = _text(seen, calls=True), _page(seen)
    each = text.partition("Calls of session")[2]
    assert "fusion.call" in text
    assert "passage: event" in text
    assert "why:" in text.partition("fusion.call")[2]
    assert "why:" in each
    assert f"shape: {words(Kind.MISSING_REQUIRED)}" in each
    assert " says " in page
    assert words(Kind.MISSING_REQUIRED) in page


def test_the_document_is_as_it_was() -> None:
    (session,) = document([_seen({"item": 5})], RUN).sessions
    (signal,) = [signal for signal in session.signals if signal.code == "payload.shape"]
    assert [(one.kind, one.path) for one in signal.evidence] == [("payload.type_mismatch", "/item")]
