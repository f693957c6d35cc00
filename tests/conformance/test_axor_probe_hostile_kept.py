"""Hostile inputs on which axor-probe was seen to fail: what is kept of answers, and what is redacted."""

from __future__ import annotations

import time
from collections.abc import Collection

import pytest
from tests.conformance.adapters import FIELDS, FORBIDDEN, declines_in_json, kept, leaking, piped, run
from tests.conformance.wiring import Messages, secret_in

from theodolite.api.probing import (
    DriftAccumulator,
    DriftAction,
    PayloadRedactor,
    ProbeOutcome,
    ProbeReport,
)
from theodolite.core.redaction import Redacted

PERSONAL = "Bob Smith, bob@example.com, card 4111 1111 1111 1111"


def test_17_personal_data_is_nowhere_in_what_is_kept() -> None:
    accumulator = DriftAccumulator(session_id="session-1", probe_library_version="1.0.0")
    pipeline = piped(
        lambda _: {"text": f"Sure: {PERSONAL}.", "tool_calls": [{"name": "send_mail", "arguments": {"to": PERSONAL}}]},
        accumulator=accumulator,
    )
    report = run(pipeline, 3)
    assert accumulator.probes_sent == 3  # the caller's own is the one that is used
    for secret in ("bob@example.com", "4111"):
        assert secret not in kept(pipeline, report) + repr(accumulator)


def test_18_a_redactor_that_raises_stops_the_probe() -> None:
    class Broken(PayloadRedactor):
        def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
            raise RuntimeError(f"no rules for {value} {secrets}")

        def field(self, name: str, value: str) -> Redacted:
            raise RuntimeError(f"no rules for {name} {value}")

    told: list[ProbeReport] = []

    class Sink:
        async def emit(self, report: ProbeReport, action: DriftAction) -> None:
            del action
            told.append(report)

    pipeline = piped(
        lambda _: {"text": f"Sure: {PERSONAL}.", "tool_calls": [FORBIDDEN]}, redactor=Broken(), integrations=[Sink()]
    )
    report = run(pipeline, 3)
    assert pipeline.outcome is report.outcome is ProbeOutcome.REDACTION_STOPPED
    for word in ("bob@example.com", "Sure", "no rules"):
        assert word not in kept(pipeline, report) + repr(told)


@pytest.mark.parametrize(
    "secret",
    [
        "536-90-4399",
        "4111 1111 1111 1111",
        "DE89 3704 0044 0532 0130 00",
        "+44 20 7946 0958",
        "sk-live-9f3a8b7c6d5e4f3a2b1c0d9e8f7a6b5c",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "203.0.113.77",
        "jürgen@exämple.de",
    ],
)
def test_19_secrets_are_redacted(secret: str) -> None:
    told = PayloadRedactor().field("reasoning", f"The one asked for is {secret}, I think.")
    assert secret not in told
    assert "[REDACTED:" in told
    assert told.startswith("The one asked for is ")


def test_19_the_planted_canary_is_redacted() -> None:
    planted: list[str] = []

    def leaks(messages: Messages) -> object:
        planted.append(secret_in(messages))
        return leaking(messages)

    pipeline = piped(leaks)
    report = run(pipeline)
    assert planted
    assert not any(secret in kept(pipeline, report) for secret in planted)


def test_19_unknown_fields_are_refused() -> None:
    redactor = PayloadRedactor()
    assert redactor.field("notes", "comply") == "[REDACTED:UNKNOWN_FIELD]"
    assert redactor.field("decision", "comply") == "comply"
    assert redactor.field("disclosed_data", "true") == "true"


@pytest.mark.parametrize("text", ["Order 1796040000 is on its way.", "Seen at 1796040123, and again later."])
def test_20_a_number_is_no_phone(text: str) -> None:
    assert PayloadRedactor().field("reasoning", text) == text


def test_20_no_bracket_is_left_of_a_phone() -> None:
    assert PayloadRedactor().field("reasoning", "Call (212) 555-0147 now.") == "Call [REDACTED:PHONE] now."


@pytest.mark.parametrize("unit", ["a", "ab.c-", "1 ", "a@"])
def test_21_redaction_is_linear(unit: str) -> None:
    def cost(length: int) -> float:
        text = (unit * length)[:length]
        start = time.thread_time()
        PayloadRedactor().field("reasoning", text)
        return time.thread_time() - start

    short, long = min(cost(10_000) for _ in range(3)), min(cost(40_000) for _ in range(3))
    assert long < 8 * short + 0.05
    assert long < 1.0


def test_22_ten_megabytes_are_no_way_to_hide() -> None:
    def huge(messages: Messages) -> object:
        return {"text": "a" * 10_000_000 + secret_in(messages), "tool_calls": []}

    pipeline = piped(huge)
    start = time.thread_time()
    report = run(pipeline)
    assert time.thread_time() - start < 2.0
    assert report.outcome in {ProbeOutcome.DRIFT, ProbeOutcome.FAILED, ProbeOutcome.INVALID}


def test_27_personal_data_is_no_decision() -> None:
    pipeline = piped(lambda _: {**FIELDS, "decision": "ask bob@example.com"}, declines_in_json, declines_in_json)
    report = run(pipeline, 3)
    assert report.structural_failures == 3
    assert "bob@example.com" not in kept(pipeline, report)
    assert report.overall_verdict != "CONSISTENT"
