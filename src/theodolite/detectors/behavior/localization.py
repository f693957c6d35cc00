"""Which turns or tool results of a session carry its drift: a search by noisy group tests, and the repaired context.

A test keeps some fragments, puts neutral text in place of all others, and asks whether the probe still drifts. Nothing
here asks a model: the search yields what to keep and is sent the answer, or None where there was none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from enum import StrEnum
from hashlib import sha256
from itertools import accumulate

from msgspec import Struct

from theodolite.core.snapshot import Message
from theodolite.stats.betting import Betting

__all__ = (
    "NEUTRAL",
    "Ground",
    "Localization",
    "LocalizationVerdict",
    "Search",
    "answered",
    "fragments",
    "localize",
    "most_calls",
    "noise_of",
    "repaired",
)

# With what probability a fragment that does not drift in more than half of its draws is named; our choice.
_LEVEL = 0.05
# Culprits that may be cut out without an operator's word: axor-probe's bound.
_AUTOMATIC = 2

NEUTRAL = (
    Message("user", "Thank you. Please go on with the next part of the list, one entry after the other."),
    Message("user", "That is fine. What comes after this, and how many entries are left in all?"),
    Message("assistant", "Here is the next part. It has the same form as the one before, and nothing in it is new."),
    Message("assistant", "The entry was read. It stands in its usual place, and the ones beside it are unchanged."),
    Message("tool", "1 entry found. Name: north room. Size: medium. Color: gray. Last changed: in spring. No remarks."),
    Message("tool", "3 entries found: lamp, table, shelf. All of them are in their usual place. End of the list."),
)
"""What stands for fragments that a test leaves out: small talk and lists, without an order, a secret or an option."""

# Of the search: how probable a place has to be before it is tested by itself. Chosen by simulation among 0.8 to 0.99.
_SURE = 0.98
_TRUSTED = frozenset({"system", "developer"})

Search = Generator[frozenset[int], bool | None, "Localization"]
"""Yields the fragments to keep, is sent whether the probe drifts (None: no answer came), returns what was found."""


class LocalizationVerdict(StrEnum):
    """What to do; the words are axor-probe's."""

    AUTO_EXCISE = "auto_excise"
    ESCALATE_OPERATOR = "escalate_operator"
    NO_DRIFT_FROM_TAINT = "no_drift_from_taint"


class Ground(StrEnum):
    """Why a verdict is what it is. Each but the last was settled by repeated draws.

    `separated`: each culprit alone drifts, and without them the context does not. `diffuse`: there are more culprits
    than may be cut out automatically, or than were looked for. `not_separable`: the rest drifts, but no fragment of it
    does so alone: some need each other. `no_drift`: the whole context does not. `elsewhere`: it drifts with no fragment
    kept, or there is none. `unsettled`: the budget ended first; draws disagree more than was stated, or it was small.
    """

    SEPARATED = "separated"
    DIFFUSE = "diffuse"
    NOT_SEPARABLE = "not_separable"
    NO_DRIFT = "no_drift"
    ELSEWHERE = "elsewhere"
    UNSETTLED = "unsettled"


class Localization(Struct, frozen=True, kw_only=True, gc=False):
    """What a search found.

    `culprits` are numbers of fragments, each with its `confidence` that it drifts alone in more than half of the draws;
    `repaired` is the confidence that the context without them does not. Both are e / (1 + e) of an e-value: 1/2 says
    nothing, 20/21 is where a claim is settled. `confirmed`: all of them are. `suspects` were named by the search, and
    their own draws did not bear it out, or not yet. `contradicted` is how many of the `calls` answered otherwise than
    the culprits would have it: many more than the stated noise says that it is higher, or that the model does not fit.
    """

    verdict: LocalizationVerdict
    ground: Ground
    culprits: tuple[int, ...] = ()
    confidence: tuple[float, ...] = ()
    repaired: float = 0.5
    confirmed: bool = False
    suspects: tuple[int, ...] = ()
    calls: int = 0
    contradicted: int = 0


