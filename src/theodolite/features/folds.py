"""All folds of one session, run once per event; Session hands what they give to the Window."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice

import msgspec
from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from theodolite.core.arguments import leaves, pointer
from theodolite.core.detector import Feature
from theodolite.core.event import (
    Event,
    GoalStated,
    MessageObserved,
    Tool,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
)
from theodolite.core.intent import Call, Operator, Role, ToolRule
from theodolite.core.summary import CanonicalizedContextSummary
from theodolite.features.goal import Goal
from theodolite.features.index import WordIndex
from theodolite.features.intents import IntentFold
from theodolite.features.intents.tables import table
from theodolite.features.margin import explain, tool_words
from theodolite.features.provenance import origins
from theodolite.features.roles import declared_roles
from theodolite.features.sources import of_the_user, owned, searches_the_web
from theodolite.features.summary import SummaryFold

__all__ = ("Folds",)

# What is read of a call: the margin reads 64 values, names first; a detector that wants the text of a call reads its
# beginning, as ShadowMemory does with 100 characters.
_LEAVES = 4_096
_FEW = 16
_VALUE = 4_096  # characters of a value that are read
_BEGINNING = 256
_PLAIN = 64  # a name of so many letters is a pointer as it stands
_SEARCHES = 64  # the newest results of a search engine that are known as such
# Arguments that hold the arguments, and how much of them is decoded.
_HOLDERS = table("payload input arguments args params parameters kwargs request json tool_input action_input")
_HELD = 16_384
_PROFILES = 64  # tools that return a profile; no host offers more than a few


class Folds(Struct, kw_only=True):
    """The folded past of a session. Only the folds that a detector needs are kept; the intent always is.

    State of one session: saved and restored with it. Costs what its folds cost: linear in the text of the event.
    """

    intents: IntentFold
    index: WordIndex | None = None
    shape: SummaryFold | None = None
    goal: bool = False
    aims: Goal = field(default_factory=Goal)
    roles: dict[str, dict[str, Role]] = {}
    profiles: dict[str, bool] = {}
    searched: dict[int, bool] = {}

    @classmethod
    def begin(cls, needs: Collection[Feature]) -> Folds:
        """Return the folds that these needs ask for, with nothing in them."""
        indexed = Feature.PROVENANCE in needs or Feature.MARGIN in needs
        shape = SummaryFold() if Feature.SUMMARY in needs else None
        return cls(intents=IntentFold(), index=WordIndex() if indexed else None, shape=shape)

    def with_needs(self, needs: Collection[Feature]) -> Folds:
        """Return these folds, or empty ones in the place of those that are needed and were not kept."""
        new = Folds.begin(needs)
        # Not `or`: an index is as false as its length, which is 0 while only the goal is known.
        index = new.index if new.index is None or self.index is None else self.index
        shape = new.shape if new.shape is None or self.shape is None else self.shape
        return replace(self, index=index, shape=shape)

    def summary(self) -> CanonicalizedContextSummary | None:
        """Return the summary of the session as of the last event; None where no detector needs one."""
        return None if self.shape is None else self.shape.summary()

    def fold(self, event: Event, operator: Operator) -> Call | None:
        """Take one event; return what is known about the call, if it is one."""
        call = self._folded(event, operator)
        if self.shape is not None:
            self.shape.fold(event, call)
        return call

    def _folded(self, event: Event, operator: Operator) -> Call | None:
        if isinstance(event, ToolCallProposed):
            return self._call(event, operator)
        if isinstance(event, ToolResultObserved):
            if not event.source.trusted:
                self.intents.returned(event, operator)
            if event.text is not UNSET:
                self._result(event, str(event.text), operator)
        elif isinstance(event, GoalStated):
            if event.source.trusted:
                self.goal = True
                self._said(event.text)
        elif isinstance(event, MessageObserved):
            self._message(event)
        elif isinstance(event, ToolsDeclared):
            self._declared(event.tools)
        return None

    def _message(self, event: MessageObserved) -> None:
        if event.role == "user" and event.text is not UNSET:
            if not event.source.trusted:
                self.intents.saw_outside()
            self._returned(event.seq, str(event.text), trusted=event.source.trusted)

    def _declared(self, tools: Iterable[Tool]) -> None:
        self.intents.declare(tuple(tools))
        self.roles = {tool.name: roles for tool in tools if (roles := declared_roles(tool))}

    def _result(self, event: ToolResultObserved, text: str, operator: Operator) -> None:
        if searches_the_web(event.tool):
            self.searched[event.seq] = True
            for old in list(self.searched)[:-_SEARCHES]:
                del self.searched[old]
        bare = self.profiles.get(event.tool, False)
        if event.source.trusted or not owned(event.tool, operator, bare=bare):
            self._returned(event.seq, text, trusted=event.source.trusted)
        elif self.index is not None:
            self.index.record(event.seq, text)

    def _said(self, text: str) -> None:
        self.aims.hear(text)
        self.intents.heard(text)
        if self.index is not None:
            self.index.trust(text)

    def _returned(self, seq: int, text: str, *, trusted: bool) -> None:
        if trusted:
            self._said(text)
            return
        if self.index is not None:
            self.index.distrust(seq, text)

    def _roles(self, tool: str, operator: Operator) -> Mapping[str, Role]:
        declared, rule = self.roles.get(tool, {}), operator.get(tool)
        return {**declared, **rule.arguments} if isinstance(rule, ToolRule) and rule.arguments else declared

    def _call(self, event: ToolCallProposed, operator: Operator) -> Call:
        given = event.values()
        intent = self.intents.of(event, operator, {} if given is UNSET else given)
        values = [] if given is UNSET else _values(given, _FEW if self.index is None else _LEAVES)
        if of_the_user(event.tool) and len(self.profiles) < _PROFILES:
            self.profiles[event.tool] = self.profiles.get(event.tool, True) and given is not UNSET and not given
        texts = [value for _, value in values]
        text = " ".join([event.tool, *[value[:_BEGINNING] for value in texts[:_FEW]]])[:_BEGINNING]
        if self.index is None:
            return Call(seq=event.seq, text=text, intent=intent)
        spoken = self.index.spoken(texts, _VALUE, tool_words(event.tool))
        traced = origins(self.index, values, self._roles(event.tool, operator), spoken)
        margin = explain(self.index, event.tool, texts, intent, spoken)
        pages = traced if not self.searched else [origin for origin in traced if origin.seq not in self.searched]
        return Call(
            seq=event.seq,
            text=text,
            intent=intent,
            origins=traced,
            margin=margin,
            grounds=self.aims.grounds(intent, pages, self.index, margin, spoken.named),
        )


def _values(given: Mapping[str, object], most: int) -> list[tuple[str, str]]:
    """Return the first leaves of the arguments of a call; those at the top, as most are, without a generator each."""
    found: list[tuple[str, str]] = []
    for name, value in given.items():
        path = f"/{name}" if name.isidentifier() and len(name) <= _PLAIN else pointer("", name)
        if isinstance(value, str):
            held = _held(name, value)
            found += [(path, value)] if held is None else islice(leaves(held, path), most)
        else:
            found += islice(leaves(value, path), most)
        if len(found) >= most:
            break
    return found[:most]


def _held(name: str, value: str) -> Mapping[str, object] | None:
    """Return the object that a text writes out in JSON, where the argument's name says that it holds arguments."""
    if name not in _HOLDERS or len(value) > _HELD or not value.lstrip().startswith("{"):
        return None
    try:
        return msgspec.json.decode(value, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):  # no JSON, or deeper than anything that is meant
        return None
