"""JUnit XML: a test case for each session, for the test views of Jenkins, GitLab and others.

There is no standard. What is written here is valid by the schema of Jenkins' xUnit plug-in (junit-10.xsd) and keeps to
what Ant's has in common with it: one `failure`, `error` or `skipped` a case, properties of the suite alone. Times are
zero, since nobody measured them, and no clock or host is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import BinaryIO
from xml.etree import ElementTree as ET

from theodolite.core.policy import Outcome
from theodolite.reports.alarms import alarms, fresh
from theodolite.reports.document import SessionReport, Summary, UnreadableReport
from theodolite.reports.escaping import inert
from theodolite.reports.layout import counted
from theodolite.reports.limits import FAILURES, FINDINGS, LARGEST, NAME, PARTS, QUOTE
from theodolite.reports.notes import notes_of
from theodolite.reports.pages import meaning_of
from theodolite.reports.room import Room
from theodolite.reports.sentences import blindness, old, sentences

__all__ = ("JUnitWriter",)

# What an outcome is in a test view. A session without enough evidence did not pass: nobody could say.
_RESULTS: Mapping[Outcome, tuple[str | None, str]] = {
    Outcome.FINDING: ("failure", "finding"),
    Outcome.FAILED: ("error", "failed"),
    Outcome.NOT_ENOUGH_EVIDENCE: ("skipped", "not_enough_evidence"),
    Outcome.CLEAN: (None, ""),
}
# The results by rank: where not all cases fit, those of a higher rank give way.
_RANKS = ("failure", "error", "skipped", None)
# What is called what has no case of its own.
_MORE = {
    "failure": "sessions with a finding",
    "error": "sessions that failed, or parts that could not be read",
    "skipped": "sessions without enough evidence",
    None: "sessions that passed",
}
# Bytes for the head of the file and its last cases: fifty codes of 60 characters, of at most 6 bytes each, and as much
# again for all else. And bytes for what explains cases of one result: when they have so much, others have their message
# alone (our choice).
FRAME = 40_000
DETAILS: Mapping[str | None, int] = {"failure": 2_000_000, "error": 500_000, "skipped": 250_000, None: 250_000}


class JUnitWriter:
    """Writes the cases at the end, behind their number, which Jenkins and Ant want. `pages` are those of plug-ins.

    Holds the cases that the file will have, five megabytes at most. Where not all sessions fit, those that passed give
    way first; what is left out stands as one case of its result, which says how many there are. The property
    `theodolite.unexplained` counts the sessions that have their message alone.
    """

    def __init__(self, stream: BinaryIO, *, pages: Mapping[str, str] = MappingProxyType({})) -> None:
        self._stream = stream
        self._pages = pages
        self._cases = Room(LARGEST - FRAME)
        self._names: Counter[int] = Counter()
        self._details = dict(DETAILS)
        self._unexplained = 0

    def add(self, session: SessionReport, thresholds: Mapping[str, float] = MappingProxyType({})) -> None:
        """Take a session."""
        del thresholds
        agent = inert(session.agent_id, NAME).replace(".", "_") or "sessions"
        result, kind = (None, "") if session.counts_as is None else _RESULTS[session.counts_as]
        message, lines = self._said(session, result)
        if session.file and lines:
            lines.append(f"read from {inert(session.file, QUOTE)} ({inert(session.reader, NAME)})")
        self._case(
            f"theodolite.{agent}", inert(session.session_id, QUOTE) or "(no name)", (result, kind), message, lines
        )

    def end(self, summary: Summary) -> None:
        """Write the suite."""
        for part in summary.unreadable:
            message = inert(part.reason, QUOTE)
            self._case("theodolite.unreadable", _place(part), ("error", "unreadable"), message, [message])
        more = [_rest(result, self._cases.left_out[rank]) for rank, result in enumerate(_RANKS)]
        cases = [self._cases.held(rank) + bool(rest) for rank, rest in enumerate(more)]
        failures, errors, skipped, _ = cases
        suite = ET.Element(
            "testsuite",
            name="theodolite scan",
            tests=str(sum(cases)),
            failures=str(failures),
            errors=str(errors),
            skipped=str(skipped),
            time="0",
        )
        properties = ET.SubElement(suite, "properties")
        unexplained = {"theodolite.unexplained": str(self._unexplained)} if self._unexplained else {}
        for name, value in (_properties(summary) | unexplained).items():
            ET.SubElement(properties, "property", name=name, value=value)
        start, stop = ET.tostring(suite, encoding="unicode").rsplit("</", 1)
        self._stream.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{start}\n'.encode())
        self._stream.writelines(self._cases.pieces(*range(len(_RANKS))))
        self._stream.writelines(more)
        self._stream.write(f"</{stop}\n</testsuites>\n".encode())

    def _said(self, session: SessionReport, result: str | None) -> tuple[str, list[str]]:
        """Return what there is to say of a session: in a line, and in all."""
        causes = _causes(session)
        note = notes_of(session)
        lines = [
            *self._found(session),
            *_limited(old(session), "findings that are not new"),
            *causes,
            *[note] * bool(note),
        ]
        if result == "failure":
            return self._message(session), lines
        if result == "skipped":
            return f"not enough evidence: {blindness(session)}", lines
        return causes[0] if causes else "failed", lines

    def _message(self, session: SessionReport) -> str:
        found = fresh(session)
        if not found:
            return f"it asks for {session.action.replace('_', ' ')}"
        rest = f" ({counted(len(found) - 1, 'more finding')})" if len(found) > 1 else ""
        return f"{inert(found[0].code, NAME)}: {inert(meaning_of(found[0].code, self._pages), QUOTE)}{rest}"

    def _found(self, session: SessionReport) -> Iterator[str]:
        found, signals = fresh(session), alarms(session)
        for number, finding in enumerate(found[:FINDINGS], 1):
            told = sentences(session, finding, signals.get((finding.code, finding.source), ()), self._pages)
            yield f"{number}. {next(told)}"
            yield from (f"   {line}" for line in told)
        if len(found) > FINDINGS:
            yield f"... and {len(found) - FINDINGS:,} more findings: --format json has all"

    def _case(self, group: str, name: str, result: tuple[str | None, str], message: str, lines: Sequence[str]) -> None:
        """Take a case. Two of one name are told apart: GitLab takes the first alone."""
        key = hash((group, name))
        times = f" ({self._names[key] + 1})" if self._names[key] else ""
        tag = result[0]
        text = "\n".join(lines)
        case = _case(group, name + times, result, message, text)
        if text and len(case) > self._details[tag]:
            text, case = "", _case(group, name + times, result, message, "")
            self._unexplained += 1
        if text:
            self._details[tag] -= len(case)
        if self._cases.add(case, _RANKS.index(tag)):
            self._names[key] += 1


def _case(group: str, name: str, result: tuple[str | None, str], message: str, text: str) -> bytes:
    tag, kind = result
    case = ET.Element("testcase", classname=group, name=name, time="0")
    told = ET.SubElement(case, tag, message=message, type=kind) if tag else None
    if text:
        told = ET.SubElement(case, "system-out") if told is None else told
        told.text = text
    return f"{ET.tostring(case, encoding='unicode')}\n".encode()


def _rest(result: str | None, count: int) -> bytes:
    """Return a case for those of one result that were left out, if there are any."""
    if not count:
        return b""
    name = f"... and {count:,} more {_MORE[result]}"
    return _case("theodolite.left_out", name, (result, "left_out"), f"{name}: --format json has all", "")


def _causes(session: SessionReport) -> list[str]:
    """Return a line for each thing that went wrong."""
    said: dict[str, None] = {}
    for signal in session.signals:
        if signal.cause is not None:
            detail = f": {inert(signal.detail, QUOTE)}" if signal.detail else ""
            said[
                f"{inert(signal.code, NAME)}: {inert(signal.detector, NAME)}, {signal.cause.replace('_', ' ')}{detail}"
            ] = None
    said |= {f"not read: {_place(part)}: {inert(part.reason, QUOTE)}": None for part in session.unreadable}
    return _limited(list(said), "failures")


def _limited(lines: Sequence[str], what: str) -> list[str]:
    """Return at most so many lines, and how many more there are."""
    more = [f"... and {len(lines) - FAILURES:,} more {what}: --format json has all"] * (len(lines) > FAILURES)
    return [*lines[:FAILURES], *more]


def _place(part: UnreadableReport) -> str:
    return inert(f"{part.file}:{part.line}" if part.line else part.file, QUOTE)


def _properties(summary: Summary) -> dict[str, str]:
    """Return what is said of the scan as a whole. A reader of the cases alone would take a stopped one for a whole."""
    return {
        "theodolite.version": inert(summary.version, NAME),
        "theodolite.calibration": inert(summary.calibration or "", NAME),
        "theodolite.complete": str(summary.complete).lower(),
        "theodolite.sessions": str(summary.sessions),
        "theodolite.events": str(summary.events),
        "theodolite.calls": str(summary.calls),
        "theodolite.refused": str(summary.refused),
        "theodolite.unread": str(summary.unread),
        **dict(_counts(summary)),
    }


def _counts(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield how many findings there are of each code, and of very many codes of the rest."""
    most = sorted(summary.findings.items(), key=lambda item: -item[1])
    for code, count in sorted(most[:PARTS]):
        yield f"theodolite.findings.{inert(code, NAME)}", str(count)
    if len(most) > PARTS:
        yield "theodolite.findings", str(sum(count for _, count in most[PARTS:]))
