"""What a session knows, apart from what its detectors remember and what is still open."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from msgspec import Struct, field

from theodolite.core.event import (
    HOST_EVENTS,
    AnyEvent,
    CanaryChecked,
    CanaryVerdict,
    Channel,
    Cleared,
    InquirySettled,
    ModelCalled,
    ToolCallProposed,
    TurnEnded,
    stamp,
)
from theodolite.core.intent import Call, NormalizedIntent, Operator
from theodolite.core.reading import Failure
from theodolite.core.window import INTENTS, Window
from theodolite.features.folds import Folds
from theodolite.runtime.answers import attempted
from theodolite.runtime.ledger import Ledger
from theodolite.runtime.population import PopulationWatch, warn
from theodolite.runtime.purse import Spent
from theodolite.runtime.tally import Tally

__all__ = ("Memory",)


# Planted tokens that are looked for in what is kept: three times the probes that a session may have by default. They
# are random and mean nothing; each costs a look at every text.
_SECRETS = 64
_BROUGHT = frozenset(kind.__name__ for kind in HOST_EVENTS)


class Memory(Struct, kw_only=True):
    """The events of a session and what was learned from them. Session writes it under its lock, and saves it whole.

    `secrets` are the tokens that were planted in its probes, the last 64. They, `models` and `restricted` are frozen,
    since a drain reads them beside an `observe` on another thread.
    `verdicts` are what canary contracts showed last of each channel; `late` are failures to be told with the next
    decision; `spent` is what its inquiries have used of models; `highest` is the highest score of the code that the
    watch of the population is for, where there is one.
    """

    window: Window
    folds: Folds
    turn: int = 0
    models: frozenset[str] = frozenset()
    secrets: tuple[str, ...] = ()
    restricted: frozenset[str] = frozenset()
    verdicts: dict[Channel, tuple[str, CanaryVerdict]] = {}
    late: list[Failure] = []
    spent: Spent = field(default_factory=Spent)
    highest: float = 0.0
    tally: Tally = field(default_factory=Tally)
    ledger: Ledger = field(default_factory=Ledger)

    def stamped(self, event: AnyEvent, *, session: str, agent: str, at: float) -> AnyEvent:
        """Return an event in the place that comes next; nothing has changed yet."""
        turn = self.turn if event.turn < 0 else event.turn
        return stamp(event, session=session, agent=agent, seq=self.window.end, at=at, turn=turn)

    def take(self, event: AnyEvent, effects: Operator) -> Call | None:
        """Take a stamped event in; return what was folded about a proposed call."""
        window, folds = self.window, self.folds
        window.push(event)
        if isinstance(event, TurnEnded):
            self.turn = max(self.turn, event.turn) + 1
        self.tally.saw(event)
        call = window.call = self._folded(event, effects)
        if call is not None:
            window.intents = (*window.intents[-INTENTS + 1 :], call.intent)
        window.goal, window.summary = folds.goal, folds.summary()
        return call

    def _folded(self, event: AnyEvent, effects: Operator) -> Call | None:
        """Fold an event. A fault of ours, met in a text that nobody foresaw, is a Failure; the call is still judged."""
        folded = attempted(partial(self.folds.fold, event, effects), "features", "1")
        if not isinstance(folded, Failure):
            return folded
        self.late.append(folded)
        if not isinstance(event, ToolCallProposed):
            return None
        return Call(seq=event.seq, text="", intent=NormalizedIntent(tool=event.tool))

    def learn(self, event: AnyEvent) -> None:
        """Note what an event says of the session itself, once the detectors have heard it."""
        if isinstance(event, InquirySettled):
            self.secrets = tuple(dict.fromkeys((*self.secrets, *event.canaries)))[-_SECRETS:]
        elif isinstance(event, ModelCalled):
            self.models |= {event.model}
        elif isinstance(event, CanaryChecked):
            self.verdicts[event.checked] = (event.contract, event.verdict)
        elif isinstance(event, Cleared):
            self.restricted = frozenset()

    def leave(self, population: PopulationWatch | None, agent: str) -> None:
        """Count the session, which is over, in its population. One to which a host brought nothing is none."""
        if population is None or _BROUGHT.isdisjoint(self.tally.events):
            return
        if population.take(agent, self.models, self.highest):
            warn(population.state)

    def mend(self, event: AnyEvent, late: Iterable[Failure]) -> bool:
        """Make whole what an interrupt may have left halfway; return whether the event was taken in.

        `late` are the failures that were to be told with the decision which now nobody gets.
        """
        self.window.mend()
        self.late = [*late, *[failure for failure in self.late if failure not in late]]
        taken = self.window.end > event.seq
        if taken and isinstance(event, TurnEnded):
            self.turn = max(self.turn, event.turn + 1)
        return taken
