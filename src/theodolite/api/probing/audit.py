"""axor-probe's redactor and audit store: ours, under its names."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from theodolite.api.probing.signals import DriftSignal, drift_signal, session_status
from theodolite.core.policy import Decision
from theodolite.core.reading import Reading
from theodolite.core.store import Kind, Record
from theodolite.detectors.behavior.detector import SESSION
from theodolite.redactors.rules import RuleRedactor
from theodolite.stores.memory import MemoryStore

__all__ = ("PayloadRedactor", "ProbeAuditStore")


class PayloadRedactor(RuleRedactor):
    """Scrubs free text, lets categorical fields pass that are in their vocabulary, and no other field.

    >>> PayloadRedactor().field("note", "anything")
    '[REDACTED:UNKNOWN_FIELD]'
    """


class _Kept(Struct):
    decision: Decision


class ProbeAuditStore(MemoryStore):
    """Keeps what probes came to, redacted, in a chain of hashes, for as long as its object lives.

    For what is to last, give a Monitor one of `theodolite.stores`. State: every record. A query is linear in the
    records that it is about.
    """

    def all_signals(self) -> list[DriftSignal]:
        """Return the signals of all sessions, session by session."""
        return _signals(self.read())

    def signals_for_session(self, session_id: str) -> list[DriftSignal]:
        """Return the signals of one session, in their order."""
        return _signals(self.read(session=session_id))


def _signals(records: Iterable[Record]) -> list[DriftSignal]:
    found = [_signal(record) for record in records if record.kind is Kind.DECISION]
    return [signal for signal in found if signal is not None]


def _signal(record: Record) -> DriftSignal | None:
    if record.payload is None:
        return None
    decision = msgspec.json.decode(record.payload, type=_Kept).decision
    longitudinal = [one.said.fact("longitudinal") for one in decision.signals if isinstance(one.said, Reading)]
    told = [value for value in longitudinal if isinstance(value, float)]
    return drift_signal(
        decision,
        agent="",
        snapshot_id="",
        at=record.at,
        longitudinal=told[0] if told else 0.0,
        status=session_status(decision.signals, SESSION),
    )
