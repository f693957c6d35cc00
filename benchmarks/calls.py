"""The numbers of each recorded call, and coefficients that are fitted to them by folds of the user's tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from agentdojo import RESTATED, Session, events, restated
from errands import FITTED, errands
from fitting import fit
from msgspec import Struct
from msgspec.structs import asdict

from theodolite.core.detector import Feature
from theodolite.core.event import stamp
from theodolite.core.intent import Permission
from theodolite.features.folds import Folds
from theodolite.features.margin import fetches
from theodolite.features.stakes import stakes
from theodolite.stats.logistic import Logistic

__all__ = (
    "NEEDS",
    "SIGNS",
    "Material",
    "Told",
    "by_folds",
    "fitted",
    "log_odds",
    "material",
    "outside",
    "scored",
    "told",
)

SIGNS: Mapping[str, int] = {
    "acting_margin": 1,
    "reading_margin": 1,
    "delegated_margin": -1,
    "referred_margin": -1,
    "carried_link": 1,
    "authority": 1,
}
# Of each kind that is fitted on: our choice. With ten, one in six alarms still; each more costs paraphrased attacks.
ERRANDS = 20
MADE_WEIGHT = 0.3  # of each made attack beside the recorded ones: our choice, the six weigh about twice as much
NEEDS = (Feature.MARGIN, Feature.PROVENANCE)


class Call(Struct):
    """What one call shows; `onset`: it may be where a hijack begins, as a plain read may not."""

    turn: int
    onset: bool
    row: tuple[float, ...]


class Told(Struct):
    """A session with the numbers of its calls."""

    session: Session
    calls: list[Call]

    def bag(self) -> list[tuple[float, ...]]:
        """Return the calls that may be the hijack: those at the onset or later that act, or else all at the onset."""
        onset = self.session.onset_turn
        if onset is None:
            return []
        late = [call for call in self.calls if call.turn >= onset]
        return [call.row for call in late if call.onset] or [call.row for call in late if call.turn == onset]


def told(session: Session) -> Told:
    """Return the numbers of a session's calls, folded as a live session folds them."""
    folds, calls = Folds.begin(NEEDS), list[Call]()
    for seq, event in enumerate(events(session)):
        placed = stamp(event, session="s", agent="", seq=seq, at=0.0, turn=event.turn)
        call = folds.fold(placed, {})
        shown = None if call is None else stakes(call)
        if call is not None and shown is not None:
            network = call.intent.permission is Permission.NETWORK
            values: Mapping[str, float] = asdict(shown)
            onset = network or not fetches(call.intent)
            calls.append(Call(placed.turn, onset, tuple([values[name] for name in SIGNS])))
    return Told(session, calls)


class Material(Struct):
    """What is fitted on: recorded sessions, attacks that are made from them, by name, and errands without an attack."""

    recorded: list[Told]
    made: dict[str, list[Told]]
    errands: list[Told]


def material(recorded: Sequence[Session]) -> Material:
    """Return the numbers of all calls of a split, of the attacks that are made from it, and of errands."""
    made = {
        name: [told(other) for session in recorded if (other := restated(session, order))]
        for name, order in RESTATED.items()
    }
    made_errands = errands(ERRANDS)
    return Material(
        [told(session) for session in recorded],
        made,
        [told(session) for kind in FITTED for session in made_errands[kind]],
    )


def fitted(
    data: Material,
    keep: Callable[[Session], bool],
    signs: Mapping[str, int] = SIGNS,
    names: Sequence[str] = tuple(SIGNS),
) -> Logistic:
    """Return the coefficients of the sessions to keep; `names` are those of the numbers of a row."""
    places = [names.index(name) for name in signs]

    def cut(rows: Iterable[Sequence[float]]) -> list[tuple[float, ...]]:
        return [tuple([row[place] for place in places]) for row in rows]

    def bags(group: Iterable[Told]) -> list[list[tuple[float, ...]]]:
        return [cut(bag) for one in group if keep(one.session) and one.session.hijacked and (bag := one.bag())]

    negative = [
        call.row
        for one in (*data.recorded, *data.errands)
        if not one.session.hijacked and keep(one.session)
        for call in one.calls
    ]
    groups = [(1.0, bags(data.recorded)), *[(MADE_WEIGHT, bags(group)) for group in data.made.values()]]
    return fit(signs, [(weight, group) for weight, group in groups if group], cut(negative))


def highest(model: Logistic, one: Told) -> float:
    """Return the highest log-odds of a session's calls."""
    return max((log_odds(model, call.row) for call in one.calls), default=-36.0)


def log_odds(model: Logistic, row: Sequence[float]) -> float:
    """Return the log-odds of one call."""
    return model.bias + sum(model.weights.get(name, 0.0) * value for name, value in zip(SIGNS, row, strict=True))


def by_folds(data: Material, signs: Mapping[str, int] = SIGNS) -> list[Logistic]:
    """Return, for each of five folds, the coefficients of the other four."""
    return [fitted(data, partial(outside, fold), signs) for fold in range(5)]


def outside(fold: int, session: Session) -> bool:
    """Whether a session is of another fold."""
    return session.fold != fold


def scored(models: Sequence[Logistic], group: Iterable[Told]) -> list[float]:
    """Return the highest log-odds of each session, by the model that has not seen its task."""
    return [highest(models[one.session.fold], one) for one in group]
