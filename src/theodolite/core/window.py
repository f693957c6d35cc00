"""The recent past of a session, kept once and read by every detector."""

from __future__ import annotations

import hmac
from collections.abc import Iterator

from msgspec import UNSET, Struct

from theodolite.core.event import AnyEvent, MessageObserved, ToolResultObserved, encode_event
from theodolite.core.inquiry import Message
from theodolite.core.intent import Call, NormalizedIntent
from theodolite.core.summary import CanonicalizedContextSummary

__all__ = ("INTENTS", "QUOTE", "Window", "weight")

QUOTE = 2_000
"""Characters of a passage that evidence quotes: it is to be read by a person. A sentence that is longer is none."""

INTENTS = 10
"""Calls whose intents a Window holds: the window of axor-classifier-simple."""


class Window(Struct, kw_only=True):
    """The last events of a session, bounded in number and in bytes. Session writes it; detectors only read.

    `secret` is the session's own: what `draw` gives from it, nobody outside can foresee. No `repr` shows it.
    `call` is what was folded about the call under judgment, while a ToolCallProposed is being judged; `goal` says
    whether a goal is known; `intents` are those of the last ten calls, this one included; `summary` is the shape of the
    session, where a detector needs it. Adding an event is O(1) amortized; the newest event is always kept, whatever its
    size.

    `size` and `room` bound memory. 64 events are eight rounds of eight events, the window of zeph's ShadowMemory; up to
    twice as many are held. 262,144 bytes of JSON are the text of about the largest context that models offered in 2025.
    Over that the oldest events go, but for those of this turn and the one before, which a call is likely to rest on:
    whoever pads a tool result shall not push it out of the evidence. They go beyond `most` bytes only.
    Raises ValueError when `size` is not positive.
    """

    size: int = 64
    room: int = 262_144
    most: int = 33_554_432
    events: list[AnyEvent] = []
    weights: list[int] = []
    first: int = 0
    held: int = 0
    call: Call | None = None
    goal: bool = False
    intents: tuple[NormalizedIntent, ...] = ()
    summary: CanonicalizedContextSummary | None = None
    secret: bytes = b""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"a window of {self.size} events holds nothing: give a size of at least 1")

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("first", self.first), ("events", len(self.events)), ("held", self.held)]

    def __repr__(self) -> str:
        return f"Window({', '.join(f'{name}={value}' for name, value in self.__rich_repr__())})"

    @property
    def end(self) -> int:
        """The seq of the event that comes next."""
        return self.first + len(self.events)

    def push(self, event: AnyEvent) -> None:
        """Add an event that follows the last one."""
        heavy = weight(event)
        self.events.append(event)
        self.weights.append(heavy)
        self.held += heavy
        if len(self.events) > 2 * self.size:
            self._evict(len(self.events) - self.size)
        while len(self.events) > 1 and self.held > self.room and self._may_go(event.turn):
            self._evict(1)

    def _may_go(self, turn: int) -> bool:
        return self.events[0].turn < turn - 1 or self.held > self.most

    def _evict(self, count: int) -> None:
        self.held -= sum(self.weights[:count])
        del self.events[:count], self.weights[:count]
        self.first += count

    def mend(self) -> None:
        """Make the counts fit the events again, where `push` was interrupted halfway. Linear in what is held."""
        self.first = self.events[0].seq if self.events else self.first
        self.weights = [weight(event) for event in self.events]
        self.held = sum(self.weights)

    def find(self, seq: int) -> AnyEvent | None:
        """Return the event of that seq, or None when it is no longer (or not yet) held."""
        place = seq - self.first
        return self.events[place] if 0 <= place < len(self.events) else None

    def quoted(self, seq: int | None, start: int, end: int) -> str:
        """Return a passage of what was read or said, at most 2,000 characters; "" where it is no longer held."""
        source = None if seq is None else self.find(seq)
        if not isinstance(source, ToolResultObserved | MessageObserved) or source.text is UNSET:
            return ""
        return str(source.text)[start:end][:QUOTE]

    def recent(self) -> Iterator[AnyEvent]:
        """Yield at most `size` events, oldest first."""
        yield from self.events[-self.size :]

    def draw(self, label: str) -> bytes:
        """Return 32 bytes that are random to who does not know the secret, the same for the same label: RFC 2104."""
        return hmac.digest(self.secret, label.encode(), "sha256")

    def messages(self, count: int) -> tuple[Message, ...]:
        """Return the last `count` messages and tool results, oldest first, as a model is shown them."""
        found: list[Message] = []
        for event in self.recent():
            if isinstance(event, MessageObserved) and event.text is not UNSET:
                found.append(Message(event.role, str(event.text)))
            elif isinstance(event, ToolResultObserved) and event.text is not UNSET:
                found.append(Message("tool", str(event.text)))
        return tuple(found[-count:]) if count > 0 else ()


def weight(event: AnyEvent) -> int:
    """Return the bytes of an event's JSON: whatever field a hostile session puts its text into, it counts."""
    return len(encode_event(event))
