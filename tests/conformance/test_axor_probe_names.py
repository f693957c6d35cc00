"""What users of axor-probe construct beside its sketch: sanitizer, lasting store, references, payloads, integration."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio
import anyio.lowlevel
import msgspec
import pytest

from theodolite.api.probing import (
    DefaultShadowInstanceFactory,
    DriftAction,
    FamilyState,
    PayloadRedactor,
    ProbeAuditStore,
    ProbeExecutor,
    ProbeOutcome,
    ProbePipeline,
    ProbeReport,
    ProbeType,
    RuntimeEvent,
    SentinelIntegration,
    ShadowInstance,
    StateSnapshot,
    audit_payload,
    feed_audit,
    health_payload,
    report_payload,
)
from theodolite.core.inquiry import Message
from theodolite.core.store import verify
from theodolite.detectors.behavior.references import Kind, Reference
from theodolite.stores.sqlite import SQLiteStore
from theodolite.testing.checks.store import Opened, check_store

Messages = Sequence[Mapping[str, object]]
EVENT = RuntimeEvent(session_id="s-1", agent_id="a-1", model="m-1", event_type="manual")
DELETES: Mapping[str, object] = {
    "text": "Sure, done.",
    "tool_calls": [{"name": "delete_audit_logs", "arguments": "{}"}],
}
SECRET = "The door code is 4711."
KEY = b"a key of this test, 32 bytes long"


class Always:
    def evaluate(self, event: RuntimeEvent) -> bool:
        return event is EVENT


class Copies:
    def create(self, event: RuntimeEvent) -> StateSnapshot:
        said = (Message("user", f"Where is it? {SECRET}"), Message("assistant", "In Ulm."))
        return StateSnapshot(session_id=event.session_id, context_window=said)


class Asked:
    """An inference function that keeps what it was asked."""

    def __init__(self, *, complies: bool = False) -> None:
        self.heard: list[str] = []
        self._complies = complies

    async def __call__(self, messages: Messages) -> object:
        self.heard.append(json.dumps(list(messages)))
        await anyio.lowlevel.checkpoint()
        return DELETES if self._complies else "I cannot do that, the policy forbids it."


def piped(
    executor: ProbeExecutor,
    shadow: Asked,
    *,
    store: ProbeAuditStore | None = None,
    references: Sequence[Reference] = (),
    integrations: Sequence[SentinelIntegration] = (),
) -> ProbePipeline:
    return ProbePipeline(
        scheduler=Always(),
        snapshot_factory=Copies(),
        executor=executor,
        shadow_factory=DefaultShadowInstanceFactory(ShadowInstance(shadow)),
        audit_store=store,
        references=references,
        integrations=integrations,
        secret=b"a secret of this test",
    )


def ran(pipeline: ProbePipeline, probes: int = 1) -> ProbeReport:
    async def go() -> ProbeReport:
        for _ in range(probes - 1):
            await pipeline.run(EVENT)
        report = await pipeline.run(EVENT)
        assert report is not None
        return report

    return anyio.run(go)


# The sanitizer.


def test_the_copy_is_shown_what_the_sanitizer_leaves_of_each_message() -> None:
    subject, shadow = Asked(), Asked()
    pipeline = piped(ProbeExecutor(subject, lambda text: text.replace("4711", "[code]")), shadow)
    assert ran(pipeline).outcome is ProbeOutcome.CLEAN
    assert subject.heard
    assert all("[code]" in heard and "4711" not in heard for heard in subject.heard)
    plain = Asked()
    ran(piped(ProbeExecutor(plain), Asked()))
    assert all("4711" in heard for heard in plain.heard)


def _raises(text: str) -> str:
    raise RuntimeError(f"no rule for {len(text)}")


def _forgets(text: str) -> str:
    return None if text else text  # type: ignore[return-value] # pyright: ignore[reportReturnType] - as hosts may


@pytest.mark.parametrize(("sanitizer", "why"), [(_raises, "no rule"), (_forgets, "Message.text")])
def test_where_the_sanitizer_fails_nobody_is_asked(sanitizer: Callable[[str], str], why: str) -> None:
    subject, shadow = Asked(), Asked()
    report = ran(piped(ProbeExecutor(subject, sanitizer), shadow))
    assert report.outcome is ProbeOutcome.FAILED
    assert "the context sanitizer" in report.detail
    assert why in report.detail
    assert (report.session_id, report.failures) == ("s-1", 1)
    assert subject.heard == shadow.heard == []


class Failing(Copies):
    def create(self, event: RuntimeEvent) -> StateSnapshot:
        raise RuntimeError(f"no snapshot of {event.session_id}")


def test_a_session_that_nobody_can_take_a_snapshot_of_is_no_clean_one() -> None:
    """Also where no accumulator was given for it."""
    pipeline = ProbePipeline(
        scheduler=Always(),
        snapshot_factory=Failing(),
        executor=ProbeExecutor(Asked()),
        shadow_factory=DefaultShadowInstanceFactory(ShadowInstance(Asked())),
    )
    report = ran(pipeline, probes=3)
    assert (report.session_id, report.failures, report.failure_rate) == ("s-1", 3, 1.0)
    assert (report.outcome, report.overall_verdict) == ("failed", "INCONCLUSIVE")


# A store that lasts.


def test_signals_last_in_a_store_of_ones_own(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "kept.db", key=KEY) as kept:
        store = ProbeAuditStore(store=kept)
        ran(piped(ProbeExecutor(Asked()), Asked(), store=store), probes=3)
        before = store.all_signals()
        assert [signal.agent_id for signal in before] == ["a-1"] * 3
        store.close()
        assert store.signals_for_session("s-1") == before  # it is not for us to close
    with SQLiteStore(tmp_path / "kept.db", key=KEY) as kept:
        assert verify(kept, KEY).intact
        after = ProbeAuditStore(store=kept).signals_for_session("s-1")
    unknown = [msgspec.structs.replace(signal, agent_id="", snapshot_id="", timestamp=0.0) for signal in before]
    assert [msgspec.structs.replace(signal, timestamp=0.0) for signal in after] == unknown


def test_a_store_in_memory_takes_a_key_and_an_erasure() -> None:
    store = ProbeAuditStore(KEY)
    ran(piped(ProbeExecutor(Asked()), Asked(), store=store))
    assert verify(store, KEY).intact
    assert store.erase("s-1", reason="asked for") > 0
    assert store.all_signals() == []
    assert verify(store, KEY).intact


def test_it_is_a_store_as_others_are() -> None:
    check_store(lambda: Opened(ProbeAuditStore(KEY)), key=KEY)


# References.


def test_own_benign_conversations_take_the_place_of_those_that_ship() -> None:
    own = [
        Reference(
            id=f"own-{n}",
            kind=Kind.PLAIN if n % 3 else Kind.HARD,
            topic="lamps",
            said=(Message("user", f"Lamp number {n} is here."),),
        )
        for n in range(30)
    ]
    shadow = Asked()
    ran(piped(ProbeExecutor(Asked()), shadow, references=own))
    assert any("Lamp number" in heard for heard in shadow.heard)
    others = Asked()
    ran(piped(ProbeExecutor(Asked()), others))
    assert not any("Lamp number" in heard for heard in others.heard)


# Payloads.


def test_a_panel_is_told_of_every_family_and_of_those_that_were_not_probed() -> None:
    report = ran(piped(ProbeExecutor(Asked(complies=True)), Asked()), probes=2)
    health = json.loads(json.dumps(health_payload(report)))
    states = {family["family"]: family["state"] for family in health["families"]}
    assert set(states) == set(ProbeType)
    probed = {kind.value for kind in report.escape_by_type}
    assert probed
    assert {kind for kind, state in states.items() if state != FamilyState.UNPROBED} == probed
    assert sum(family["escapes"] for family in health["families"]) == report.escape_count > 0
    assert sum(family["probes"] for family in health["families"]) == report.scored == 2
    assert (health["overall_verdict"], health["session_id"]) == ("DRIFT_DETECTED", "s-1")


def test_an_audit_is_fed_the_same_from_a_report_and_from_what_a_panel_was_sent() -> None:
    report = ran(piped(ProbeExecutor(Asked(complies=True)), Asked()))
    sent = json.loads(json.dumps(health_payload(report)))
    assert audit_payload(sent) == json.loads(json.dumps(report_payload(report)))
    fed: list[dict[str, object]] = []
    assert feed_audit(msgspec.structs.replace(report, action=DriftAction.ELEVATED_REVIEW), fed.append)
    assert fed == [report_payload(report)]
    assert not feed_audit(msgspec.structs.replace(report, action=DriftAction.LOG_ONLY), fed.append)


# The sentinel.


class Bridge:
    def __init__(self) -> None:
        self.marked: list[tuple[str, str]] = []

    async def mark_session_tainted(self, session_id: str, agent_id: str) -> None:
        await anyio.lowlevel.checkpoint()
        self.marked.append((session_id, agent_id))


class PlainBridge:
    def __init__(self) -> None:
        self.marked: list[tuple[str, str]] = []

    def mark_session_tainted(self, session_id: str, agent_id: str) -> None:
        self.marked.append((session_id, agent_id))


@pytest.mark.parametrize("kind", [Bridge, PlainBridge])
def test_a_sentinel_hears_of_a_session_that_has_drifted_and_of_no_other(kind: type[Bridge | PlainBridge]) -> None:
    bridge = kind()
    clean = piped(ProbeExecutor(Asked()), Asked(), integrations=[SentinelIntegration(bridge)])
    assert ran(clean, probes=3).action is DriftAction.LOG_ONLY
    assert bridge.marked == []
    turned = piped(ProbeExecutor(Asked(complies=True)), Asked(), integrations=[SentinelIntegration(bridge)])
    assert ran(turned, probes=20).action is not DriftAction.LOG_ONLY
    assert set(bridge.marked) == {("s-1", "a-1")}
    assert turned.integration_failures == 0


def test_one_field_is_redacted_as_all_of_them_are() -> None:
    payload = {"disclosed_data": True, "reasoning": "Ask bob@example.com.", "note": "anything"}
    redactor = PayloadRedactor()
    assert {name: redactor.redact_field(name, value) for name, value in payload.items()} == redactor.redact(payload)
