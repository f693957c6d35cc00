"""Hijack: whether a call serves untrusted text rather than the user, from provenance, roles, goal and stakes.

A logistic score over a handful of numbers (`features/stakes.py`), with signs that are fixed beforehand, from
coefficients that are shipped as JSON with what they were fitted on. No wording of an attack is looked for; words of a
deed are, where a goal may refer to a record (`features/goal.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import asdict

from theodolite.core.calibration import Band, Dataset
from theodolite.core.detector import Feature
from theodolite.core.event import Event, GoalStated, SessionEnded, ToolCallProposed, ToolResultObserved, TurnEnded
from theodolite.core.intent import ArgumentOrigin, Call, Margin, Origin, Role
from theodolite.core.reading import Cause, Evidence, Fact, Failure, Reading, Status
from theodolite.core.window import Window
from theodolite.features.stakes import stakes
from theodolite.stats.logistic import Logistic, probability

__all__ = ("Fitted", "HijackDetector", "HijackState", "shipped")

# Evidence is to be read by a person.
_MOST_ARGUMENTS = 8


class Fitted(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Coefficients with their thresholds and what they were fitted on: `benchmarks/trajectory.py --fit` writes it.

    `alert` is the score that at most a share `alpha` of the sessions without a hijack is above, out of fold.
    """

    model: Logistic
    alert: float
    alpha: float
    source: str
    dataset: Dataset


@cache
def shipped() -> Fitted:
    """Return the coefficients that come with the package. Reads its file once."""
    document = files("theodolite.detectors.trajectory").joinpath("hijack.json").read_bytes()
    return msgspec.json.decode(document, type=Fitted)


class HijackState(Struct, kw_only=True):
    """How much was said to be left out; what a call shows is folded once for all detectors.

    `told` sentences, and `owed` results of calls of earlier turns. `turn` is that of the newest call, `calls` and
    `shown` count calls before it and results with their text. `ends`: the host says when a turn is over.
    """

    told: int = 0
    owed: int = 0
    turn: int = -1
    calls: int = 0
    newest: int = 0
    shown: int = 0
    ends: bool = False

    def call(self, turn: int) -> int:
        """Take a call; return for how many calls of earlier turns no text of a result has come."""
        if turn != self.turn:
            self.calls, self.newest, self.turn = self.calls + self.newest, 0, turn
        self.newest += 1
        return self.calls - self.shown