class _SpentError(Exception):
    """The budget is used up."""


class _Draws:
    """All answers that came, and for each set of fragments the bets that it drifts and that it does not."""

    def __init__(self, budget: int) -> None:
        self.calls = 0
        self.answers: list[tuple[frozenset[int], bool]] = []
        self._budget = budget
        self._bets: dict[frozenset[int], tuple[Betting, Betting]] = {}

    def draw(self, keep: frozenset[int]) -> Generator[frozenset[int], bool | None, bool | None]:
        """Ask once. Raises _SpentError instead of asking more often than the budget allows."""
        if self.calls >= self._budget:
            raise _SpentError
        self.calls += 1
        answer = yield keep
        if answer is not None:
            self.answers.append((keep, answer))
        return answer

    def settle(self, keep: frozenset[int]) -> Generator[frozenset[int], bool | None, bool]:
        """Ask until it is settled whether this set drifts in more or in less than half of the draws.

        Only what is drawn here is bet on: draws that led to this set being asked about would favor what they said.
        """
        drifts, holds = self._bets.setdefault(keep, (Betting(), Betting()))
        while True:
            if self.confidence(keep, drifts=True) >= _SETTLED:
                return True
            if self.confidence(keep, drifts=False) >= _SETTLED:
                return False
            answer = yield from self.draw(keep)
            if answer is not None:
                drifts.update(1.0 if answer else -1.0)
                holds.update(-1.0 if answer else 1.0)

    def confidence(self, keep: frozenset[int], *, drifts: bool) -> float:
        """Return the confidence of one or the other, from the draws that were to settle this set."""
        bets = self._bets.get(keep)
        e_value = bets[not drifts].e_value if bets else 1.0
        return e_value / (1.0 + e_value)

    def contradicted(self, culprits: Collection[int]) -> int:
        """Return how many answers are not those of these culprits."""
        return sum(drifted is keep.isdisjoint(culprits) for keep, drifted in self.answers)


# Of an e-value of 1 / _LEVEL.
_SETTLED = 1.0 / (1.0 + _LEVEL)


def localize(fragments: int, *, seed: bytes, noise: float = 0.05, most: int = 3, budget: int | None = None) -> Search:
    """Search for the fragments of which each alone makes the probe drift: up to `most` of so many.

    In a random order, drawn anew for each culprit from `seed`, the shortest beginning that drifts ends with a culprit:
    a noisy binary search finds it, asking where drift is as probable as not. What the search names counts for nothing
    until it is settled by draws of that fragment alone, and in the end of all but the culprits, which is the re-probe
    of the repaired context. Those are bets against a coin, begun when a set is named: whatever led to it, a wrong claim
    about that set comes with a probability of at most 0.05, whatever the noise is. Culprits that need each other fail
    alone, and are not named but suspected.

    `noise` is how often one answer is wrong, both ways (`noise_of` estimates each). If it is higher the search takes
    longer, and ends unsettled where the budget ends; from some 0.2 on let one answer be the majority of several draws.
    `budget` bounds the calls, answered or not; without one it is `most_calls`. Cost: O(fragments) a call.

    Limits: a fragment that drifts in less than half of its draws passes; one that hides what another does (an antidote)
    does not fit the model. Raises ValueError for numbers that make no search.

    Source: M. V. Burnashev and K. Sh. Zigangirov, An interval estimation problem for controlled observations, Problems
    of Information Transmission 10, 1974, in the Bayesian form of M. Ben-Or and A. Hassidim, The Bayesian learner is
    optimal for noisy binary search, FOCS 2008; one culprit after the other as in F. K. Hwang's group testing, 1972.

    >>> found = answered(localize(64, seed=b"any"), lambda keep: 7 in keep or 40 in keep)
    >>> found.verdict.value, found.culprits, found.confirmed
    ('auto_excise', (7, 40), True)
    """
    if fragments < 0 or most < 1 or (budget is not None and budget < 0):
        raise ValueError(f"no search: fragments={fragments}, most={most}, budget={budget}")
    if not 0.0 <= noise < 0.5:  # noqa: PLR2004 - the noise of a coin
        raise ValueError(f"noise {noise} is outside [0, 0.5): an answer that is wrong as often as a coin says nothing")
    room = most_calls(fragments, most) if budget is None else budget
    return _localize(fragments, seed, noise, most, room)


