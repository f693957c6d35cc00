"""Margin: how much better untrusted text explains a call than what the user asked for does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import UNSET, Struct

from theodolite.core.calibration import Band
from theodolite.core.detector import Feature
from theodolite.core.event import Event, GoalStated, ToolCallProposed, ToolResultObserved
from theodolite.core.intent import Call, Margin, Origin
from theodolite.core.reading import Cause, Evidence, Fact, Failure, Reading, Status
from theodolite.core.window import Window

__all__ = ("MarginDetector", "MarginState")

# Evidence is to be read by a person.
_MOST_ARGUMENTS = 8


class MarginState(Struct, kw_only=True):
    """How many sentences were said to be left out; what the margin needs is folded once for all detectors."""

    told: int = 0


class MarginDetector:
    """Scores each proposed call by how much better untrusted text explains it than the goal does.

    State: none of its own; the margin is a fold of the session. Cost per call: one look-up. Says NO_EVIDENCE where no
    goal was stated or the channel did not show the arguments.

    Says so, too, where sentences were left out: of a text over 512 of them the middle, and the oldest of a session over
    1,024. Limits: it compares words, so that an attacker who repeats the goal's words, or hides a value in another
    encoding, passes; a user who asks the agent to do what a document says looks like a hijack. Its threshold was fitted
    on recorded sessions of other agents: REFERENCE, which shows findings and never acts.
    """

    name = "margin"
    version = "1"
    reads: frozenset[type[Event]] = frozenset({GoalStated, ToolCallProposed, ToolResultObserved})
    needs = frozenset({Feature.INTENT, Feature.MARGIN, Feature.PROVENANCE})
    bands: Mapping[str, Band] = {
        "margin.untrusted": Band(
            alert=0.795,
            status=Status.REFERENCE,
            acts=False,
            source="benchmarks/margin.py --fit: at most 1 % of AgentDojo train's clean sessions reach it (2 of 287)",
        )
    }

    def begin(self) -> MarginState:
        """Return an empty state."""
        return MarginState()

    def update(self, state: MarginState, event: Event, window: Window) -> tuple[Reading | Failure, ...]:
        """Score a proposed call; say nothing about anything else."""
        if not isinstance(event, ToolCallProposed):
            return ()
        if event.arguments is UNSET:
            return (self._blind("the channel did not show the arguments of the call"),)
        if not window.goal:
            return (self._blind("no goal was stated before the call"),)
        call = window.call
        if call is None or call.margin is None:
            return (self._blind("the margin was not folded"),)
        reading = self._reading(call, call.margin, window)
        # Told when it begins and when it has doubled: of a session that goes on for days, every call would say it.
        if call.margin.lost <= 2 * state.told:
            return (reading,)
        state.told = call.margin.lost
        return (reading, self._blind(f"{state.told:,} sentences of untrusted text were too many to be compared"))

    def _blind(self, detail: str) -> Failure:
        return Failure(detector=self.name, version=self.version, cause=Cause.NO_EVIDENCE, detail=detail)

    def _reading(self, call: Call, margin: Margin, window: Window) -> Reading:
        alarmed = margin.score >= self.bands["margin.untrusted"].alert
        return Reading(
            detector=self.name,
            version=self.version,
            code="margin.untrusted",
            score=margin.score,
            evidence=tuple(self._evidence(call, margin, window)) if alarmed else (),
            facts=(Fact("goal", margin.goal), Fact("untrusted", margin.untrusted)),
        )

    def _evidence(self, call: Call, margin: Margin, window: Window) -> Iterator[Evidence]:
        yield Evidence(
            kind="margin.passage",
            seqs=(call.seq,) if margin.seq is None else (margin.seq, call.seq),
            expected="a call that the goal explains",
            observed=window.quoted(margin.seq, margin.start, margin.end),
        )
        stray = [origin for origin in call.origins or () if origin.origin is Origin.TOOL_RESULT]
        for origin in stray[:_MOST_ARGUMENTS]:
            seqs = (call.seq,) if origin.seq is None else (origin.seq, call.seq)
            yield Evidence(kind="margin.argument", seqs=seqs, path=origin.path)
