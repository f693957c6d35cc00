"""Whether calls diverge from their contracts more often than they did, and who moved: the model or the contract.

What is counted is, for each operation, place and kind, whether a call of the operation diverged there in that way. The
first calls of an operation are its baseline; a rise above what the baseline allows is told once, with both rates.

Sound where a call's chance to diverge, given all calls before it, is at most that of the baseline. Calls of one session
that fail together, such as retries, are one trial: count one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from enum import StrEnum

from msgspec import Struct, field

from theodolite.core.contract import Divergence, Group, Kind
from theodolite.stats.change import RISES, Rise
from theodolite.stats.interval import wilson

__all__ = ("CODE", "Mover", "Rate", "ShapeDrift", "Shift", "attribution")

CODE = "payload.drift"
"""The code that a shift is told under; it is statistical, and never acts."""

# Places of one call that are counted (our choice): as many as the checker lists.
_PLACES = 100
# The odds by which the beginning of a rise is estimated (our choice): the middle one of those that are bet on.
_ODDS = RISES[1]


class Mover(StrEnum):
    """Who moved, where arguments and contracts no longer fit: see `attribution`."""

    MODEL = "model"
    CONTRACT = "contract"
    BOTH = "both"
    NEITHER = "neither"


class Rate(Struct, frozen=True):
    """A share of calls, `k` of `n`, with Wilson's interval of 95 %."""

    k: int
    n: int

    @property
    def interval(self) -> tuple[float, float]:
        """Return the bounds of the rate; (0, 1) where there was no call."""
        return wilson(self.k, self.n)


class Shift(Struct, frozen=True, kw_only=True):
    """A rate that has risen: of which divergence, from what, to what, and since which call of the operation.

    `since` and `now` are estimates, found by looking for where the rise is clearest, so that `now` is too high rather
    than too low. `evidence` is what the alarm rests on, half of the e-value: without a rise it ever reaches 1 / alpha
    with a chance of at most alpha, for each operation, place and kind.
    """

    operation: str
    pointer: str
    kind: Kind
    before: Rate
    now: Rate
    since: int
    evidence: float


class _Operation(Struct, kw_only=True, forbid_unknown_fields=True):
    """How often an operation was called; `number` tells it from one of that name that was forgotten."""

    number: int
    calls: int = 0
    lost: bool = False


class _Track(Struct, kw_only=True, forbid_unknown_fields=True):
    """What was seen of one divergence, in calls of its operation after `start`."""

    operation: str
    pointer: str
    kind: Kind
    number: int
    start: int = 0
    baseline: int = 0
    hits: int = 0
    rise: Rise | None = None
    clear: float = 0.0
    since: int = 0
    risen: int = 0


