"""SARIF 2.1.0, for code scanning: a result for each finding, at the recording that it was found in.

Specification: SARIF Version 2.1.0, OASIS Standard, 27 March 2020.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import BinaryIO
from urllib.parse import quote

import msgspec

from theodolite.core.policy import Outcome
from theodolite.core.reading import Level, Status
from theodolite.reports.alarms import alarms, worst
from theodolite.reports.document import FindingReport, SessionReport, SignalReport, Summary, UnreadableReport
from theodolite.reports.escaping import ascii_json, inert
from theodolite.reports.limits import LARGEST, NAME, QUOTE
from theodolite.reports.pages import meaning_of, page, references_of
from theodolite.reports.room import Room
from theodolite.reports.sentences import blindness, sentences
from theodolite.reports.triage import Standing

__all__ = ("SCHEMA", "SarifWriter", "literal", "located")

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# GitHub shows 100 locations of a result and 10 tags of a rule, and the first 5,000 results of a run by severity. It
# rejects a run of more than 25,000 results, which our size alone rules out: each has more than 200 bytes.
# Source: docs.github.com, "SARIF results exceed one or more limits".
LOCATIONS, TAGS = 100, 10
# Of the size, bytes for rules, and for what the log says of itself. And what bounds those: notifications, and
# characters of a page that a plug-in brings (our choice).
RULES, FRAME, NOTIFICATIONS, HELP = 1_000_000, 50_000, 500, 10_000
# What gives way to what, where not all fits: old findings to new ones, and to both what went wrong.
NEW, OLD, NOTE = range(3)
# No path is longer (limits.h of Linux): what is has no such file.
PATH_MAX = 4_096

_ENCODER = msgspec.json.Encoder()
_Object = dict[str, object]

_NOTIFICATIONS = {
    "failed": "A detector could not judge, or a part of a session could not be read.",
    "not_enough_evidence": "A session did not show what is needed to judge it.",
    "unreadable": "A part of a recording that belongs to no session could not be read.",
    "left_out": "There was more than this log may hold.",
}


class SarifWriter:
    """Writes the log at the end. `pages` are those of plug-ins.

    Holds the results and notifications that the log will have, five megabytes at most: new findings before those that
    are known or suppressed, and all findings before what went wrong. What is left out is counted in the last
    notification.
    """

    def __init__(self, stream: BinaryIO, *, pages: Mapping[str, str] = MappingProxyType({})) -> None:
        self._stream = stream
        self._pages = pages
        self._held = Room(LARGEST - RULES - FRAME)
        self._rules: list[bytes] = []
        self._places: dict[str, int] = {}
        self._room = RULES
        self._notes = self._unsaid = 0

    def add(self, session: SessionReport, thresholds: Mapping[str, float] = MappingProxyType({})) -> None:
        """Take the findings of a session."""
        del thresholds
        signals = alarms(session)
        for finding in session.findings:
            found = signals.get((finding.code, finding.source), ())
            told = "\n".join(sentences(session, finding, found, self._pages))
            result = {**_result(session, finding, worst(found), told), **self._ruled(inert(finding.code, QUOTE))}
            self._held.add(_piece(result), NEW if finding.standing is Standing.NEW else OLD)
        for note in _wrong(session):
            self._note(note)

    def _note(self, note: _Object) -> None:
        if self._notes < NOTIFICATIONS:
            self._notes += self._held.add(_piece(note), NOTE)
        else:
            self._unsaid += 1

    def _ruled(self, code: str) -> _Object:
        """Return the place of a rule among the rules, where there is room for it: whole, or without its page."""
        if code not in self._places:
            for helps in (True, False):
                rule = _piece(self._described(code, helps=helps))
                if len(rule) <= self._room:
                    self._room -= len(rule)
                    self._places[code] = len(self._rules)
                    self._rules.append(rule)
                    break
        return {"ruleIndex": self._places[code]} if code in self._places else {}

    def end(self, summary: Summary) -> None:
        """Write the log."""
        for part in summary.unreadable:
            self._note(_notification("unreadable", f"{_place(part)}: {part.reason}", part.file))
        notes = [*self._held.pieces(NOTE), *map(_piece, self._left_out())]
        run: _Object = {
            "results": _array(self._held.pieces(NEW, OLD)),
            "tool": {"driver": self._driver(summary)},
            "invocations": [{"executionSuccessful": summary.complete, "toolExecutionNotifications": _array(notes)}],
            "columnKind": "utf16CodeUnits",
            "properties": {
                "calibration": inert(summary.calibration or "", NAME),
                "sessions": summary.sessions,
                "outcomes": {outcome.value: count for outcome, count in summary.outcomes.items()},
                "calls": summary.calls,
                "refused": summary.refused,
                "unread": summary.unread,
            },
        }
        log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
        self._stream.write(ascii_json(_ENCODER.encode(log)) + b"\n")

    def _left_out(self) -> Iterator[_Object]:
        """Yield a notification for each kind of thing that there was no room for."""
        counts = {
            "findings": self._held.left_out[NEW],
            "findings that are not new": self._held.left_out[OLD],
            "notifications": self._held.left_out[NOTE] + self._unsaid,
        }
        for kind, count in counts.items():
            if count:
                yield _notification("left_out", f"... and {count:,} more {kind}: --format json has all")

    def _driver(self, summary: Summary) -> _Object:
        return {
            "name": "Theodolite",
            "version": inert(summary.version, NAME),
            "rules": _array(self._rules),
            "notifications": [
                {"id": name, "shortDescription": {"text": text}, "defaultConfiguration": {"level": "warning"}}
                for name, text in _NOTIFICATIONS.items()
            ],
        }

    def _described(self, code: str, *, helps: bool) -> _Object:
        """Return the rule of a code; with `helps` its page is there."""
        known = page(code, self._pages)
        meaning = meaning_of(code, self._pages)
        text = (known.text if known else meaning)[:HELP]
        said = {"text": literal(inert(meaning, QUOTE))}
        tags = dict.fromkeys(reference.tag for reference in references_of(code, self._pages))
        return {
            "id": code,
            "shortDescription": said,
            "fullDescription": said,
            **({"help": {"text": literal(text), "markdown": text}} if helps else {}),
            "defaultConfiguration": {"level": "warning"},
            "properties": {"tags": ["security", *tags][:TAGS]},
        }


def _piece(value: _Object) -> bytes:
    """Return a member of an array, as it is written there."""
    return ascii_json(_ENCODER.encode(value)) + b",\n"


def _array(pieces: Iterable[bytes]) -> msgspec.Raw:
    return msgspec.Raw(b"[\n%b]" % b"".join(pieces).removesuffix(b",\n"))


def _result(session: SessionReport, finding: FindingReport, said: SignalReport | None, told: str) -> _Object:
    properties: _Object = {
        "session": inert(session.session_id, QUOTE),
        "agent": inert(session.agent_id, QUOTE),
        "events": finding.calls[:LOCATIONS],
    }
    if said is not None:
        detector = f"{inert(said.detector, NAME)} {inert(said.version, NAME)}"
        properties |= {"score": said.score, "status": said.status, "detector": detector}
    name = inert(finding.fingerprint, NAME)
    return {
        "ruleId": inert(finding.code, QUOTE),
        "kind": "fail",
        "level": _level(said),
        "message": {"text": literal(told)},
        "locations": [{**_file(session.file), "logicalLocations": list(_logical(session, finding))}],
        # GitHub goes by the second alone. Without it, its action would take one from the first line of the recording,
        # and all findings in a recording would be one alert.
        "partialFingerprints": {
            "theodoliteFinding/v1": name,
            "primaryLocationLineHash": f"{name.rpartition(':')[2]}:1",
        },
        **_standing(finding),
        "properties": properties,
    }


def _level(said: SignalReport | None) -> str:
    """Return how bad a finding is by what its threshold rests on: by an estimate that nobody measured, it is a note."""
    if said is None or said.status in {Status.UNCALIBRATED, Status.STALE}:
        return "note"
    certain = said.status is Status.EXACT or (said.status is Status.CALIBRATED and said.level is Level.STRONG)
    return "error" if certain else "warning"


def _standing(finding: FindingReport) -> _Object:
    """Return that somebody answers for a finding (section 3.35 of the specification), or that it was there before."""
    if finding.standing is Standing.SUPPRESSED:
        until = f" (until {inert(finding.expires, NAME)})" if finding.expires else ""
        reason = literal(f"{inert(finding.reason, QUOTE)}{until}")
        return {"suppressions": [{"kind": "external", "status": "accepted", "justification": reason}]}
    return {"baselineState": "unchanged"} if finding.standing is Standing.KNOWN else {}


def _logical(session: SessionReport, finding: FindingReport) -> Iterator[_Object]:
    name = inert(session.session_id, QUOTE)
    yield {"name": name, "fullyQualifiedName": name, "kind": "session"}
    for seq in list(dict.fromkeys(finding.calls))[: LOCATIONS - 1]:
        yield {"name": f"event {seq}", "fullyQualifiedName": f"{name}/event {seq}", "kind": "event"}


def _file(file: str) -> _Object:
    """Return the place of a recording. GitHub asks for a line, and an event has none of its own: it is the first."""
    if not file or len(file) > PATH_MAX:
        return {}
    return located(file)


def located(file: str) -> dict[str, object]:
    """Return the place that a file has: its first line, since GitHub asks for one."""
    path = PurePath(file)
    uri = quote(path.as_posix())
    artifact = {"uri": f"file://{uri}" if path.is_absolute() else uri}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": 1}}}


def _wrong(session: SessionReport) -> Iterator[_Object]:
    """Yield what went wrong in a session, each once."""
    name = inert(session.session_id, QUOTE)
    if session.outcome is Outcome.NOT_ENOUGH_EVIDENCE:
        yield _notification("not_enough_evidence", f"session {name}: {blindness(session)}", session.file)
    said = {
        f"{inert(signal.code, NAME)}: {signal.cause}{': ' if signal.detail else ''}{inert(signal.detail, QUOTE)}": None
        for signal in session.signals
        if signal.cause is not None
    }
    said |= {f"{_place(part)}: {inert(part.reason, QUOTE)}": None for part in session.unreadable}
    for text in said:
        yield _notification("failed", f"session {name}: {text}", session.file)


def _notification(kind: str, text: str, file: str = "") -> _Object:
    located = _file(file)
    return {
        "descriptor": {"id": kind},
        "level": "warning",
        "message": {"text": literal(inert(text, 3 * QUOTE))},
        **({"locations": [located]} if located else {}),
    }


def _place(part: UnreadableReport) -> str:
    return inert(f"{part.file}:{part.line}" if part.line else part.file, QUOTE)


def literal(text: str) -> str:
    r"""Return a message that is text and nothing else: no placeholders (section 3.11.5), no links (section 3.11.6).

    >>> print(literal("{0} [click](https://evil.example)"))
    {{0}} [click]\x28https://evil.example)
    """
    return re.sub(r"\]\(", r"]\\x28", text.replace("{", "{{").replace("}", "}}"))
