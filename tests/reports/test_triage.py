"""What is new, what is known, what somebody answers for, and what is left to count."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

import msgspec
import pytest
from msgspec.structs import replace

from theodolite.core.policy import Action, Outcome
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Signal
from theodolite.reports.entries import session_report, summary
from theodolite.reports.findings import findings
from theodolite.reports.layout import plain
from theodolite.reports.text import TextReport
from theodolite.reports.totals import Origin, Run, Totals
from theodolite.reports.triage import Standing, Suppression, Triage, asked, left
from theodolite.runtime.replay import Sighting

Alarm = Callable[..., Signal]
Saw = Callable[..., Sighting]
TODAY = date(2026, 3, 1)
DAY = timedelta(days=1)
PART = Unreadable(file="a.jsonl", line=3, reason="no JSON")


def _suppressed(**fields: object) -> Suppression:
    known = {"reason": "Ann: these are invoice runs", "expires": TODAY, "entry": 1}
    return msgspec.convert({**known, **fields}, Suppression)


def _standings(triage: Triage, sighting: Sighting) -> list[str]:
    origin = Origin(marks=triage.marks(sighting))
    return [origin.mark(finding).standing.value for finding in findings(sighting)]


@pytest.fixture
def two(alarm: Alarm, saw: Saw) -> Sighting:
    """Return a session with two findings: calls of `send` that follow event 3, and one that follows event 4."""
    return saw((alarm(source=3),), (alarm("payload.shape", source=4),))


# -- standings --------------------------------------------------------------------------------------------------------


def test_without_files_all_is_new(two: Sighting) -> None:
    triage = Triage(today=TODAY)
    assert _standings(triage, two) == ["new", "new"]
    assert triage.result(complete=True).gone is None


def test_what_the_baseline_knows_is_known_and_what_is_gone_is_counted(two: Sighting) -> None:
    first, _ = findings(two)
    triage = Triage(today=TODAY, known=[first.fingerprint, "v1:0", "v1:1"], baseline="known.json")
    assert _standings(triage, two) == ["known", "new"]
    assert triage.result(complete=True).gone == 2
    assert triage.result(complete=False).gone is None


def test_a_suppression_goes_before_the_baseline_and_its_finding_is_not_gone(two: Sighting) -> None:
    first, _ = findings(two)
    one = _suppressed(fingerprint=first.fingerprint)
    triage = Triage(today=TODAY, known=[first.fingerprint], suppressions=[one], baseline="known.json")
    assert _standings(triage, two) == ["suppressed", "new"]
    assert triage.result(complete=True).gone == 0


@pytest.mark.parametrize(
    ("names", "standing"),
    [
        ({"session": "s-*"}, "suppressed"),
        ({"session": "*", "agent": "a-?", "tool": "s[ef]nd"}, "suppressed"),
        ({"session": "S-1"}, "new"),
        ({"session": "s"}, "new"),
        ({"session": "s-*", "agent": "b-*"}, "new"),
        ({"tool": "transfer"}, "new"),
        ({"code": "payload.shape", "session": "*"}, "new"),
    ],
)
def test_a_code_is_suppressed_where_all_patterns_fit(
    alarm: Alarm, saw: Saw, names: dict[str, str], standing: str
) -> None:
    triage = Triage(today=TODAY, suppressions=[_suppressed(**{"code": "margin.untrusted", **names})])
    assert _standings(triage, saw((alarm(source=3),))) == [standing]


def test_a_finding_with_a_call_of_another_tool_is_not_hidden(alarm: Alarm, saw: Saw) -> None:
    both = saw((alarm(source=3),), (alarm(source=3),))
    first, second = both.calls
    mixed = replace(both, calls=(first, replace(second, tool="transfer")))
    one = _suppressed(code="margin.untrusted", tool="send")
    assert _standings(Triage(today=TODAY, suppressions=[one]), both) == ["suppressed"]
    assert _standings(Triage(today=TODAY, suppressions=[one]), mixed) == ["new"]


def test_the_last_day_counts_and_the_day_after_does_not(alarm: Alarm, saw: Saw) -> None:
    one = _suppressed(code="margin.untrusted", session="*")
    found = saw((alarm(source=3),))
    assert _standings(Triage(today=TODAY, suppressions=[one]), found) == ["suppressed"]
    late = Triage(today=TODAY + DAY, suppressions=[one])
    assert _standings(late, found) == ["new"]
    assert late.result(complete=True).expired == (one,)
    assert late.result(complete=True).unused == ()


def test_what_was_about_nothing_is_unused_unless_the_scan_was_stopped(alarm: Alarm, saw: Saw) -> None:
    one, two = _suppressed(code="margin.untrusted", session="*"), _suppressed(code="x.y", session="*", entry=2)
    triage = Triage(today=TODAY, suppressions=[one, two])
    assert triage.result(complete=True).unused == (one, two)
    triage.marks(saw((alarm(source=3),)))
    assert triage.result(complete=True).unused == (two,)
    assert triage.result(complete=False).unused == ()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"fingerprint": "v1:0", "code": "margin.untrusted", "session": "*"},
        {"fingerprint": "v1:0", "tool": "*"},
        {"code": "margin.untrusted"},
        {"code": "margin.failure", "session": "*"},
        {"fingerprint": "v1:0", "reason": " "},
        {"fingerprint": "v1:0", "reasons": "x"},
    ],
)
def test_a_suppression_says_what_it_is_about_once_and_why(fields: dict[str, str]) -> None:
    with pytest.raises(msgspec.ValidationError):
        _suppressed(**fields)


# -- what is left to count --------------------------------------------------------------------------------------------


def _old(sighting: Sighting) -> Origin:
    known = [finding.fingerprint for finding in findings(sighting)]
    return Origin(marks=Triage(today=TODAY, known=known, baseline="known.json").marks(sighting))


def test_a_session_without_new_findings_counts_as_nothing(two: Sighting) -> None:
    assert left(two, {}) is Outcome.FINDING
    assert left(two, _old(two).marks) is None


def test_one_new_finding_is_a_finding(two: Sighting) -> None:
    (first, mark), *_ = _old(two).marks.items()
    assert left(two, {first: mark}) is Outcome.FINDING


def test_no_triage_hides_a_failure_an_unreadable_part_or_a_blind_detector(
    alarm: Alarm, failure: Alarm, saw: Saw
) -> None:
    failed = saw((alarm(source=3), failure()))
    unread = saw((alarm(source=3),), unreadable=(PART,))
    blind = saw((alarm(source=3), failure("no_evidence")))
    (sight,) = blind.coverage.detectors
    blind = replace(blind, coverage=replace(blind.coverage, detectors=(replace(sight, blind=True),)))
    outcomes = [left(session, _old(session).marks) for session in (failed, unread, blind)]
    assert outcomes == [Outcome.FAILED, Outcome.FAILED, Outcome.NOT_ENOUGH_EVIDENCE]


def test_an_action_counts_where_a_new_finding_asks_for_it(alarm: Alarm, saw: Saw) -> None:
    acting = saw((alarm(source=3, acts=True),), action=Action.ELEVATED_REVIEW)
    assert asked(acting, {}) is Action.ELEVATED_REVIEW
    assert asked(acting, _old(acting).marks) is Action.LOG_ONLY
    mixed = saw((alarm(source=3, acts=True),), (alarm(source=4, finds=True),), action=Action.ELEVATED_REVIEW)
    first, second = findings(mixed)
    marks = _old(mixed).marks
    assert asked(mixed, {second.fingerprint: marks[second.fingerprint]}) is Action.ELEVATED_REVIEW
    assert asked(mixed, {first.fingerprint: marks[first.fingerprint]}) is Action.LOG_ONLY


# -- the reports ------------------------------------------------------------------------------------------------------


def _reported(triage: Triage, *sightings: Sighting) -> tuple[Totals, Run, str]:
    lines: list[str] = []
    totals, report = Totals(), TextReport(lambda blocks: lines.extend(plain(blocks)))
    for item in sightings:
        origin = Origin(marks=triage.marks(item))
        totals.add(item, origin)
        report.add(item, origin)
    run = Run(version="1.0", triage=triage.result(complete=True))
    report.end(totals, run)
    return totals, run, "".join(lines)


def test_the_document_keeps_the_outcome_and_says_what_counts(two: Sighting, saw: Saw) -> None:
    first, second = findings(two)
    one = _suppressed(fingerprint=second.fingerprint, reason="Ann: \ud800")
    triage = Triage(today=TODAY, known=[first.fingerprint, "v1:0"], suppressions=[one], baseline="b", source="s")
    clean = saw((), outcome=Outcome.CLEAN, session="s-2")
    totals, run, _ = _reported(triage, two, clean)
    session = session_report(two, Origin(marks=triage.marks(two)))
    assert (session.outcome, session.counts_as) == (Outcome.FINDING, None)
    assert [(f.fingerprint, f.standing, f.reason, f.expires) for f in session.findings] == [
        (first.fingerprint, Standing.KNOWN, "", None),
        (second.fingerprint, Standing.SUPPRESSED, "Ann: \\ud800", "2026-03-01"),
    ]
    told = summary(totals, run)
    assert (told.sessions, told.outcomes[Outcome.CLEAN], told.outcomes[Outcome.FINDING]) == (2, 1, 0)
    assert told.findings == {}
    assert (told.triage.known, told.triage.suppressed, told.triage.settled, told.triage.gone) == (1, 1, 1, 1)
    assert (told.triage.baseline, told.triage.suppressions) == ("b", "s")


def test_text_tells_new_findings_whole_and_others_in_a_line(two: Sighting, alarm: Alarm, saw: Saw) -> None:
    first, _ = findings(two)
    settled = saw((alarm(source=3),), session="s-2")
    (only,) = findings(settled)
    one = _suppressed(fingerprint=only.fingerprint)
    gone = _suppressed(code="x.y", session="*", entry=2)
    late = _suppressed(code="x.z", tool="get_*", expires=TODAY - DAY, entry=3)
    triage = Triage(
        today=TODAY,
        known=[first.fingerprint, "v1:0"],
        suppressions=[one, gone, late],
        baseline="known.json",
        source="t.toml",
    )
    _, _, text = _reported(triage, two, settled)
    assert "2 sessions: 1 with a finding, 1 of which no finding is new. Findings: payload.shape 1." in text
    assert "1. payload.shape: " in text
    assert f"  known: margin.untrusted, send (event 5), {first.fingerprint}\n" in text
    assert "Sessions of which no finding is new: 1\n  s-2  1 call, 1 event; 1 suppressed\n" in text
    assert "baseline known.json: 1 known finding; 1 of the baseline is no longer found\n" in text
    assert "suppressions t.toml: 1 finding suppressed\n" in text
    assert "suppression 2 (x.y, session *) is about no finding of this scan" in text
    assert "suppression 3 (x.z, tool get_*) expired on 2026-02-28 and hides nothing" in text


def test_text_says_why_a_finding_is_suppressed_beside_a_new_one(two: Sighting) -> None:
    first, _ = findings(two)
    triage = Triage(today=TODAY, suppressions=[_suppressed(fingerprint=first.fingerprint)], source="t.toml")
    *_, text = _reported(triage, two)
    flat = " ".join(text.split())
    assert f"{first.fingerprint} until 2026-03-01: Ann: these are invoice runs" in flat


def test_a_failed_session_with_a_known_finding_is_told_as_failed(alarm: Alarm, failure: Alarm, saw: Saw) -> None:
    session = saw((alarm(source=3), failure()))
    triage = Triage(today=TODAY, known=[found.fingerprint for found in findings(session)], baseline="known.json")
    totals, _, text = _reported(triage, session)
    assert totals.outcomes == {Outcome.FAILED: 1}
    assert "Failure in session s-1" in text
    assert "known: margin.untrusted" in text
