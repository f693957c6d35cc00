"""The recent past of a session, kept once and read by every detector."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, Raw, Struct

from theodolite.core.event import (
    AnyEvent,
    GoalStated,
    MessageObserved,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
    encode_event,
)
from theodolite.core.inquiry import Message
from theodolite.core.intent import Call

__all__ = ("Window",)


class Window(Struct, kw_only=True):
    """The last events of a session, bounded in number and in characters. Session writes it; detectors only read.

    `call` is what was folded about the call under judgment, while a ToolCallProposed is being judged; `goal` says
    whether a goal is known. Adding an event is O(1) amortized; the newest event is always kept, whatever its size.

    `size` and `characters` bound memory: 64 events are eight rounds of eight events, the window of zeph's ShadowMemory;
    262,144 characters are about the largest context that models offered in 2025 take.
    """

    size: int = 64
    characters: int = 262_144
    events: list[AnyEvent] = []
    first: int = 0
    held: int = 0
    call: Call | None = None
    goal: bool = False

    def push(self, event: AnyEvent) -> None:
        """Add an event that follows the last one."""
        self.events.append(event)
        self.held += weight(event)
        while len(self.events) > 1 and (len(self.events) > 2 * self.size or self.held > self.characters):
            self._evict(max(1, len(self.events) - self.size) if len(self.events) > 2 * self.size else 1)

    def _evict(self, count: int) -> None:
        self.held -= sum(map(weight, self.events[:count]))
        del self.events[:count]
        self.first += count

    def find(self, seq: int) -> AnyEvent | None:
        """Return the event of that seq, or None when it is no longer (or not yet) held."""
        place = seq - self.first
        return self.events[place] if 0 <= place < len(self.events) else None

    def recent(self) -> Iterator[AnyEvent]:
        """Yield at most `size` events, oldest first."""
        yield from self.events[-self.size :]

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
    """Return the characters of text that an event holds."""
    if isinstance(event, MessageObserved | ToolResultObserved):
        return len(event.text) if event.text is not UNSET else 0
    if isinstance(event, ToolCallProposed):
        return len(memoryview(event.arguments)) if isinstance(event.arguments, Raw) else 0
    if isinstance(event, ToolsDeclared):
        return len(encode_event(event))
    return len(event.text) if isinstance(event, GoalStated) else 0
