"""The port to a host framework."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from theodolite.core.event import Channel
from theodolite.core.policy import Decision

__all__ = ("Claims", "Integration")


class Claims(Struct, frozen=True, kw_only=True, gc=False):
    """What an integration says of itself: the channels it sees, and what it can stop.

    What it cannot show is unobservable, never clean.
    """

    sees: frozenset[Channel]
    stops_calls: bool
    streaming: bool = False
    sub_agents: bool = False
    hosted_tools: bool = False
    fails_open: bool = True


class Integration(Protocol):
    """Maps a host's objects to events, and decisions to the host's own idiom.

    Laws: a channel that it claims to see yields an event with the planted token; a decision that refuses raises
    CallBlocked, or does what the host does instead, and one that allows does nothing; host objects are copied, never
    held.
    """

    def coverage(self) -> Claims:
        """Return what it sees and can stop."""
        ...

    def enforce(self, decision: Decision) -> None:
        """Carry out a decision. Raises CallBlocked where the host has no idiom of its own."""
        ...

    def plant(self, channel: Channel, token: str) -> None:
        """Put a token on one channel of the host and on no other. Raises HarnessError where it cannot."""
        ...
