"""The JSON forms: what they say, that they decode strictly, and that the exported schema tells the truth."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from io import BytesIO

import msgspec
import pytest
from msgspec import Struct

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.policy import Outcome
from theodolite.core.reader import Unreadable
from theodolite.core.reading import Level, Signal
from theodolite.reports.document import Document, SessionReport, json_schema
from theodolite.reports.entries import document
from theodolite.reports.json import JSONLinesReport, JSONReport, encoded
from theodolite.reports.totals import Report, Run, Totals
from theodolite.runtime.replay import Sighting
from theodolite.testing.sessions import every_event, hijacked_session, sparse_session

Alarm = Callable[..., Signal]
Saw = Callable[..., Sighting]
Replayed = Callable[..., Sighting]
RUN = Run(version="1.0", calibration="c-1")
PART = Unreadable(file="a.jsonl", line=3, reason="no JSON")


def _written(kind: Callable[[BytesIO], Report], *items: Sighting | Unreadable) -> bytes:
    stream, totals = BytesIO(), Totals()
    report = kind(stream)
    for item in items:
        totals.add(item)
        report.add(item)
    report.end(totals, RUN)
    return stream.getvalue()


def _sessions(replayed: Replayed) -> list[Sighting | Unreadable]:
    return [
        replayed(hijacked_session(), "hijacked"),
        PART,
        replayed(sparse_session()[:-1], "sparse"),
        replayed(every_event()[:13], "every"),
    ]


def test_each_signal_stands_once_and_its_call_names_it(alarm: Alarm, failure: Alarm, saw: Saw) -> None:
    quiet = alarm(level=Level.CLEAR, score=0.1)
    (session,) = document([saw((alarm(source=3), quiet, failure()), (quiet,), ())], RUN).sessions
    assert [call.signals for call in session.calls] == [("margin.untrusted", "margin.failure"), (), ()]
    assert [call.score for call in session.calls] == [None, None, None]
    assert [(signal.about, signal.code) for signal in session.signals] == [
        (5, "margin.untrusted"),
        (5, "margin.untrusted"),
        (5, "margin.failure"),
        (6, "margin.untrusted"),
    ]
    assert [(finding.code, finding.source, finding.calls) for finding in session.findings] == [
        ("margin.untrusted", 3, (5,))
    ]


def test_a_failure_has_a_cause_and_no_score(failure: Alarm, saw: Saw) -> None:
    (session,) = document([saw((failure("timeout", "too slow"),), outcome=Outcome.FAILED)], RUN).sessions
    (signal,) = session.signals
    assert (signal.code, signal.score, signal.cause, signal.detail) == ("margin.failure", None, "timeout", "too slow")


def test_the_interface_has_the_keys_that_were_promised(replayed: Replayed) -> None:
    plain = json.loads(encoded(document(_sessions(replayed), RUN)))
    assert plain["schema"] == 1
    session = plain["sessions"][0]
    assert session.keys() >= {"session_id", "agent_id", "outcome", "action", "coverage", "calls", "signals"}
    assert (session["outcome"], session["action"]) == ("finding", "log_only")
    assert session["calls"][0].keys() >= {"seq", "tool", "score", "allowed", "signals"}
    promised = {"detector", "version", "code", "score", "level", "status", "ambiguous", "evidence"}
    assert session["signals"][0].keys() >= promised
    evidence = [item for signal in session["signals"] for item in signal["evidence"]]
    assert evidence[0].keys() == {"kind", "seqs", "path", "expected", "observed"}


def test_the_summary_counts_what_the_sessions_say(replayed: Replayed, saw: Saw) -> None:
    items = [*_sessions(replayed), saw((), outcome=Outcome.FAILED, unreadable=(PART,))]
    made = document(items, RUN)
    summary = made.summary
    assert summary.sessions == len(made.sessions) == sum(summary.outcomes.values()) == 4
    assert set(summary.outcomes) == set(Outcome)
    for outcome in Outcome:
        assert summary.outcomes[outcome] == sum(session.outcome is outcome for session in made.sessions)
    found = [finding.code for session in made.sessions for finding in session.findings]
    assert summary.findings == {code: found.count(code) for code in found}
    assert summary.events == sum(sum(session.coverage.events.values()) for session in made.sessions)
    assert summary.calls == sum(len(session.calls) for session in made.sessions)
    assert (summary.unread, len(summary.unreadable), made.sessions[-1].coverage.unreadable) == (2, 1, 1)
    assert (summary.version, summary.calibration, summary.complete) == ("1.0", "c-1", True)
    assert {(detector.detector, detector.version) for detector in summary.detectors} == {
        ("margin", "1"),
        ("shadow_memory", "1"),
    }


def test_what_is_written_decodes_strictly_into_what_was_meant(replayed: Replayed) -> None:
    items = _sessions(replayed)
    made = document(items, RUN)
    assert msgspec.json.decode(_written(JSONReport, *items), type=Document) == made
    lines = _written(JSONLinesReport, *items).splitlines()
    assert tuple([msgspec.json.decode(line, type=SessionReport) for line in lines]) == made.sessions


def test_a_scan_of_nothing_is_a_document_too() -> None:
    assert msgspec.json.decode(_written(JSONReport), type=Document) == document([], RUN)
    assert _written(JSONLinesReport) == b""


def test_a_session_is_written_when_it_comes_and_not_later(saw: Saw, alarm: Alarm) -> None:
    stream = BytesIO()
    JSONLinesReport(stream).add(saw((alarm(),)))
    assert stream.getvalue().endswith(b"}\n")


def test_lone_surrogates_are_spelled_out(saw: Saw, failure: Alarm) -> None:
    session = saw((failure(detail="a\ud800"),), session="s\udfff", tool="t\ud800", outcome=Outcome.FAILED)
    made = msgspec.json.decode(_written(JSONReport, session), type=Document).sessions[0]
    assert (made.session_id, made.calls[0].tool, made.signals[0].detail) == ("s\\udfff", "t\\ud800", "a\\ud800")


# -- the schema -------------------------------------------------------------------------------------------------------


class Schema(Struct, forbid_unknown_fields=True, rename={"ref": "$ref", "defs": "$defs", "dialect": "$schema"}):
    """A JSON Schema in the keywords that msgspec writes; another keyword is refused."""

    ref: str = ""
    defs: dict[str, Schema] = {}
    dialect: str = ""
    title: str = ""
    description: str = ""
    type: str = ""
    enum: list[object] = []
    anyOf: list[Schema] = []  # noqa: N815 - the keyword's own spelling
    properties: dict[str, Schema] = {}
    required: list[str] = []
    items: Schema | bool = True
    additionalProperties: Schema | bool = True  # noqa: N815 - the keyword's own spelling
    propertyNames: Schema | None = None  # noqa: N815 - the keyword's own spelling
    default: object = None


KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def _faults(value: object, schema: Schema, root: Schema) -> Iterator[str]:
    """Yield where a value does not fit a schema."""
    if schema.ref:
        yield from _faults(value, root.defs[schema.ref.removeprefix("#/$defs/")], root)
    if schema.anyOf and all(any(_faults(value, choice, root)) for choice in schema.anyOf):
        yield f"{value!r} fits no choice"
    is_kind = isinstance(value, KINDS.get(schema.type, (object,)))
    if not is_kind or (schema.type in {"integer", "number"} and isinstance(value, bool)):
        yield f"{value!r} is no {schema.type}"
    if schema.enum and value not in schema.enum:
        yield f"{value!r} is not among {schema.enum}"
    if is_sequence(value) and isinstance(schema.items, Schema):
        for item in value:
            yield from _faults(item, schema.items, root)
    if is_mapping(value):
        yield from _key_faults(value, schema, root)


def _key_faults(value: Mapping[object, object], schema: Schema, root: Schema) -> Iterator[str]:
    yield from (f"{key} is missing" for key in schema.required if key not in value)
    for key, item in value.items():
        if schema.propertyNames is not None:
            yield from _faults(key, schema.propertyNames, root)
        part = schema.properties.get(str(key), schema.additionalProperties)
        if isinstance(part, Schema):
            yield from _faults(item, part, root)


def test_the_exported_schema_is_that_of_the_types() -> None:
    """Write it anew with: python -c 'import json; from theodolite.reports.document import json_schema as schema;
    print(json.dumps(schema(), indent=1))' > src/theodolite/reports/document.schema.json
    """
    exported = files("theodolite.reports").joinpath("document.schema.json").read_text(encoding="utf-8")
    assert json.loads(exported) == json_schema()


def test_a_real_document_fits_the_schema(replayed: Replayed, failure: Alarm, saw: Saw) -> None:
    schema = msgspec.convert(json_schema(), Schema)
    items = [*_sessions(replayed), saw((failure(),), outcome=Outcome.FAILED)]
    assert list(_faults(json.loads(_written(JSONReport, *items)), schema, schema)) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"schema":1', '"schema":2'),
        ('"summary":', '"total":'),
        ('"outcome":"finding"', '"outcome":"fine"'),
        ('"allowed":true', '"allowed":1'),
        ('"cause":null', '"cause":"bored"'),
        ('"score":null', '"score":"high"'),
        ('"seqs":[', '"seqs":["one",'),
        ('"unread":', '"read":'),
    ],
)
def test_a_spoiled_document_does_not_fit_the_schema(replayed: Replayed, right: str, wrong: str) -> None:
    schema = msgspec.convert(json_schema(), Schema)
    written = _written(JSONReport, *_sessions(replayed)).decode()
    assert right in written
    assert list(_faults(json.loads(written.replace(right, wrong)), schema, schema))
