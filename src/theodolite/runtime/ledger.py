"""What of a session goes to the store, and when."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from msgspec import Raw, Struct

from theodolite.core.coverage import Coverage
from theodolite.core.event import AnyEvent, Cleared
from theodolite.core.policy import Decision
from theodolite.core.reading import Reading
from theodolite.core.redaction import redact_event
from theodolite.core.store import Entry, Kind
from theodolite.core.window import Window
from theodolite.runtime.fleet import Fleet

__all__ = ("KeptCoverage", "KeptDecision", "Ledger")

_ENCODER = msgspec.json.Encoder()


class KeptDecision(Struct, frozen=True, kw_only=True, gc=False):
    """The payload of a decision record. `quiet` counts the decisions before it on which nobody spoke."""

    decision: Decision
    quiet: int = 0


class KeptCoverage(Struct, frozen=True, kw_only=True, gc=False):
    """The payload of the record that closes a session."""

    coverage: Coverage
    quiet: int = 0


class Ledger(Struct, kw_only=True):
    """Keeps each decision on which somebody spoke or that refuses, and each event that an alarm cites, once.

    Quiet decisions are counted. A refusal is durable before `keep` returns; the rest may be written behind.
    """

    quiet: int = 0
    cited: list[int] = []

    def keep(self, decision: Decision, event: AnyEvent, window: Window, fleet: Fleet, secrets: Collection[str]) -> None:
        """Keep a decision and what it cites. Raises StoreError, and then counts nothing as kept."""
        if decision.allowed and not decision.signals and not isinstance(event, Cleared):
            self.quiet += 1
            return
        store = fleet.store
        if store is None:
            return
        alarmed = [signal for signal in decision.signals if signal.alarmed]
        for signal in alarmed:
            if isinstance(signal.said, Reading):
                for evidence in signal.said.evidence:
                    for seq in evidence.seqs:
                        self._cite(seq, window, fleet, secrets)
        if isinstance(event, Cleared):
            self._cite(event.seq, window, fleet, secrets)
        codes = dict.fromkeys(signal.code for signal in decision.signals if signal.alarmed or not _read(signal.said))
        entry = Entry(
            session=decision.session,
            at=event.at,
            kind=Kind.DECISION,
            payload=Raw(_ENCODER.encode(KeptDecision(decision=decision, quiet=self.quiet))),
            codes=tuple(codes),
        )
        store.append(entry, durable=not decision.allowed)
        self.quiet = 0

    def _cite(self, seq: int, window: Window, fleet: Fleet, secrets: Collection[str]) -> None:
        event = window.find(seq)
        if event is None or seq in self.cited or fleet.store is None:
            return
        payload = redact_event(event, fleet.redactor, secrets, around=window.events)
        fleet.store.append(Entry(session=event.session, at=event.at, kind=Kind.EVENT, payload=payload))
        self.cited = [kept for kept in self.cited if kept >= window.first]
        self.cited.append(seq)

    def close(self, session: str, coverage: Coverage, fleet: Fleet) -> None:
        """Keep what the session showed. Raises StoreError."""
        if fleet.store is not None:
            payload = Raw(_ENCODER.encode(KeptCoverage(coverage=coverage, quiet=self.quiet)))
            fleet.store.append(Entry(session=session, at=fleet.clock(), kind=Kind.COVERAGE, payload=payload))


def _read(said: object) -> bool:
    return isinstance(said, Reading)
