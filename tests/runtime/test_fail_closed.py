"""An operator who would rather have no call than one without evidence: no call is allowed while the store fails."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec
import pytest

from theodolite.core.errors import StoreError
from theodolite.core.event import ProbeRequested, ToolCallProposed, TurnEnded
from theodolite.core.policy import Decision, Policy
from theodolite.core.reading import Failure
from theodolite.core.store import Kind, verify
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.ledger import KeptDecision
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.session import Session
from theodolite.stores.memory import MemoryStore
from theodolite.stores.sqlite import SQLiteStore
from theodolite.testing.fakes import FullStore, QuietDetector, ScriptedDetector

CALL = ToolCallProposed(tool="send_money", arguments={})
CLOSED = Policy(fail_closed=True)
FULL = "the store is full: give it more room"


class Failing(MemoryStore):
    """Writes behind, and its last write failed: what is appended is taken all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Exception | None = None
        self.asked = 0

    def ready(self) -> None:
        self.asked += 1
        if self.fault is not None:
            raise self.fault


class Silent(MemoryStore):
    """A store of somebody who knows of no such method."""

    ready = None  # type: ignore[assignment] # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride] - as if it were not there


def opened(store: MemoryStore | FullStore | SQLiteStore, policy: Policy = CLOSED) -> Session:
    return Monitor([QuietDetector()], store=store, policy=policy, redactor=RuleRedactor()).session("s-1")


def failures(decision: Decision) -> list[tuple[str, str]]:
    said = [signal.said for signal in decision.signals]
    return [(failure.detector, failure.detail) for failure in said if isinstance(failure, Failure)]


def test_a_quiet_call_is_refused_while_the_last_write_failed_and_the_refusal_is_on_record() -> None:
    store = Failing()
    session = opened(store)
    assert session.observe(CALL).allowed
    store.fault = StoreError("the disk is full: free some space")
    refused = session.observe(CALL)
    assert (refused.allowed, failures(refused)) == (False, [("store", "the disk is full: free some space")])
    store.fault = None
    assert session.observe(CALL).allowed
    [record] = store.read()
    assert record.payload is not None
    assert msgspec.json.decode(record.payload, type=KeptDecision).decision == refused
    assert session.coverage().failures == {"store": 1}


def test_only_calls_are_held_to_it_and_only_where_the_operator_says_so() -> None:
    store = Failing()
    store.fault = StoreError("the disk is full")
    session = opened(store)
    assert session.observe(TurnEnded()).signals == ()
    assert session.take(ProbeRequested(reason="r")).signals == ()
    assert store.asked == 0
    relaxed = opened(store, Policy())
    assert relaxed.observe(CALL).allowed
    assert store.asked == 0


def test_a_store_whose_answer_is_an_exception_of_another_kind_is_not_ready_either() -> None:
    store = Failing()
    store.fault = LookupError("a bug")
    assert failures(opened(store).observe(CALL)) == [("store", "LookupError: a bug")]


def test_a_store_without_an_answer_is_taken_at_its_word_as_before() -> None:
    assert opened(Silent()).observe(CALL).allowed


def test_without_a_store_there_is_nothing_to_wait_for() -> None:
    assert Monitor(policy=CLOSED).session("s-1").observe(CALL).allowed


def test_a_full_store_refuses_the_quiet_call_too_and_says_so_twice() -> None:
    store = FullStore(MemoryStore(), room=0)
    session = opened(store)
    refused = session.observe(CALL)
    assert (refused.allowed, failures(refused)) == (False, [("store", FULL), ("store", FULL)])
    store.room = 10
    assert session.observe(CALL).allowed


def test_a_file_that_cannot_be_written_refuses_every_call_until_it_can_be_written_again(tmp_path: Path) -> None:
    """Another process holds the file: what was allowed before waits in memory, and is on the disk in the end."""
    path = tmp_path / "evidence.db"
    with SQLiteStore(path, patience=0.02, linger=0.0) as store:
        alarming = ScriptedDetector(script={ToolCallProposed: 0.3, TurnEnded: 0.3})
        session = Monitor([alarming], store=store, policy=CLOSED, redactor=RuleRedactor()).session("s-1")
        assert session.observe(CALL).allowed
        store.flush()
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        try:
            session.observe(TurnEnded())
            with pytest.raises(StoreError):
                store.flush()
            refused = session.observe(CALL)
            assert (refused.allowed, {owner for owner, _ in failures(refused)}) == (False, {"store"})
            assert not session.observe(CALL).allowed
        finally:
            blocker.execute("ROLLBACK")
            blocker.close()
        store.flush()
        assert session.observe(CALL).allowed
        session.close()
        kept = [record for record in store.read() if record.kind is Kind.DECISION and record.payload is not None]
        decisions = [msgspec.json.decode(bytes(record.payload or b""), type=KeptDecision).decision for record in kept]
        assert [decision.allowed for decision in decisions] == [True, True, False, False, True]
        assert verify(store).intact
