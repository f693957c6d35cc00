"""SARIF: valid by the schema of OASIS, within what GitHub takes, and saying what was found."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from io import BytesIO
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from theodolite.core.policy import Outcome
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Level, Signal, Status
from theodolite.reports import sarif
from theodolite.reports.entries import session_report
from theodolite.reports.limits import LARGEST
from theodolite.reports.sarif import SarifWriter
from theodolite.reports.totals import Origin, Run, Totals
from theodolite.reports.triage import Mark, Standing
from theodolite.reports.writer import WriterReport
from theodolite.runtime.replay import Sighting
from theodolite.testing.sessions import hijacked_session

Alarm = Callable[..., Signal]
Saw = Callable[..., Sighting]
Replayed = Callable[..., Sighting]
PART = Unreadable(file="a.jsonl", line=3, reason="no JSON")
SCHEMA = json.loads(Path(__file__).with_name("sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
JSONSCHEMA = import_module("jsonschema")  # it has no types
VALID = JSONSCHEMA.Draft7Validator(SCHEMA, format_checker=JSONSCHEMA.FormatChecker())


class Text(Struct, frozen=True):
    text: str
    markdown: str = ""


class Located(Struct, frozen=True):
    uri: str


class Region(Struct, frozen=True, rename="camel"):
    start_line: int


class Physical(Struct, frozen=True, rename="camel"):
    artifact_location: Located
    region: Region


class Logical(Struct, frozen=True, rename="camel"):
    name: str
    fully_qualified_name: str
    kind: str


class Location(Struct, frozen=True, rename="camel"):
    physical_location: Physical | None = None
    logical_locations: list[Logical] = []


class Suppressed(Struct, frozen=True):
    kind: str
    status: str
    justification: str


class Result(Struct, frozen=True, rename="camel"):
    rule_id: str
    level: str
    message: Text
    locations: list[Location]
    partial_fingerprints: dict[str, str]
    properties: dict[str, object]
    suppressions: list[Suppressed] = []
    rule_index: int = -1
    baseline_state: str = ""


class Rule(Struct, frozen=True, rename="camel"):
    id: str
    short_description: Text
    help: Text | None = None
    properties: dict[str, list[str]] = {}


class Driver(Struct, frozen=True):
    name: str
    version: str
    rules: list[Rule]
    notifications: list[Rule]


class Tool(Struct, frozen=True):
    driver: Driver


class Descriptor(Struct, frozen=True):
    id: str


class Notification(Struct, frozen=True):
    descriptor: Descriptor
    message: Text
    locations: list[Location] = []


class Invocation(Struct, frozen=True, rename="camel"):
    execution_successful: bool
    tool_execution_notifications: list[Notification]


class SarifRun(Struct, frozen=True):
    results: list[Result]
    tool: Tool
    invocations: list[Invocation]
    properties: dict[str, object]


class Log(Struct, frozen=True):
    runs: list[SarifRun]


def _written(*items: Sighting | Unreadable) -> bytes:
    stream, totals = BytesIO(), Totals()
    report = WriterReport(SarifWriter(stream))
    for item in items:
        totals.add(item)
        report.add(item)
    report.end(totals, Run(version="1.0"))
    return stream.getvalue()


def _log(
    *items: Sighting | Unreadable,
    origin: Origin | None = None,
    run: Run | None = None,
    pages: Mapping[str, str] | None = None,
) -> SarifRun:
    stream, totals = BytesIO(), Totals()
    report = WriterReport(SarifWriter(stream, pages=pages or {}))
    for item in items:
        totals.add(item, origin or Origin(file="logs/a b.json", reader="openai-chat"))
        report.add(item, origin or Origin(file="logs/a b.json", reader="openai-chat"))
    report.end(totals, run or Run(version="1.0"))
    VALID.validate(json.loads(stream.getvalue()))
    (only,) = msgspec.json.decode(stream.getvalue(), type=Log).runs
    _check(only)
    return only


def _check(run: SarifRun) -> None:
    """Hold what GitHub asks for, beside the schema, against a run."""
    driver = run.tool.driver
    assert len(driver.rules) == len({rule.id for rule in driver.rules})
    for result in run.results:
        assert result.rule_index < 0 or driver.rules[result.rule_index].id == result.rule_id
        assert result.message.text
        (location,) = result.locations
        assert location.physical_location is None or location.physical_location.region.start_line >= 1
    for rule in driver.rules:
        assert len(rule.properties["tags"]) <= 10
    names = {described.id for described in driver.notifications}
    assert {note.descriptor.id for note in run.invocations[0].tool_execution_notifications} <= names


def test_a_finding_is_a_result_at_its_recording(replayed: Replayed) -> None:
    run = _log(replayed(hijacked_session(), "s-1"))
    (result,) = run.results
    assert (result.rule_id, result.level) == ("margin.untrusted", "warning")
    assert result.message.text.splitlines()[0] == (
        "margin.untrusted: A tool call is explained by untrusted text better than by what the user asked for."
    )
    assert "calls: send_money (event 7), forward_mail (event 9)" in result.message.text
    (location,) = result.locations
    assert location.physical_location == Physical(Located("logs/a%20b.json"), Region(1))
    assert [(one.name, one.kind) for one in location.logical_locations] == [
        ("s-1", "session"),
        ("event 7", "event"),
        ("event 9", "event"),
    ]
    assert result.properties == {
        "session": "s-1",
        "agent": "a-1",
        "events": [7, 9],
        "score": pytest.approx(0.9, abs=0.05),
        "status": "REFERENCE",
        "detector": "margin 1",
    }


def test_a_finding_has_the_fingerprint_by_which_it_is_known_again(replayed: Replayed) -> None:
    session = replayed(hijacked_session(), "s-1")
    (finding,) = session_report(session).findings
    (result,) = _log(session).results
    assert result.partial_fingerprints == {
        "theodoliteFinding/v1": finding.fingerprint,
        "primaryLocationLineHash": f"{finding.fingerprint.removeprefix('v1:')}:1",
    }


def test_a_code_is_a_rule_with_its_page_and_its_references(saw: Saw, alarm: Alarm) -> None:
    run = _log(
        saw((alarm(source=3), alarm("other.code"))), saw((alarm(),)), pages={"other.code": "# o\n\nA call [x](y).\n"}
    )
    ours, other = run.tool.driver.rules
    assert ours.id == "margin.untrusted"
    assert ours.help
    assert "## What to do" in ours.help.markdown
    assert ours.properties["tags"][0] == "security"
    assert any(tag.startswith("external/owasp") for tag in ours.properties["tags"])
    assert other.short_description.text == r"A call [x]\x28y)."


@pytest.mark.parametrize(
    ("status", "level", "said"),
    [
        (Status.EXACT, Level.NOTABLE, "error"),
        (Status.CALIBRATED, Level.STRONG, "error"),
        (Status.CALIBRATED, Level.NOTABLE, "warning"),
        (Status.REFERENCE, Level.STRONG, "warning"),
        (Status.UNCALIBRATED, Level.STRONG, "note"),
        (Status.STALE, Level.STRONG, "note"),
    ],
)
def test_the_level_is_what_the_threshold_rests_on(
    status: Status, level: Level, said: str, saw: Saw, alarm: Alarm
) -> None:
    (result,) = _log(saw((alarm(status=status, level=level),))).results
    assert result.level == said


def test_known_and_suppressed_findings_are_there_and_marked(replayed: Replayed) -> None:
    from datetime import date

    session = replayed(hijacked_session(), "s-1")
    (finding,) = session_report(session).findings
    known = Mark(standing=Standing.KNOWN)
    hidden = Mark(standing=Standing.SUPPRESSED, reason="a {test}", expires=date(2027, 1, 31))
    results = [
        _log(session, origin=Origin(marks={finding.fingerprint: mark})).results[0] for mark in (known, hidden, Mark())
    ]
    assert [result.baseline_state for result in results] == ["unchanged", "", ""]
    assert [result.suppressions for result in results] == [
        [],
        [Suppressed("external", "accepted", "a {{test}} (until 2027-01-31)")],
        [],
    ]


def _blind(session: Sighting) -> Sighting:
    sights = tuple([replace(sight, blind=True) for sight in session.coverage.detectors])
    return replace(session, coverage=replace(session.coverage, detectors=sights))


def test_what_could_not_be_judged_is_notified(saw: Saw, failure: Alarm) -> None:
    run = _log(
        saw((failure("error", "it {broke}"),), session="f", outcome=Outcome.FAILED),
        replace(saw((), session="u", outcome=Outcome.FAILED), unreadable=(PART,)),
        _blind(saw((), session="b", outcome=Outcome.NOT_ENOUGH_EVIDENCE)),
        PART,
        run=Run(version="1.0", complete=False),
    )
    (invocation,) = run.invocations
    assert not invocation.execution_successful
    told = [(note.descriptor.id, note.message.text) for note in invocation.tool_execution_notifications]
    assert told == [
        ("failed", "session f: margin.failure: error: it {{broke}}"),
        ("failed", "session u: a.jsonl:3: no JSON"),
        ("not_enough_evidence", "session b: margin could not judge"),
        ("unreadable", "a.jsonl:3: no JSON"),
    ]
    assert run.results == []


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("a.json", "a.json"),
        ("/logs/ä#?.json", "file:///logs/%C3%A4%23%3F.json"),
        ("javascript:alert(1)", "javascript%3Aalert%281%29"),
        ("//evil.example/x", "file:////evil.example/x"),
        ("a\nb\x00", "a%0Ab%00"),
        (r"a\ud800", "a%5Cud800"),
    ],
)
def test_a_file_is_named_as_a_uri_whatever_its_name(file: str, uri: str, saw: Saw, alarm: Alarm) -> None:
    (result,) = _log(saw((alarm(),)), origin=Origin(file=file)).results
    (location,) = result.locations
    assert location.physical_location
    assert location.physical_location.artifact_location.uri == uri


def test_a_session_of_no_file_has_no_physical_place(saw: Saw, alarm: Alarm) -> None:
    (result,) = _log(saw((alarm(),)), origin=Origin(reader="x")).results
    assert result.locations[0].physical_location is None


def test_a_message_has_no_placeholder_and_no_link(saw: Saw, alarm: Alarm) -> None:
    session = saw((alarm(),), tool="{0} [click](https://evil.example)")
    (result,) = _log(session).results
    assert r"{{0}} [click]\x28https://evil.example) (event 5)" in result.message.text


def test_a_log_says_what_it_leaves_out(saw: Saw, alarm: Alarm, monkeypatch: pytest.MonkeyPatch) -> None:
    one = saw((alarm(source=3),))
    size = len(_written(one, one)) - len(_written(one))
    monkeypatch.setattr(sarif, "LARGEST", sarif.RULES + sarif.FRAME + 4 * size - 100)
    monkeypatch.setattr(sarif, "NOTIFICATIONS", 2)
    run = _log(*([PART] * 6), *([one] * 5), origin=Origin())
    assert len(run.results) == 3
    told = [note.message.text for note in run.invocations[0].tool_execution_notifications]
    assert told[2:] == [
        "... and 2 more findings: --format json has all",
        "... and 4 more notifications: --format json has all",
    ]


def test_of_very_many_codes_some_have_no_page_and_some_no_rule(
    saw: Saw, alarm: Alarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sarif, "RULES", 4_700)
    codes = [f"d.c{n}" for n in range(5)]
    pages = dict.fromkeys(codes, f"# A code\n\nWhat it means.\n\n{'long ' * 400}")
    run = _log(saw(tuple([alarm(code, source=3) for code in codes])), pages=pages)
    assert [result.rule_id for result in run.results] == codes
    rules = run.tool.driver.rules
    assert 0 < len(rules) < 5
    assert [rule.id for rule in rules] == codes[: len(rules)]
    assert rules[0].help is not None
    assert rules[-1].help is None


def test_a_finding_with_very_many_calls_has_as_many_places_as_are_shown(saw: Saw, alarm: Alarm) -> None:
    (result,) = _log(saw(*([(alarm(source=2),)] * 3_000))).results
    assert len(result.locations[0].logical_locations) == 100


def test_the_limits_are_those_that_github_states(saw: Saw, alarm: Alarm) -> None:
    """docs.github.com: 25,000 results and 20 runs a file, 10 tags of a rule shown, 10 MB compressed."""
    assert (sarif.TAGS, sarif.LOCATIONS) == (10, 100)
    assert LARGEST < 10_000_000
    one = _written(saw((alarm("d.c"),), session="", agent="", tool=""))
    two = _written(*[saw((alarm("d.c"),), session="", agent="", tool="")] * 2)
    assert LARGEST / (len(two) - len(one)) < 25_000  # what a result takes at least


def test_a_scan_of_nothing_is_a_log_too() -> None:
    run = _log()
    assert (run.results, run.tool.driver.rules, run.invocations[0].tool_execution_notifications) == ([], [], [])
