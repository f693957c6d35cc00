"""The port of second opinions."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from theodolite.core.detector import Asker
from theodolite.core.event import AnyEvent
from theodolite.core.inquiry import Exchange
from theodolite.core.intent import NormalizedIntent
from theodolite.core.reading import Signal

__all__ = ("Case", "Verifier")


class Case(Struct, frozen=True, kw_only=True, gc=False):
    """What a verifier is asked to look at: an ambiguous signal and what it rests on."""

    signal: Signal
    exchanges: tuple[Exchange, ...] = ()
    events: tuple[AnyEvent, ...] = ()
    intents: tuple[NormalizedIntent, ...] = ()


class Verifier(Asker, Protocol):
    """An asker whose subject is a Case. It is asked only about ambiguous signals of its codes."""

    @property
    def codes(self) -> frozenset[str]:
        """Return the codes whose ambiguity it may settle."""
        ...
