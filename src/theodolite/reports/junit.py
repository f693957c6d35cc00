"""JUnit XML: a test case for each session, for the test views of Jenkins, GitLab and others.

There is no standard. What is written here is valid by the schema of Jenkins' xUnit plug-in (junit-10.xsd) and keeps to
what Ant's has in common with it: one `failure`, `error` or `skipped` a case, properties of the suite alone. Times are
zero, since nobody measured them, and no clock or host is asked.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from tempfile import SpooledTemporaryFile
from types import MappingProxyType
from typing import BinaryIO
from xml.etree import ElementTree as ET

from theodolite.core.policy import Outcome
from theodolite.reports.alarms import alarms, blindness, fresh, old, sentences
from theodolite.reports.document import SessionReport, Summary, UnreadableReport
from theodolite.reports.escaping import inert
from theodolite.reports.layout import counted
from theodolite.reports.pages import meaning_of
from theodolite.reports.telling import FAILURES, FINDINGS, NAME, QUOTE

__all__ = ("JUnitWriter",)

# What an outcome is in a test view. A session without enough evidence did not pass: nobody could say.
_RESULTS: Mapping[Outcome, tuple[str | None, str]] = {
    Outcome.FINDING: ("failure", "finding"),
    Outcome.FAILED: ("error", "failed"),
    Outcome.NOT_ENOUGH_EVIDENCE: ("skipped", "not_enough_evidence"),
    Outcome.CLEAN: (None, ""),
}
# GitLab takes files of up to 30 MB (docs.gitlab.com, unit test reports): when cases have so much text, later ones have
# their message alone. Each case is written all the same.
DETAILS = 20_000_000
# Cases are held in memory up to this size, then in a temporary file: their number stands before them.
HELD = 4_000_000


class JUnitWriter:
    """Writes the cases at the end, behind their number, which Jenkins and Ant want. `pages` are those of plug-ins."""

    def __init__(self, stream: BinaryIO, *, pages: Mapping[str, str] = MappingProxyType({})) -> None:
        self._stream = stream
        self._pages = pages
        self._cases = SpooledTemporaryFile(max_size=HELD)  # noqa: SIM115 - open until `end`, or until nobody holds it
        self._results: Counter[str] = Counter()
        self._names: Counter[int] = Counter()
        self._details = DETAILS

    def add(self, session: SessionReport) -> None:
        """Take a session."""
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
        suite = ET.Element(
            "testsuite",
            name="theodolite scan",
            tests=str(self._results.total()),
            failures=str(self._results["failure"]),
            errors=str(self._results["error"]),
            skipped=str(self._results["skipped"]),
            time="0",
        )
        properties = ET.SubElement(suite, "properties")
        for name, value in _properties(summary).items():
            ET.SubElement(properties, "property", name=name, value=value)
        start, stop = ET.tostring(suite, encoding="unicode").rsplit("</", 1)
        self._stream.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{start}\n'.encode())
        with self._cases:
            self._cases.seek(0)
            shutil.copyfileobj(self._cases, self._stream)
        self._stream.write(f"</{stop}\n</testsuites>\n".encode())

    def _said(self, session: SessionReport, result: str | None) -> tuple[str, list[str]]:
        """Return what there is to say of a session: in a line, and in all."""
        causes = _causes(session)
        lines = [*self._found(session), *_limited(old(session), "findings that are not new"), *causes]
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
        """Write a case. Two of one name are told apart: GitLab takes the first alone."""
        key = hash((group, name))
        self._names[key] += 1
        times = f" ({self._names[key]})" if self._names[key] > 1 else ""
        case = ET.Element("testcase", classname=group, name=name + times, time="0")
        text = "\n".join(lines)
        self._details -= len(text.encode())
        tag, kind = result
        told = ET.SubElement(case, tag, message=message, type=kind) if tag else None
        if text and self._details >= 0:
            told = ET.SubElement(case, "system-out") if told is None else told
            told.text = text
        self._results[tag or "passed"] += 1
        self._cases.write(ET.tostring(case, encoding="utf-8", xml_declaration=False) + b"\n")


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
    for code, count in summary.findings.items():
        yield f"theodolite.findings.{inert(code, NAME)}", str(count)
