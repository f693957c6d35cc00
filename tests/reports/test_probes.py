"""A probe in short: a line for each answer, and which fields differ."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from theodolite.core.reading import Evidence, Reading, Signal
from theodolite.reports.layout import plain
from theodolite.reports.probes import probe_blocks, probe_lines
from theodolite.runtime.replay import Sighting

Alarm = Callable[..., Signal]
Saw = Callable[..., Sighting]


def _probed(saw: Saw, alarm: Alarm, *evidence: Evidence) -> Sighting:
    signal = alarm("behavior.data_disclosure", score=0.4, finds=False)
    assert isinstance(signal.said, Reading)
    return saw((replace(signal, said=replace(signal.said, evidence=evidence, models=("m-1",), surrogate=True)),))


def _field(path: str, shadow: str, session: str) -> Evidence:
    return Evidence(kind="behavior.field", path=path, expected=shadow, observed=session)


def test_each_answer_has_a_line_and_a_long_reason_is_cut(saw: Saw, alarm: Alarm) -> None:
    long = "so it is, " * 30
    fields = (_field("decision", "decline", "comply"), _field("cited", "true", "true"), _field("data", "true", "false"))
    session = _probed(saw, alarm, *fields, _field("reasoning", long, "Why not?"))
    _, _, head, shadow, own, differ, *rest = "".join(plain(probe_lines(session))).replace("\n", "\n\n", 1).splitlines()
    assert head.split() == ["answer", "decision", "says", "why"]
    assert shadow.startswith('  clean shadow  decline   "so it is, so it is, ')
    assert len(shadow) < 120
    assert own == '  this session  comply    "Why not?"'
    assert differ == "  they differ in 2 of 3 fields: decision, data"
    assert "it says nothing about that agent" in " ".join(" ".join(rest).split())
    assert len("".join(plain(probe_blocks(session)))) > len("".join(plain(probe_lines(session))))


def test_answers_without_fields_or_reasons_are_no_stumbling_block(saw: Saw, alarm: Alarm) -> None:
    assert "they differ in 0 of 0 fields" in "".join(plain(probe_lines(_probed(saw, alarm))))
    same = _probed(saw, alarm, _field("decision", "decline", "decline"))
    assert "they differ in 0 of 1 field\n" in "".join(plain(probe_lines(same)))


def test_a_session_that_was_not_probed_says_so(saw: Saw) -> None:
    assert "it was not probed" in "".join(plain(probe_lines(saw(()))))