class ShapeDrift(Struct, kw_only=True, forbid_unknown_fields=True):
    """Rates of divergences over all sessions: a plain value that the caller keeps, saves as JSON and restores.

    `alpha` is the chance of a false alarm for one operation, place and kind, over all time: half of it is that the
    baseline misleads, half that the evidence does (`stats.change.Rise`). Among m of them at most m alpha are to be
    expected. `baseline` is the number of calls that an operation's baseline has. After an alarm the place begins a new
    baseline: the rate that it has now is told once.

    Places are pointers with `*` for each index, and for the last name of an unknown field. Whoever knows the contract
    gives pointers with `*` for every name that it does not declare (`naming.Naming.place`), so that invented names
    neither fill the memory nor are kept. At most `limit` operations and as many places are
    remembered; beyond them the one that was not met for longest is forgotten, and begins a new baseline when it is met
    again, as do other new places of its operation.

    Power, by 200 simulated places at the defaults, 500 calls after the baseline: a rise from 1 to 10 in 100 calls is
    told after 246 calls (median; nine in ten after 510), from 5 to 30 after 70 (127), from 0 to 5 after 363 (568); from
    1 to 5, in two of five places within 1,500 calls.

    Cost of a call: O(1), and O(1) for each divergence in it. Limits: a rate that falls is not told, nor one that rises
    during the baseline.

    >>> drift = ShapeDrift(baseline=100)
    >>> wrong = Divergence(kind=Kind.TYPE_MISMATCH, pointer="/items/3/price")
    >>> told = [drift.update("order", [wrong] if call >= 300 else []) for call in range(330)]
    >>> [(shift.pointer, shift.since, shift.before.k, shift.now.k) for shifts in told for shift in shifts]
    [('/items/*/price', 301, 0, 8)]
    """

    # All three our choice: one place in a hundred may be told falsely, ever; a rise from 1 to 10 in 100 is to show
    # within some hundred calls, for which a baseline has to be so long (above); more places than a document has.
    alpha: float = 0.01
    baseline: int = 500
    limit: int = 10_000
    operations: dict[str, _Operation] = field(default_factory=dict)
    tracks: dict[str, _Track] = field(default_factory=dict)
    made: int = 0

    def __post_init__(self) -> None:
        if not (0.0 < self.alpha <= 0.5 and self.baseline > 0 and self.limit > 0):  # noqa: PLR2004 - a bound of half a chance bounds nothing
            raise ValueError(f"no drift is watched at alpha={self.alpha}, baseline={self.baseline}, limit={self.limit}")

    def update(self, operation: str, divergences: Iterable[Divergence] = ()) -> tuple[Shift, ...]:
        """Take one call with where it diverged; return the rates that have risen, mostly none."""
        called = self._called(operation)
        called.calls += 1
        places = dict.fromkeys([(_place(one), one.kind) for one in divergences])
        shifts = [self._seen(called, operation, *place) for place in list(places)[:_PLACES]]
        return tuple([shift for shift in shifts if shift is not None])

    def forget(self, operation: str) -> None:
        """Begin anew with an operation, as after its contract was changed on purpose."""
        self.operations.pop(operation, None)

    def rates(self) -> tuple[tuple[str, str, Kind, Rate, Rate], ...]:
        """Return operation, place, kind, rate of the baseline and rate since then of all that is remembered."""
        found: list[tuple[str, str, Kind, Rate, Rate]] = []
        for track in self.tracks.values():
            called = self.operations.get(track.operation)
            if called is not None and called.number == track.number:
                calls = called.calls - track.start
                before = Rate(track.baseline, min(calls, self.baseline))
                found.append((*_name(track), before, Rate(track.hits, max(0, calls - self.baseline))))
        return tuple(found)

    def _called(self, operation: str) -> _Operation:
        called = self.operations.pop(operation, None)
        if called is None:
            self.made += 1
            called = _Operation(number=self.made)
            if len(self.operations) >= self.limit:
                del self.operations[next(iter(self.operations))]
        self.operations[operation] = called  # the last one in is the last one out
        return called

    def _seen(self, called: _Operation, operation: str, pointer: str, kind: Kind) -> Shift | None:
        key = f"{operation}\x1f{pointer}\x1f{kind}"
        track = self.tracks.pop(key, None)
        if track is None or track.number != called.number:
            # Where it may have been met and forgotten, this call cannot say how rare it is: it is not counted.
            start = called.calls if called.lost else 0
            track = _Track(operation=operation, pointer=pointer, kind=kind, number=called.number, start=start)
            if len(self.tracks) >= self.limit:
                gone = self.tracks.pop(next(iter(self.tracks)))
                if (other := self.operations.get(gone.operation)) is not None:
                    other.lost = True
        self.tracks[key] = track
        return self._counted(track, called.calls - track.start, called)

    def _counted(self, track: _Track, call: int, called: _Operation) -> Shift | None:
        """Count a divergence in a call after the start of its track."""
        if call <= self.baseline:
            track.baseline += call > 0
            return None
        rise = track.rise
        if rise is None:
            rise = track.rise = Rise.over(track.baseline, self.baseline, self.alpha / 2)
        quiet = call - 1 - self.baseline - rise.trials
        rise.skip(quiet)
        evidence = rise.event()
        track.hits += 1
        self._dated(track, call, quiet, rise.upper)
        if evidence < 2 / self.alpha:
            return None
        shift = Shift(
            operation=track.operation,
            pointer=track.pointer,
            kind=track.kind,
            before=Rate(track.baseline, self.baseline),
            now=Rate(track.risen, call - track.since + 1),
            since=track.start + track.since,
            evidence=evidence / 2,
        )
        key = f"{track.operation}\x1f{track.pointer}\x1f{track.kind}"
        operation, pointer, kind = _name(track)
        self.tracks[key] = _Track(
            operation=operation, pointer=pointer, kind=kind, number=called.number, start=called.calls
        )
        return shift

    @staticmethod
    def _dated(track: _Track, call: int, quiet: int, upper: float) -> None:
        """Keep the beginning of the stretch of calls in which the rise is clearest (Page's cumulative sum)."""
        weight = math.log1p(upper * (_ODDS - 1.0))
        track.clear -= quiet * weight
        if track.clear <= 0.0:
            track.clear, track.since, track.risen = 0.0, call, 0
        track.clear += math.log(_ODDS) - weight
        track.risen += 1


def attribution(old: Callable[[object], bool], new: Callable[[object], bool], arguments: object) -> Mover:
    """Return who moved, by whether the contract as it was pinned and as it is now accept the same arguments.

    `NEITHER` where both do; `CONTRACT` where the pinned one alone does: the model still keeps to it; `MODEL` where none
    does; `BOTH` where only the new one does: the contract moved, and the model with it.

    >>> attribution(lambda arguments: True, lambda arguments: False, {}).value
    'contract'
    """
    before, after = old(arguments), new(arguments)
    if before:
        return Mover.NEITHER if after else Mover.CONTRACT
    return Mover.BOTH if after else Mover.MODEL


def _place(one: Divergence) -> str:
    tokens = ["*" if token.isdecimal() else token for token in one.pointer.split("/")]
    if one.kind.group is Group.UNKNOWN_FIELD and len(tokens) > 1:
        tokens[-1] = "*"
    return "/".join(tokens)


def _name(track: _Track) -> tuple[str, str, Kind]:
    return track.operation, track.pointer, track.kind