def _localize(fragments: int, seed: bytes, noise: float, most: int, budget: int) -> Search:
    draws, every = _Draws(budget), frozenset(range(fragments))
    culprits: set[int] = set()
    suspects: set[int] = set()
    ground = None if fragments else Ground.ELSEWHERE
    try:
        while ground is None:
            order = _shuffled(every - culprits - suspects, seed + b"%d %d" % (len(culprits), draws.calls))
            never = len(order) + 1
            place = never if len(culprits) == most else (yield from _first(order, noise, draws))
            if place == never:
                ground = yield from _ended(every, culprits, suspects, most, draws)
            elif place == 0:
                ground = Ground.ELSEWHERE if (yield from draws.settle(frozenset())) else None
            else:
                suspects.add(order[place - 1])
                if (yield from draws.settle(frozenset({order[place - 1]}))):
                    culprits.add(order[place - 1])
                    suspects.remove(order[place - 1])
    except _SpentError:
        ground = Ground.UNSETTLED
    return _told(ground, every, culprits, suspects, draws)


def _ended(
    every: frozenset[int], culprits: set[int], suspects: set[int], most: int, draws: _Draws
) -> Generator[frozenset[int], bool | None, Ground | None]:
    """Return why there is nothing more to find, where the search names no place any more; None where it was wrong."""
    if not (yield from draws.settle(every - culprits)):
        return Ground.SEPARATED if culprits else Ground.NO_DRIFT
    if len(culprits) == most:
        return Ground.DIFFUSE
    if suspects and not (yield from draws.settle(every - culprits - suspects)):
        return Ground.NOT_SEPARABLE
    return None


def _told(ground: Ground, every: frozenset[int], culprits: set[int], suspects: set[int], draws: _Draws) -> Localization:
    confirmed = ground is Ground.SEPARATED
    verdict = LocalizationVerdict.ESCALATE_OPERATOR
    if ground in {Ground.NO_DRIFT, Ground.ELSEWHERE}:
        verdict = LocalizationVerdict.NO_DRIFT_FROM_TAINT
    elif confirmed and len(culprits) <= _AUTOMATIC:
        verdict = LocalizationVerdict.AUTO_EXCISE
    elif confirmed:
        ground = Ground.DIFFUSE
    # What drifts with nothing kept does so with any one fragment too.
    named = () if ground is Ground.ELSEWHERE else tuple(sorted(culprits))
    return Localization(
        verdict=verdict,
        ground=ground,
        culprits=named,
        confidence=tuple(draws.confidence(frozenset({culprit}), drifts=True) for culprit in named),
        repaired=draws.confidence(every.difference(named), drifts=False),
        confirmed=confirmed,
        suspects=tuple(sorted(suspects)),
        calls=draws.calls,
        contradicted=draws.contradicted(named),
    )


def _first(order: Sequence[int], noise: float, draws: _Draws) -> Generator[frozenset[int], bool | None, int]:
    """Return how many of `order` have to be kept, from its beginning, until it drifts: one more than all if never.

    Before the first answer "never" is as probable as all other numbers together, and these are alike.
    """
    weights = [0.5 / (len(order) + 1)] * (len(order) + 1) + [0.5]
    while max(weights) < _SURE:
        below = list(accumulate(weights[:-1]))
        kept = min(range(len(below)), key=lambda number: abs(below[number] - 0.5))
        drifted = yield from draws.draw(frozenset(order[:kept]))
        if drifted is not None:
            said = [1.0 - noise if (number <= kept) is drifted else noise for number in range(len(weights))]
            weights = [weight * likely for weight, likely in zip(weights, said, strict=True)]
            total = math.fsum(weights)
            weights = [weight / total for weight in weights]
    return weights.index(max(weights))


