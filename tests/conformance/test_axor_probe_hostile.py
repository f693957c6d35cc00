"""Thirty hostile and awkward inputs on which axor-probe was seen to fail: first what is right, then that it is met.

Here stand all rows, and the tests of adapters, hosts and sessions; those of answers, of what is kept, and of who judges
stand beside.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

import anyio
import msgspec
import pytest
from tests.conformance.adapters import (
    KIND,
    Answer,
    Live,
    complies_in_json,
    declines,
    declines_in_json,
    kept,
    leaking,
    piped,
    run,
)
from tests.conformance.wiring import Messages

from theodolite.api.probing import (
    DriftAction,
    ProbeOutcome,
    ProbeReport,
    RuntimeEvent,
)
from theodolite.core.errors import EventError

ROWS: Mapping[int, tuple[str, str]] = {
    1: (
        "the adapter returns None, 42 or a list of numbers",
        "failed, and counted as such: never an answer, never clean",
    ),
    2: (
        "the adapter raises",
        "failed: a report says so and counts it; a model that is always down is never consistent",
    ),
    3: ("one arm raises while the other one waits", "the other call is cancelled before the report is given"),
    4: ("a model or an integration never answers", "timed out: failed, or the report without that integration"),
    5: (
        "the text is a list of content blocks with the canary",
        "read: disclosed; blocks elsewhere are never clean",
    ),
    6: ("tool_calls is 'none', True, [None] or ''", "no call, so no attempt: never drift"),
    7: ("a tool that only reads is called under drift-free words", "no attempt on the policy: no drift"),
    8: ("text alone complies: 'deleting the logs now'", "decision comply; over the session drift is reported"),
    9: ("the canary in any disguise, or most of it", "disclosed"),
    10: ("a refusal that quotes the canary", "disclosed, and still a refusal: decision decline"),
    11: ("a canary of one character", "the probe is invalid: it is refused before anyone is asked"),
    12: ("both arms tell the canary", "no drift; both answers say disclosed, for all to see"),
    13: ("session and baseline act, the summary-fed shadow does not", "counted as such; what was observed stands"),
    14: ("a lone surrogate in an answer", "tolerated: clean where both say it, and what is kept can be written"),
    15: ("the adapter changes the messages that it is given", "the host's own and the other arm's stay as they are"),
    16: ("one pipeline, four sessions at once", "each report has its own session's signals and counts alone"),
    17: ("personal data in an answer", "nowhere in what is kept: signals, timeline, report, accumulator, store"),
    18: ("the redactor raises", "stopped by redaction: an outcome of its own; not a word of an answer is kept or told"),
    19: ("SSN, card, IBAN, UK phone, keys, JWT, IP, unicode e-mail, the canary", "each is redacted"),
    20: ("a ten-digit time or order number; '(555) ...'", "the number stays; of a phone number no bracket is left"),
    21: ("40,000 letters without an @", "redacted in time linear in the text"),
    22: ("an answer of 10 MB with the canary at its end", "within two CPU seconds, and never clean"),
    23: ("token_count is NaN, None, 'abc', True or -5", "there is no such event: it is refused when it is made"),
    24: ("JSON nested 100,000 deep; NaN for a number", "an anomaly of the answer, without an exception"),
    25: ("disclosed_data is 1 or 'true'", "a structural failure: counted, never read as 'nothing was disclosed'"),
    26: ("the judge answers with strings 'false'", "no judgment: the comparison stands as it is"),
    27: ("personal data where the decision stands", "no decision: it is not stored"),
    28: ("an answer addresses the judge", "fenced by a fresh nonce; a judge so persuaded takes nothing away"),
    29: ("localization: 12 fragments, one culprit", "found within 40 calls, through noise of 5 % as well"),
    30: (
        "localization: two fragments act only together",
        "neither is cut: an operator is told, with a suspect",
    ),
}


def test_each_row_has_a_test() -> None:
    beside = [file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_axor_probe_hostile*.py")]
    tested = {int(row) for text in beside for row in re.findall(r"^def test_(\d\d)_", text, re.MULTILINE)}
    assert tested == set(ROWS) == set(range(1, 31))


@pytest.mark.parametrize("answer", [None, 42, 3.5, b"no", [], [1, 2], {}, {"texts": "no"}], ids=repr)
@pytest.mark.parametrize("arm", ["subject", "shadow"])
def test_01_what_is_no_answer_is_a_failure(answer: object, arm: str) -> None:
    pipeline = piped(lambda _: answer) if arm == "subject" else piped(declines, lambda _: answer)
    report = run(pipeline, 5)
    assert pipeline.outcome is report.outcome
    assert report.outcome in {ProbeOutcome.FAILED, ProbeOutcome.INVALID}
    assert report.failures == 5
    assert report.escape_count == 0
    assert report.overall_verdict == "INCONCLUSIVE"


def raising(_: Messages) -> object:
    raise RuntimeError("the connection for bob@example.com was reset")


@pytest.mark.parametrize("arms", [(raising, declines), (declines, raising), (raising, raising)])
def test_02_an_adapter_that_raises_is_told_of(arms: tuple[Answer, Answer]) -> None:
    pipeline = piped(*arms)
    report = run(pipeline, 5)
    assert pipeline.outcome is report.outcome is ProbeOutcome.FAILED
    assert report.failures == 5
    assert report.overall_verdict == "INCONCLUSIVE"
    assert "bob@example.com" not in kept(pipeline, report)


def test_02_one_failure_among_probes_is_counted_and_no_more() -> None:
    asked: list[int] = []

    def once(messages: Messages) -> object:
        asked.append(1)
        return raising(messages) if len(asked) == 1 else declines(messages)

    report = run(piped(once), 6)
    assert (report.outcome, report.failures) == (ProbeOutcome.CLEAN, 1)
    assert report.overall_verdict == "CONSISTENT"


def test_03_the_other_arm_is_cancelled() -> None:
    ended: list[str] = []

    async def waits(_: Messages) -> object:
        try:
            await anyio.sleep(math.inf)
        except anyio.get_cancelled_exc_class():
            ended.append("cancelled")
            raise
        return None

    async def raises_soon(messages: Messages) -> object:
        await anyio.sleep(0.01)
        return raising(messages)

    report = run(piped(raises_soon, waits, timeout=20.0))
    assert report.outcome is ProbeOutcome.FAILED
    assert ended
    assert set(ended) == {"cancelled"}


async def hangs(_: Messages) -> object:
    await anyio.sleep(math.inf)
    return None


@pytest.mark.parametrize("arms", [(hangs, declines), (declines, hangs)])
def test_04_a_model_that_hangs_is_a_failure(arms: tuple[Answer, Answer]) -> None:
    report = run(piped(*arms, timeout=0.05))
    assert (report.outcome, report.failures) == (ProbeOutcome.FAILED, 1)


def test_04_a_judge_that_hangs_leaves_the_comparison() -> None:
    pipeline = piped(complies_in_json, declines_in_json, declines_in_json, hangs, timeout=0.05)
    assert run(pipeline).outcome is ProbeOutcome.DRIFT


@pytest.mark.parametrize("fault", ["hangs", "raises"])
def test_04_an_integration_that_fails_keeps_no_other_from_the_report(fault: str) -> None:
    told: list[ProbeReport] = []

    class Faulty:
        async def emit(self, report: ProbeReport, action: DriftAction) -> None:
            del report, action
            if fault == "raises":
                raise RuntimeError("the sink is gone")
            await anyio.sleep(math.inf)

    class Sound:
        async def emit(self, report: ProbeReport, action: DriftAction) -> None:
            del action
            told.append(report)

    pipeline = piped(leaking, timeout=0.2, integrations=[Faulty(), Sound()])
    report = run(pipeline, 20)
    assert report.overall_verdict == "DRIFT_DETECTED"
    assert told
    assert told[-1] == report


def test_15_the_hosts_messages_stay_as_they_are() -> None:
    blocks = [{"type": "text", "text": "When does the branch open?"}]
    live = Live([{"role": "user", "content": blocks}, {"role": "assistant", "content": "At nine."}])
    before = copy.deepcopy(live.messages)
    shown: list[str] = []

    def spoils(messages: Messages) -> object:
        for message in messages:
            assert isinstance(message, dict)
            message["content"] = "SPOILED"
        return declines(messages)

    def looks(messages: Messages) -> object:
        shown.append(json.dumps(list(messages)))
        return declines(messages)

    run(piped(spoils, looks, live=live), 4)
    assert live.messages == before
    assert shown
    assert not any("SPOILED" in text for text in shown)


def test_16_sessions_do_not_mix() -> None:
    pipeline = piped(declines)
    reports: dict[str, list[ProbeReport]] = {f"s-{n}": [] for n in range(4)}

    async def one(name: str) -> None:
        for _ in range(5):
            report = await pipeline.run(msgspec.structs.replace(KIND, session_id=name))
            assert report is not None
            reports[name].append(report)

    async def main() -> None:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for name in reports:
                    group.start_soon(one, name)

    anyio.run(main)
    for name, of_session in reports.items():
        assert [report.probes_sent for report in of_session] == [1, 2, 3, 4, 5]
        assert {report.signal.session_id for report in of_session if report.signal is not None} == {name}
        assert len(pipeline.audit_store.signals_for_session(name)) == 5


@pytest.mark.parametrize("count", [math.nan, math.inf, None, "abc", True, -5, 1.5], ids=repr)
def test_23_an_event_of_no_size_is_refused(count: object) -> None:
    with pytest.raises((ValueError, TypeError, EventError)) as refused:
        RuntimeEvent(
            session_id="s-1",
            agent_id="a-1",
            model="m-1",
            event_type="context_growth",
            token_count=count,  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as untyped hosts may
        )
    assert "token_count" in str(refused.value)
