"""axor-probe's redactor and audit store: ours, under its names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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

    >>> PayloadRedactor().redact({"disclosed_data": True, "reasoning": "Ask bob@example.com.", "note": "anything"})
    {'disclosed_data': True, 'reasoning': 'Ask [REDACTED:EMAIL].', 'note': '[REDACTED:UNKNOWN_FIELD]'}
    """

    def redact(self, payload: Mapping[str, object]) -> dict[str, object]:
        """Return the fields of an answer as they may be kept. True and false pass in fields that have them alone."""
        return {name: self._passed(name, value) for name, value in payload.items()}

    def _passed(self, name: str, value: object) -> object:
        if isinstance(value, bool) and self.field(name, str(value).lower()) in {"true", "false"}:
            return value
        return self.field(name, value if isinstance(value, str) else "")


class _Kept(Struct):
    decision: Decision


class ProbeAuditStore(MemoryStore):
    """Keeps what probes came to, redacted, in a chain of hashes, for as long as its object lives.

    For what is to last, give a Monitor one of `theodolite.stores`. State: every record. A query is linear in the
    records that it is about.
    """

    def __init__(self, key: bytes | None = None) -> None:
        super().__init__(key)
        self._agents: dict[str, str] = {}
        self._snapshots: dict[tuple[str, int], str] = {}

    def all_signals(self) -> list[DriftSignal]:
        """Return the signals of all sessions, session by session."""
        return self._signals(self.read())

    def signals_for_session(self, session_id: str) -> list[DriftSignal]:
        """Return the signals of one session, in their order."""
        return self._signals(self.read(session=session_id))

    def note(self, session_id: str, agent_id: str, about: int, snapshot_id: str) -> None:
        """Keep whose session it is, and which snapshot the probe was asked of that event `about` asked for."""
        self._agents[session_id] = agent_id
        self._snapshots[session_id, about] = snapshot_id

    def _signals(self, records: Iterable[Record]) -> list[DriftSignal]:
        found = [self._signal(record) for record in records if record.kind is Kind.DECISION]
        return [signal for signal in found if signal is not None]

    def _signal(self, record: Record) -> DriftSignal | None:
        decision = _decision(record)
        if decision is None:
            return None
        told = [one.said.fact("longitudinal") for one in decision.signals if isinstance(one.said, Reading)]
        longitudinal = [value for value in told if isinstance(value, float)]
        return drift_signal(
            decision,
            agent=self._agents.get(record.session, ""),
            snapshot_id=self._snapshots.get((record.session, decision.about), ""),
            at=record.at,
            longitudinal=longitudinal[0] if longitudinal else 0.0,
            status=session_status(decision.signals, SESSION),
        )


def _decision(record: Record) -> Decision | None:
    return None if record.payload is None else msgspec.json.decode(record.payload, type=_Kept).decision