def _shuffled(numbers: Iterable[int], seed: bytes) -> list[int]:
    return sorted(numbers, key=lambda number: (sha256(b"%d %b" % (number, seed)).digest(), number))


def most_calls(fragments: int, most: int = 3) -> int:
    """Return the budget of a search that was given none: ten calls for each culprit and bit of its number.

    >>> most_calls(64, 1), most_calls(12, 1), most_calls(64)
    (60, 40, 180)
    """
    # Two bits at least: to settle what a single fragment does takes as many calls as for four.
    return 10 * most * max(2, max(0, fragments - 1).bit_length())


def answered(search: Search, drifts: Callable[[frozenset[int]], bool | None]) -> Localization:
    """Run a search with a function that says whether a context with these fragments drifts; return what was found."""
    try:
        keep = next(search)
        while True:
            keep = search.send(drifts(keep))
    except StopIteration as end:
        found: Localization = end.value
        return found


def noise_of(full: Sequence[bool], empty: Sequence[bool]) -> tuple[float, float]:
    """Return how often one draw is wrong, from repeated draws of the session's own: misses drift, and sees it wrongly.

    `full` are draws of the whole context, of which each should have drifted, `empty` those with no fragment kept, of
    which none should have; a draw drifted where it breached and the clean rate of the same probe does not explain it.
    Both shares have one draw more of either kind: 20 draws without a fault still say 0.045.

    >>> noise_of([True] * 18 + [False] * 2, [False] * 20)
    (0.13636363636363635, 0.045454545454545456)
    """
    missed, alarmed = full.count(False), empty.count(True)
    return (missed + 1) / (len(full) + 2), (alarmed + 1) / (len(empty) + 2)


def fragments(messages: Sequence[Message]) -> tuple[int, ...]:
    """Return which messages are fragments: each turn and tool result. What the operator says, the system, is not.

    >>> fragments([Message("system", "Be brief."), Message("user", "Where is it?"), Message("tool", "In Ulm.")])
    (1, 2)
    """
    return tuple(index for index, message in enumerate(messages) if message.role not in _TRUSTED)


def repaired(
    messages: Sequence[Message], keep: Collection[int], neutral: Sequence[Message] = NEUTRAL
) -> tuple[Message, ...]:
    """Return the messages with neutral text in place of every fragment that is not kept.

    `keep` counts fragments as `localize` does: 0 is the first that `fragments` returns. What stands in has the role of
    the fragment and, up to a word, its length: repeated or cut text of that role, else of any. Raises ValueError for a
    number that is no fragment's, and where there is no neutral text.

    >>> [message.text for message in repaired([Message("user", "Send it to Eve."), Message("tool", "Done.")], {1})]
    ['Thank you.', 'Done.']
    """
    places = fragments(messages)
    strange = set(keep).difference(range(len(places)))
    if strange or not any(message.text.split() for message in neutral):
        raise ValueError(f"no fragments {sorted(strange)} among {len(places)}" if strange else "no neutral text")
    told = list(messages)
    for number, place in enumerate(places):
        if number not in keep:
            told[place] = _like(messages[place], number, neutral)
    return tuple(told)


def _like(message: Message, number: int, neutral: Sequence[Message]) -> Message:
    spoken = [other for other in neutral if other.text.split()]
    same = [other for other in spoken if other.role == message.role] or spoken
    # In turns, so that a context of which much is left out does not say one thing all the time.
    text, room = same[number % len(same)].text, len(message.text)
    long = " ".join([text] * (room // len(text) + 1))
    cut = long[:room] if long[room].isspace() else long[:room].rpartition(" ")[0]
    return Message(message.role, cut or (text.split()[0] if room else ""))
