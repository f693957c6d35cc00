"""axor-probe's redactor and audit store: ours, under its names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec import Struct

from theodolite.api.probing.given import able, listed_of, of_kind
from theodolite.api.probing.signals import DriftSignal, drift_signal, session_status
from theodolite.core.arguments import is_mapping
from theodolite.core.errors import ConfigError
from theodolite.core.policy import Decision
from theodolite.core.reading import Reading
from theodolite.core.redaction import Profile
from theodolite.core.store import Entry, Head, Kind, Record, Registry, Store
from theodolite.core.text import brief
from theodolite.detectors.behavior.detector import SESSION
from theodolite.redactors.rules import FREE_TEXT, VOCABULARY, Pseudonyms, RuleRedactor
from theodolite.stores.memory import MemoryStore

__all__ = ("PayloadRedactor", "ProbeAuditStore")


# Bytes of a key that nobody can guess: those of the hash that it keys, RFC 2104, section 3.
_KEY = 32
# Snapshots whose names are remembered, over all sessions. Our choice: ten of each of 10,000 sessions, some 20 MB.
_NOTED = 100_000


class PayloadRedactor(RuleRedactor):
    """Scrubs free text, lets categorical fields pass that are in their vocabulary, and no other field.

    Raises ConfigError for a vocabulary that is no mapping of names to lists of words, for free text that is no list of
    names, for another profile, and for pseudonyms that are none.

    >>> PayloadRedactor().redact({"disclosed_data": True, "reasoning": "Ask bob@example.com.", "note": "anything"})
    {'disclosed_data': True, 'reasoning': 'Ask [REDACTED:EMAIL].', 'note': '[REDACTED:UNKNOWN_FIELD]'}
    """

    def __init__(
        self,
        vocabulary: Mapping[str, Collection[str]] = VOCABULARY,
        profile: Profile | str = Profile.STANDARD,
        *,
        free_text: Collection[str] = FREE_TEXT,
        pseudonyms: Pseudonyms | None = None,
    ) -> None:
        given: object = vocabulary
        if not is_mapping(given):
            raise ConfigError(f"vocabulary is a dict of the words of each field, not {brief(vocabulary)}")
        words = {
            of_kind("a name in the vocabulary", name, str): listed_of(f"the vocabulary of {brief(name)}", one, str)
            for name, one in given.items()
        }
        super().__init__(
            words,
            _profile(profile),
            free_text=listed_of("free_text", free_text, str),
            pseudonyms=None if pseudonyms is None else of_kind("pseudonyms", pseudonyms, Pseudonyms),
        )

    def redact(self, payload: Mapping[str, object]) -> dict[str, object]:
        """Return the fields of an answer as they may be kept. True and false pass in fields that have them alone.

        Raises ConfigError for what is no mapping of names.
        """
        given: object = payload
        if not is_mapping(given) or not all(isinstance(name, str) for name in given):
            raise ConfigError(f"the payload is a dict of the fields of an answer, not {type(given).__name__}")
        return {name: self.redact_field(name, value) for name, value in payload.items()}

    def redact_field(self, name: str, value: object) -> object:
        """Return one field as it may be kept."""
        if isinstance(value, bool) and self.field(name, str(value).lower()) in {"true", "false"}:
            return value
        return self.field(name, value if isinstance(value, str) else "")


class _Kept(Struct):
    decision: Decision


@dataclass(slots=True)
class _Noted:
    """Whose session it is, and by the event that asked for a probe the snapshot that it was asked of."""

    agent: str = ""
    snapshots: OrderedDict[int, str] = field(default_factory=OrderedDict)


class ProbeAuditStore:
    """Keeps what probes came to, redacted, in a chain of hashes: in `store`, or else for as long as its object lives.

    A store such as SQLiteStore of `theodolite.stores` lasts; whoever opened it closes it, and gives it its key. Whose a
    session is, and which snapshot a probe was asked of, is known here for the last 100,000 probes of sessions that were
    not forgotten; the signals of others, and of an earlier process, have neither. State: that, and every record where
    no store was given. A query is linear in the records that it is about. Raises ConfigError for a key and a store, and
    for what is neither; a key has at least 32 bytes.
    """

    def __init__(self, key: bytes | None = None, *, store: Store | None = None) -> None:
        if key is not None and (store is not None or len(of_kind("key", key, bytes)) < _KEY):
            raise ConfigError("key: give at least 32 random bytes, or none; a store of your own has its own")
        if store is not None:
            able("store", store, "append", "read", "head", "heads", "registry", "flush", "ready", "erase")
        self._store: Store = MemoryStore(key) if store is None else store
        self._noted: OrderedDict[str, _Noted] = OrderedDict()
        self._snapshots = 0

    def all_signals(self) -> list[DriftSignal]:
        """Return the signals of all sessions, session by session."""
        return self._signals(self.read())

    def signals_for_session(self, session_id: str) -> list[DriftSignal]:
        """Return the signals of one session, in their order. Raises ConfigError for an id that is no text."""
        of_kind("session_id", session_id, str)
        return self._signals(self.read(session=session_id))

    def note(self, session_id: str, agent_id: str, about: int, snapshot_id: str) -> None:
        """Keep whose session it is, and which snapshot the probe was asked of that event `about` asked for.

        Of too many those of the session that was noted longest ago go first.
        """
        noted = self._noted.setdefault(session_id, _Noted())
        self._noted.move_to_end(session_id)
        noted.agent = agent_id
        self._snapshots += about not in noted.snapshots
        noted.snapshots[about] = snapshot_id
        while self._snapshots > _NOTED:
            oldest = next(iter(self._noted))
            if oldest == session_id:
                noted.snapshots.popitem(last=False)
                self._snapshots -= 1
            else:
                self.forget(oldest)

    def forget(self, session_id: str) -> None:
        """Forget the agent and the snapshots of a session that is over: its records stay. Unknown ids are nothing.

        Raises ConfigError for an id that is no text.
        """
        of_kind("session_id", session_id, str)
        noted = self._noted.pop(session_id, None)
        self._snapshots -= 0 if noted is None else len(noted.snapshots)

    def append(self, entry: Entry, *, durable: bool = False) -> Record:
        """Seal and keep an entry. Raises StoreError."""
        return self._store.append(entry, durable=durable)

    def read(
        self,
        *,
        session: str | None = None,
        since: float | None = None,
        until: float | None = None,
        code: str | None = None,
    ) -> Iterator[Record]:
        """Yield the records that fit, by session and n. Raises StoreError."""
        return self._store.read(session=session, since=since, until=until, code=code)

    def head(self, session: str) -> Head | None:
        """Return the head of a session, or None when nothing was kept of it."""
        return self._store.head(session)

    def heads(self) -> Iterator[Head]:
        """Yield the heads of all sessions."""
        return self._store.heads()

    def registry(self) -> Registry | None:
        """Return the registry of sessions."""
        return self._store.registry()

    def flush(self) -> None:
        """Return when all that was appended is durable. Raises StoreError."""
        self._store.flush()

    def ready(self) -> None:
        """Raise the StoreError that the newest attempt to write met."""
        self._store.ready()

    def erase(self, session: str, *, reason: str = "") -> int:
        """Take away the payloads of a session and return how many. Raises StoreError."""
        return self._store.erase(session, reason=reason)

    def close(self) -> None:
        """Flush. A store that was given stays open."""
        self._store.flush()

    def _signals(self, records: Iterable[Record]) -> list[DriftSignal]:
        found = [self._signal(record) for record in records if record.kind is Kind.DECISION]
        return [signal for signal in found if signal is not None]

    def _signal(self, record: Record) -> DriftSignal | None:
        decision = _decision(record)
        if decision is None:
            return None
        noted = self._noted.get(record.session, _Noted())
        told = [one.said.fact("longitudinal") for one in decision.signals if isinstance(one.said, Reading)]
        longitudinal = [value for value in told if isinstance(value, float)]
        return drift_signal(
            decision,
            agent=noted.agent,
            snapshot_id=noted.snapshots.get(decision.about, ""),
            at=record.at,
            longitudinal=longitudinal[0] if longitudinal else 0.0,
            status=session_status(decision.signals, SESSION),
        )


def _profile(given: object) -> Profile:
    if isinstance(given, str) and given in set(Profile):
        return Profile(given)
    raise ConfigError(f"profile is one of {', '.join(Profile)}, not {brief(given)}")


def _decision(record: Record) -> Decision | None:
    return None if record.payload is None else msgspec.json.decode(record.payload, type=_Kept).decision
