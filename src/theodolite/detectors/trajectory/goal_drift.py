"""Slow drift: calls that the user's goal explains less and less, summed up over many turns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import UNSET, Struct, field

from theodolite.core.calibration import Band, Dataset
from theodolite.core.detector import Feature
from theodolite.core.event import Event, GoalStated, MessageObserved, ToolCallProposed, TurnEnded
from theodolite.core.reading import Cause, Evidence, Fact, Failure, Reading, Status
from theodolite.core.window import Window
from theodolite.stats.cusum import Cusum

__all__ = ("Fitted", "GoalDriftDetector", "GoalDriftState", "shipped")

# Turns that evidence names: where a sum began matters less than what went into it last.
_NAMED = 16


class Fitted(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The allowance and the threshold with what they were fitted on: `benchmarks/drift.py --fit` writes it.

    `allowance` is half-way between the mean leads of turns under their own, `stated` goal, and under a goal that nobody
    stated, `unstated`. `alert` is the score that at most a share `alpha` of sessions with stated goals is above.
    """

    allowance: float
    stated: float
    unstated: float
    alert: float
    alpha: float
    source: str
    dataset: Dataset


@cache
def shipped() -> Fitted:
    """Return the numbers that come with the package. Reads its file once."""
    document = files("theodolite.detectors.trajectory").joinpath("goal_drift.json").read_bytes()
    return msgspec.json.decode(document, type=Fitted)


class GoalDriftState(Struct, kw_only=True):
    """The sum, and the calls of the turn under way and of the turns that went into the sum last. Bounded."""

    cusum: Cusum = field(default_factory=lambda: Cusum(allowance=shipped().allowance))
    leads: float = 0.0
    calls: int = 0
    newest: int = 0
    unjudged: int = 0
    seqs: list[int] = []


class GoalDriftDetector:
    """Sums up, turn by turn, how much less than usual the goal explains the calls; the user's words begin it anew.

    Scored when a turn ends, with all calls of its batch: their mean lead (`core.intent.Margin`) above an allowance
    goes into a one-sided CUSUM. A goal that the user states or amends resets it; what a tool result says does not.
    The score is sum / (1 + sum). State: a few numbers. Cost: O(1) beside the margin.

    Source: Page, 1954; the event after each batch and its name are zeph's ShadowMemory's. Limits: it is slow and weak,
    since single turns vary more than a drift adds; it finds, and does not act. Its figures are of spliced sessions.
    """

    name = "goal_drift"
    version = "1"
    reads: frozenset[type[Event]] = frozenset({GoalStated, MessageObserved, ToolCallProposed, TurnEnded})
    needs = frozenset({Feature.INTENT, Feature.MARGIN})

    def __init__(self, fitted: Fitted | None = None) -> None:
        self._fitted = fitted or shipped()
        self.bands: Mapping[str, Band] = {
            "goal_drift.slow": Band(
                alert=self._fitted.alert,
                status=Status.REFERENCE,
                acts=False,
                finds=False,
                source=self._fitted.source,
            )
        }

    def begin(self) -> GoalDriftState:
        """Return a sum of nothing."""
        return GoalDriftState(cusum=Cusum(allowance=self._fitted.allowance))

    def update(self, state: GoalDriftState, event: Event, window: Window) -> tuple[Reading | Failure, ...]:
        """Take a call into the turn, begin anew where the user spoke, or score the turn that ended."""
        if isinstance(event, ToolCallProposed):
            call = window.call
            if event.arguments is UNSET or not window.goal:
                state.unjudged += 1
            elif call is not None and call.margin is not None:
                state.leads += call.margin.lead
                state.calls += 1
                state.newest = call.seq
        elif isinstance(event, TurnEnded):
            unjudged, state.unjudged = state.unjudged, 0
            if state.calls:
                return (self._scored(state),)
            if unjudged:
                return (self._blind(f"no goal, or no arguments, were shown of {unjudged} calls of this turn"),)
        elif event.source.trusted and (isinstance(event, GoalStated) or _from_user(event)):
            state.cusum.reset()
            state.seqs = []
        return ()

    def _blind(self, detail: str) -> Failure:
        return Failure(detector=self.name, version=self.version, cause=Cause.NO_EVIDENCE, detail=detail)

    def _scored(self, state: GoalDriftState) -> Reading:
        step = state.leads / state.calls
        value = state.cusum.update(step)
        state.seqs = [*state.seqs[1 - _NAMED :], state.newest] if value else []
        state.leads, state.calls = 0.0, 0
        score = value / (1.0 + value)
        alarmed = score >= self._fitted.alert
        return Reading(
            detector=self.name,
            version=self.version,
            code="goal_drift.slow",
            score=score,
            evidence=(Evidence(kind="goal_drift.turns", seqs=tuple(state.seqs)),) if alarmed else (),
            facts=(Fact("step", step), Fact("sum", value)),
        )


def _from_user(event: Event) -> bool:
    return isinstance(event, MessageObserved) and event.role == "user"
