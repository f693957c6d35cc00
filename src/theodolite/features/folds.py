"""All folds of one session, run once per event; Session hands what they give to the Window."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice

from msgspec import UNSET, Struct

from theodolite.core.arguments import leaves
from theodolite.core.detector import Feature
from theodolite.core.event import (
    Event,
    GoalStated,
    MessageObserved,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
)
from theodolite.core.intent import Call, Effect
from theodolite.features.index import WordIndex
from theodolite.features.intents import IntentFold
from theodolite.features.margin import explain
from theodolite.features.provenance import origins

__all__ = ("Folds",)

# What is read of a call: the margin reads 64 values, names first; a detector that wants the text of a call reads its
# beginning, as ShadowMemory does with 100 characters.
_LEAVES = 4_096
_FEW = 16
_BEGINNING = 256


class Folds(Struct, kw_only=True):
    """The folded past of a session. Only the folds that a detector needs are kept; the intent always is.

    State of one session: saved and restored with it. Costs what its folds cost: linear in the text of the event.
    """

    intents: IntentFold
    index: WordIndex | None = None
    goal: bool = False

    @classmethod
    def begin(cls, needs: Collection[Feature]) -> Folds:
        """Return the folds that these needs ask for, with nothing in them."""
        indexed = Feature.PROVENANCE in needs or Feature.MARGIN in needs
        return cls(intents=IntentFold(), index=WordIndex() if indexed else None)

    def with_needs(self, needs: Collection[Feature]) -> Folds:
        """Return these folds, or empty ones in the place of those that are needed and were not kept."""
        index = Folds.begin(needs).index
        # Not `or`: an index is as false as its length, which is 0 while only the goal is known.
        kept = index if index is None or self.index is None else self.index
        return Folds(intents=self.intents, index=kept, goal=self.goal)

    def fold(self, event: Event, operator: Mapping[str, Effect]) -> Call | None:
        """Take one event; return what is known about the call, if it is one."""
        if isinstance(event, ToolCallProposed):
            return self._call(event, operator)
        if isinstance(event, ToolResultObserved):
            if event.text is not UNSET:
                self._returned(event.seq, str(event.text), trusted=event.source.trusted)
        elif isinstance(event, GoalStated):
            if event.source.trusted:
                self.goal = True
                self._said(event.text)
        elif isinstance(event, MessageObserved):
            if event.role == "user" and event.text is not UNSET:
                self._returned(event.seq, str(event.text), trusted=event.source.trusted)
        elif isinstance(event, ToolsDeclared):
            self.intents.declare(event.tools)
        return None

    def _said(self, text: str) -> None:
        if self.index is not None:
            self.index.trust(text)

    def _returned(self, seq: int, text: str, *, trusted: bool) -> None:
        if trusted:
            self._said(text)
            return
        self.intents.saw_outside()
        if self.index is not None:
            self.index.distrust(seq, text)

    def _call(self, event: ToolCallProposed, operator: Mapping[str, Effect]) -> Call:
        intent = self.intents.of(event, operator)
        given = event.values()
        values = [] if given is UNSET else list(islice(leaves(given), _LEAVES if self.index is not None else _FEW))
        text = " ".join([event.tool, *[text[:_BEGINNING] for _, text in values[:_FEW]]])[:_BEGINNING]
        if self.index is None:
            return Call(seq=event.seq, text=text, intent=intent)
        return Call(
            seq=event.seq,
            text=text,
            intent=intent,
            origins=origins(self.index, values),
            margin=explain(self.index, event.tool, [value for _, value in values], intent),
        )
