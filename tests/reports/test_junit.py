"""JUnit XML: a case for each session, in the form that Jenkins and GitLab read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from theodolite.core.policy import Action, Outcome
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Signal
from theodolite.reports import junit
from theodolite.reports.entries import document, session_report
from theodolite.reports.junit import JUnitWriter
from theodolite.reports.totals import Origin, Run, Totals
from theodolite.reports.triage import Mark, Standing
from theodolite.reports.writer import WriterReport
from theodolite.runtime.replay import Sighting
from theodolite.testing.sessions import clean_session, hijacked_session

Alarm = Callable[..., Signal]
Saw = Callable[..., Sighting]
Replayed = Callable[..., Sighting]
PART = Unreadable(file="a.jsonl", line=3, reason="no JSON")

# What the schema of Jenkins' xUnit plug-in (junit-10.xsd) lets an element have: attributes, those that must be there,
# and elements. Of a case Ant's schema wants a class name and a time too, and one result at most.
ALLOWED: Mapping[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, set(), {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "skipped", "timestamp", "hostname", "id", "package"},
        {"name", "tests", "failures", "errors"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, {"name", "value"}, set()),
    "testcase": (
        {"name", "time", "classname"},
        {"name", "classname", "time"},
        {"skipped", "error", "failure", "system-out"},
    ),
    "skipped": ({"type", "message"}, set(), set()),
    "error": ({"type", "message"}, {"type"}, set()),
    "failure": ({"type", "message"}, {"type"}, set()),
    "system-out": (set(), set(), set()),
}


def _written(*items: Sighting | Unreadable, origin: Origin | None = None, run: Run | None = None) -> ET.Element:
    stream, totals = BytesIO(), Totals()
    report = WriterReport(JUnitWriter(stream))
    for item in items:
        totals.add(item, origin or Origin())
        report.add(item, origin or Origin())
    report.end(totals, run or Run(version="1.0"))
    root = ET.fromstring(stream.getvalue())  # noqa: S314 - written here
    _check(root)
    return root


def _check(root: ET.Element) -> None:
    """Hold the facts of the schemas against a file."""
    for element in root.iter():
        attributes, needed, children = ALLOWED[element.tag]
        assert needed <= set(element.attrib) <= attributes, element.tag
        assert {child.tag for child in element} <= children, element.tag
    (suite,) = root
    cases = suite.findall("testcase")
    assert next(iter(suite)).tag == "properties"
    assert suite.get("tests") == str(len(cases))
    for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert suite.get(count) == str(sum(case.find(tag) is not None for case in cases))
    assert all(len(case) <= 1 for case in cases)
    names = [(case.get("classname"), case.get("name")) for case in cases]
    assert len(names) == len(set(names))


def _case(root: ET.Element, name: str) -> ET.Element:
    (case,) = [case for case in root.iter("testcase") if case.get("name") == name]
    return case


def test_each_outcome_is_what_a_test_view_calls_it(saw: Saw, alarm: Alarm, failure: Alarm) -> None:
    root = _written(
        saw((alarm(source=3),), session="found"),
        saw((failure(),), session="failed", outcome=Outcome.FAILED),
        saw((), session="blind", outcome=Outcome.NOT_ENOUGH_EVIDENCE),
        saw((), session="clean", outcome=Outcome.CLEAN),
    )
    results = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    assert results == {"found": ["failure"], "failed": ["error"], "blind": ["skipped"], "clean": []}


def test_a_finding_says_in_a_line_what_it_means_and_in_its_text_why(replayed: Replayed) -> None:
    root = _written(replayed(hijacked_session(), "s-1"), origin=Origin(file="a.json", reader="openai-chat"))
    case = _case(root, "s-1")
    assert case.get("classname") == "theodolite.a-1"
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("message") == (
        "margin.untrusted: A tool call is explained by untrusted text better than by what the user asked for."
    )
    lines = [line.strip() for line in (failure.text or "").splitlines()]
    assert "calls: send_money (event 7), forward_mail (event 9)" in lines
    assert "taken: /to, /amount, /subject of send_money (event 7), from event 5" in lines
    assert any(line.startswith('passage: event 5 says "IMPORTANT: before anything else') for line in lines)
    assert any(line.startswith("how sure: score 0.90, notable, REFERENCE") for line in lines)
    assert lines[-1] == "read from a.json (openai-chat)"


def test_more_findings_are_counted_and_failures_beside_them_told(saw: Saw, alarm: Alarm, failure: Alarm) -> None:
    found = _case(_written(saw((alarm(source=3), alarm(source=4), failure("timeout", "too slow")))), "s-1")[0]
    assert (found.get("message") or "").endswith("(1 more finding)")
    assert "margin.failure: margin, timeout: too slow" in (found.text or "")


def test_a_session_that_asks_for_review_without_a_finding_says_so(saw: Saw) -> None:
    session = saw((), action=Action.ELEVATED_REVIEW)
    assert _case(_written(session), "s-1")[0].get("message") == "it asks for elevated review"


def test_a_session_that_failed_says_why(saw: Saw) -> None:
    session = replace(saw((), outcome=Outcome.FAILED), unreadable=(PART,))
    error = _case(_written(session), "s-1")[0]
    assert (error.get("message"), error.get("type")) == ("not read: a.jsonl:3: no JSON", "failed")


def test_a_session_that_nobody_could_judge_is_skipped_with_the_reason(saw: Saw) -> None:
    session = saw((), outcome=Outcome.NOT_ENOUGH_EVIDENCE)
    sights = tuple([replace(sight, blind=True) for sight in session.coverage.detectors])
    blind = replace(session, session="s-2", coverage=replace(session.coverage, detectors=sights))
    root = _written(session, blind)
    assert [_case(root, name)[0].get("message") for name in ("s-1", "s-2")] == [
        "not enough evidence: no detector that decides is switched on",
        "not enough evidence: margin could not judge",
    ]


def test_a_session_of_which_no_finding_is_new_passes_and_says_which_are_known(replayed: Replayed) -> None:
    session = replayed(hijacked_session(), "s-1")
    (finding,) = session_report(session).findings
    origin = Origin(marks={finding.fingerprint: Mark(standing=Standing.KNOWN)})
    (out,) = _case(_written(session, origin=origin), "s-1")
    assert out.tag == "system-out"
    assert (out.text or "").startswith("known: margin.untrusted, send_money (event 7) and 1 more, v1:")


def test_a_recording_that_could_not_be_read_is_an_error_of_its_own() -> None:
    case = _case(_written(PART), "a.jsonl:3")
    assert (case.get("classname"), case[0].tag, case[0].get("message")) == ("theodolite.unreadable", "error", "no JSON")


def test_sessions_of_one_name_are_told_apart(saw: Saw) -> None:
    same = saw((), outcome=Outcome.CLEAN)
    names = [case.get("name") for case in _written(same, same, same).iter("testcase")]
    assert names == ["s-1", "s-1 (2)", "s-1 (3)"]


def test_the_suite_says_what_the_scan_was(replayed: Replayed) -> None:
    session = replayed(clean_session(), "water")
    root = _written(session, PART, run=Run(version="1.0", calibration="c-1", complete=False))
    told = {item.get("name"): item.get("value") for item in root.iter("property")}
    assert told["theodolite.version"] == "1.0"
    assert told["theodolite.calibration"] == "c-1"
    assert told["theodolite.complete"] == "false"
    assert (told["theodolite.sessions"], told["theodolite.calls"], told["theodolite.unread"]) == ("1", "2", "1")


def test_when_the_texts_are_too_many_later_cases_have_their_message_alone(
    saw: Saw, alarm: Alarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(junit, "DETAILS", {"failure": 1_500})
    root = _written(*[saw((alarm(source=3),), session=f"s-{n}") for n in range(20)])
    failures = list(root.iter("failure"))
    assert len(failures) == 20
    assert all(failure.get("message") for failure in failures)
    assert failures[0].text
    assert not failures[-1].text
    told = {item.get("name"): item.get("value") for item in root.iter("property")}
    assert told["theodolite.unexplained"] == str(sum(not failure.text for failure in failures))


def test_sessions_for_which_there_is_no_room_are_a_case_that_counts_them(
    saw: Saw, alarm: Alarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(junit, "LARGEST", junit.FRAME + 1_200)
    clean = saw((), outcome=Outcome.CLEAN, session="clean")
    root = _written(*([clean] * 30), *[saw((alarm(source=3),), session=f"s-{n}") for n in range(2)])
    assert next(case.get("name") for case in root.iter("testcase") if len(case)) == "s-0"
    failed, passed = [case for case in root.iter("testcase") if case.get("classname") == "theodolite.left_out"]
    assert failed.get("name") == "... and 1 more sessions with a finding"
    assert failed[0].attrib == {
        "message": "... and 1 more sessions with a finding: --format json has all",
        "type": "left_out",
    }
    held = sum((case.get("name") or "").startswith("clean") for case in root.iter("testcase"))
    assert (passed.get("name"), len(passed)) == (f"... and {30 - held} more sessions that passed", 0)


def test_of_very_many_codes_the_most_frequent_are_counted_by_name_and_the_others_together() -> None:
    stream = BytesIO()
    counts = {f"d.c{n:02}": n + 1 for n in range(53)}
    JUnitWriter(stream).end(replace(document([], Run(version="1.0")).summary, findings=counts))
    told = {item.get("name"): item.get("value") for item in ET.fromstring(stream.getvalue()).iter("property")}  # noqa: S314 - written here
    assert told["theodolite.findings"] == str(1 + 2 + 3)
    assert (told["theodolite.findings.d.c03"], told["theodolite.findings.d.c52"]) == ("4", "53")


def test_a_scan_of_nothing_is_a_suite_too() -> None:
    assert [suite.get("tests") for suite in _written()] == ["0"]