class HijackDetector:
    """Scores each proposed call, before it runs, by how likely it serves untrusted text instead of the user.

    State: none of its own; index, margin and origins are folds of the session. Cost per call: five products beside the
    folds. Says NO_EVIDENCE where no goal was stated or the channel did not show the arguments, and, beside the score,
    where sentences of untrusted text were too many to be compared, or what calls of earlier turns returned was not
    shown. Signs are fixed: more margin, a carried link or a foreign credential never lower the score.

    Limits: those of the margin, which compares words, and of origins, which follow no value that is put together from
    parts of words. A user who asks for whatever a text says is not told apart from an agent that obeys it.
    Coefficients and threshold come from recorded sessions of other agents: REFERENCE. By itself the code neither acts
    nor counts as a finding: that is for the fusion, which hears it.
    """

    name = "hijack"
    version = "1"
    reads: frozenset[type[Event]] = frozenset(
        {GoalStated, ToolCallProposed, ToolResultObserved, TurnEnded, SessionEnded}
    )
    needs = frozenset({Feature.INTENT, Feature.MARGIN, Feature.PROVENANCE})

    def __init__(self, fitted: Fitted | None = None) -> None:
        self._fitted = fitted or shipped()
        self._weights = tuple(self._fitted.model.weights.items())
        self.bands: Mapping[str, Band] = {
            "hijack.call": Band(
                alert=self._fitted.alert,
                status=Status.REFERENCE,
                acts=False,
                finds=False,
                source=self._fitted.source,
            )
        }

    def begin(self) -> HijackState:
        """Return an empty state."""
        return HijackState()

    def update(self, state: HijackState, event: Event, window: Window) -> tuple[Reading | Failure, ...]:
        """Score a proposed call, and say once what could not be seen of the calls before it."""
        if isinstance(event, ToolResultObserved):
            state.shown += isinstance(event.text, str)
        elif isinstance(event, TurnEnded):
            state.ends = True
        elif isinstance(event, SessionEnded) and not state.ends and not state.shown and state.newest > 1:
            # Of a host that ends no turn: calls that are made together have no results before each other.
            return (self._blind(f"what {state.newest:,} calls returned was not shown"),)
        if not isinstance(event, ToolCallProposed):
            return ()
        owed = state.call(event.turn)
        if event.arguments is UNSET:
            return (self._blind("the channel did not show the arguments of the call"),)
        if not window.goal:
            return (self._blind("no goal was stated before the call"),)
        call = window.call
        shown = None if call is None else stakes(call)
        if call is None or call.margin is None or shown is None:
            return (self._blind("margin and origins of the call were not folded"),)
        features: dict[str, float] = asdict(shown)
        reading = self._reading(call, call.margin, features, window)
        return (reading, *self._unseen(state, call.margin.lost, owed))

    def _unseen(self, state: HijackState, lost: int, owed: int) -> Iterator[Failure]:
        # Told when it begins and when it has doubled: of a session that goes on for days, every call would say it.
        if lost > 2 * state.told:
            state.told = lost
            yield self._blind(f"{lost:,} sentences of untrusted text were too many to be compared")
        if owed > 2 * state.owed:
            state.owed = owed
            yield self._blind(f"what {owed:,} of the calls before returned was not shown")

    def _blind(self, detail: str) -> Failure:
        return Failure(detector=self.name, version=self.version, cause=Cause.NO_EVIDENCE, detail=detail)

    def _reading(self, call: Call, margin: Margin, features: Mapping[str, float], window: Window) -> Reading:
        # Most numbers are 0 and add nothing.
        terms = {name: weight * features[name] for name, weight in self._weights if features.get(name)}
        score = probability(self._fitted.model.bias + sum(terms.values()))
        evidence = tuple(_evidence(call, margin, window)) if score >= self._fitted.alert else ()
        return Reading(
            detector=self.name,
            version=self.version,
            code="hijack.call",
            score=score,
            evidence=evidence,
            # What raised the score comes first, in log-odds.
            facts=tuple([Fact(name, term) for name, term in sorted(terms.items(), key=_falling) if term]),
        )


def _falling(term: tuple[str, float]) -> float:
    return -term[1]


def _evidence(call: Call, margin: Margin, window: Window) -> Iterator[Evidence]:
    """Yield the passage that explains the call, then each argument that untrusted text gave, the weightiest first."""
    if margin.seq is not None:
        yield Evidence(
            kind="hijack.passage",
            seqs=(margin.seq, call.seq),
            expected="a call that the goal explains",
            observed=window.quoted(margin.seq, margin.start, margin.end),
        )
    foreign = [origin for origin in call.origins or () if origin.origin is Origin.TOOL_RESULT]
    for origin in sorted(foreign, key=_weight)[:_MOST_ARGUMENTS]:
        kind = "hijack.carried_link" if origin.within else f"hijack.{origin.role}"
        seqs = (call.seq,) if origin.seq is None else (origin.seq, call.seq)
        yield Evidence(
            kind=kind,
            seqs=seqs,
            path=origin.path,
            expected="a value from the user or from a record that nobody else writes",
            observed=window.quoted(origin.seq, origin.start, origin.end),
        )


_ORDER = (Role.CREDENTIAL, Role.COMMAND, Role.TARGET, Role.CONTENT, Role.SELECTOR, Role.CONTROL)


def _weight(origin: ArgumentOrigin) -> int:
    return _ORDER.index(origin.role)
