"""ShadowMemory: how much the wording of a session's steps changes, with permission and deviation.

The semantics of zeph's ShadowMemory as its documentation states them. Where its code of May 2026 does otherwise, the
documentation is followed: a summary is cut at 100 characters (the code: 100 bytes), and two empty summaries are at
the greatest distance (the code: at none).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct

from theodolite.core.calibration import Band
from theodolite.core.detector import Feature
from theodolite.core.event import Event, ToolCallProposed, TurnEnded
from theodolite.core.intent import Permission
from theodolite.core.reading import Evidence, Fact, Reading
from theodolite.core.window import Window
from theodolite.stats.jaccard import jaccard_distance

__all__ = ("Batch", "GoalDriftResult", "ShadowEvent", "ShadowMemory", "ShadowMemoryConfig", "ShadowMemoryDetector")

# The numbers of zeph's ShadowMemory: its documentation, "Algorithm". None of them is calibrated.
SUMMARY_CHARACTERS = 100
WEIGHTS = (0.5, 0.25, 0.25)
ESCALATION = 0.3
DEVIATION_SHARE = 0.5
# More events of one step than this are not kept; no recorded step that we have read holds more than 30 calls.
MAX_BATCH = 256


class ShadowMemoryConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The settings of zeph's ShadowMemory, with its defaults.

    `window_size` and `max_events` count events, `drift_threshold` is a score in (0, 1]. With every input at its worst
    the score is 0.825, so that a higher threshold can never alert.
    Raises ValueError when a number is out of range.
    """

    enabled: bool = False
    window_size: int = 8
    max_events: int = 64
    drift_threshold: float = 0.6

    def __post_init__(self) -> None:
        if self.window_size < 1:
            raise ValueError(f"window_size must be at least 1, not {self.window_size}")
        if self.max_events < 0:
            raise ValueError(f"max_events must be at least 0, not {self.max_events}")
        if not 0.0 < self.drift_threshold <= 1.0:
            raise ValueError(f"drift_threshold must be in (0, 1], not {self.drift_threshold}")


class ShadowEvent(Struct, frozen=True, kw_only=True, gc=False):
    """One step: the tools of a batch, the highest permission class among them, and what the step was for."""

    turn: int
    tools: list[str] | tuple[str, ...] = ()
    max_permission_class: int = 0
    deviation_score: float = 0.0
    goal_summary: str = ""

    def __repr__(self) -> str:
        """Show the event without its summary, which quotes the session."""
        return (
            f"ShadowEvent(turn={self.turn}, tools={self.tools}, max_permission_class={self.max_permission_class}, "
            f"deviation_score={self.deviation_score}, goal_summary='[REDACTED]')"
        )


class GoalDriftResult(Struct, frozen=True, gc=False):
    """A drift score in [0, 0.825] and whether it is at or over the threshold."""

    score: float
    should_alert: bool


class _Step(Struct, array_like=True, gc=False):
    distance: float
    permission: int
    deviates: bool


class ShadowMemory(Struct, kw_only=True):
    """The steps of one session in a window, scored as they come.

    `record` and `goal_drift_score` are O(1) whatever the window (the original's score is linear in it). Memory: one
    small tuple per step of the window and the words of the last summary.

    Limits: synonyms defeat it and repeated wording hides from it; it compares each step with the one before, not with
    the goal. On recorded sessions it flags 47 % of the harmless ones at its best threshold.

    >>> memory = ShadowMemory.new(ShadowMemoryConfig(enabled=True))
    >>> for turn, summary in enumerate(["read the invoice", "pay the attacker"]):
    ...     memory.record(ShadowEvent(turn=turn, goal_summary=summary, max_permission_class=turn))
    >>> result = memory.goal_drift_score()
    >>> round(result.score, 3), result.should_alert
    (0.475, False)
    >>> ShadowMemory.new(ShadowMemoryConfig()) is None
    True
    """

    settings: ShadowMemoryConfig
    steps: list[_Step] = []
    oldest: int = 0
    words: frozenset[str] = frozenset()
    distances: float = 0.0
    deviating: int = 0
    recorded: int = 0

    @classmethod
    def new(cls, config: ShadowMemoryConfig) -> ShadowMemory | None:
        """Return an empty memory, or None when the config has `enabled = false`."""
        return cls(settings=config) if config.enabled else None

    def config(self) -> ShadowMemoryConfig:
        """Return the config that it was made with."""
        return self.settings

    def __len__(self) -> int:
        """Return how many events are kept: at most `max_events`."""
        return min(self.recorded, self.settings.max_events)

    def len(self) -> int:
        """Return how many events are kept, under the original's name."""
        return len(self)

    def is_empty(self) -> bool:
        """Whether nothing is kept."""
        return len(self) == 0

    def record(self, event: ShadowEvent) -> None:
        """Append a step; the oldest one falls out when `max_events` are kept. The summary is cut at 100 characters."""
        capacity = min(self.settings.window_size, self.settings.max_events)
        if capacity == 0:
            return
        words = frozenset(event.goal_summary[:SUMMARY_CHARACTERS].split())
        step = _Step(
            jaccard_distance(self.words, words),
            event.max_permission_class,
            event.deviation_score > self.settings.drift_threshold * DEVIATION_SHARE,
        )
        self.words = words
        self.recorded += 1
        self.deviating += step.deviates
        if len(self.steps) < capacity:
            if self.steps:
                self.distances += step.distance
            self.steps.append(step)
            return
        self._replace_oldest(step)

    def _replace_oldest(self, step: _Step) -> None:
        steps, place = self.steps, self.oldest
        self.deviating -= steps[place].deviates
        steps[place] = step
        self.oldest = place = (place + 1) % len(steps)
        # The distance of the step that is now the oldest leads out of the window. Once a lap the sum is made anew, so
        # that rounding does not build up.
        if place == 0:
            self.distances = math.fsum(item.distance for item in steps[1:])
        elif len(steps) > 1:
            self.distances += step.distance - steps[place].distance
        else:
            self.distances = 0.0

    def goal_drift_score(self) -> GoalDriftResult:
        """Return the score of the window; 0 and no alert while it holds fewer than two steps."""
        count = len(self.steps)
        if count <= 1:
            return GoalDriftResult(0.0, should_alert=False)
        start, end = self.steps[self.oldest % count], self.steps[self.oldest - 1]
        semantic, escalation, deviation = WEIGHTS
        score = (
            semantic * max(0.0, self.distances) / (count - 1)
            + escalation * (ESCALATION if end.permission > start.permission else 0.0)
            + deviation * self.deviating / count
        )
        return GoalDriftResult(score, should_alert=score >= self.settings.drift_threshold)


class Batch(Struct, kw_only=True):
    """What the detector remembers of a session: its memory, and the calls of the step that is under way."""

    memory: ShadowMemory
    seqs: list[int] = []
    tools: list[str] = []
    summary: str = ""
    permission: int = Permission.READ
    deviation: float = 0.0


class ShadowMemoryDetector:
    """Feeds ShadowMemory with the batches of a session: the text of the calls, their permission, their margin.

    State: one Batch a session, bounded. Cost: O(1) per event, beside the margin's. A batch ends with TurnEnded. Its
    code neither acts nor counts as a finding: at its best threshold it flags 47 % of harmless recorded sessions.

    Without `deviation` the margin is not folded for it. That is cheap, and as blind as the original was wired: the
    score then ends at 0.575, below the default threshold.
    """

    name = "shadow_memory"
    version = "1"
    reads: frozenset[type[Event]] = frozenset({ToolCallProposed, TurnEnded})
    settings = ShadowMemoryConfig

    def __init__(self, config: ShadowMemoryConfig | None = None, *, deviation: bool = True) -> None:
        self.needs = frozenset({Feature.INTENT, Feature.MARGIN} if deviation else {Feature.INTENT})
        self._config = ShadowMemoryConfig(enabled=True) if config is None else config
        self.bands: Mapping[str, Band] = {
            "shadow_memory.goal_drift": Band(
                alert=self._config.drift_threshold,
                acts=False,
                finds=False,
                source="drift_threshold of zeph's ShadowMemory, an estimate",
            )
        }

    def begin(self) -> Batch:
        """Return an empty memory."""
        return Batch(memory=ShadowMemory(settings=self._config))

    def update(self, state: Batch, event: Event, window: Window) -> tuple[Reading, ...]:
        """Take a call into the batch, or end the batch and score it."""
        if isinstance(event, ToolCallProposed):
            self._take(state, window)
            return ()
        if not (state.seqs and isinstance(event, TurnEnded)):
            return ()
        state.memory.record(
            ShadowEvent(
                turn=event.turn,
                tools=state.tools,
                max_permission_class=state.permission,
                deviation_score=state.deviation,
                goal_summary=state.summary,
            )
        )
        seqs = tuple(state.seqs)
        state.seqs, state.tools, state.summary = [], [], ""
        state.permission, state.deviation = Permission.READ, 0.0
        return (self._reading(state.memory, seqs),)

    def _take(self, state: Batch, window: Window) -> None:
        call = window.call
        if call is None or len(state.seqs) >= MAX_BATCH:
            return
        state.seqs.append(call.seq)
        state.tools.append(call.intent.tool)
        if len(state.summary) < SUMMARY_CHARACTERS:
            state.summary = f"{state.summary} {call.text[:SUMMARY_CHARACTERS]}".lstrip()
        state.permission = max(state.permission, call.intent.permission)
        if call.margin is not None:
            # From [0.5, 1], where untrusted text explains the call better, to the [0, 1] of a deviation.
            state.deviation = max(state.deviation, 2.0 * call.margin.score - 1.0)

    def _reading(self, memory: ShadowMemory, seqs: tuple[int, ...]) -> Reading:
        return Reading(
            detector=self.name,
            version=self.version,
            code="shadow_memory.goal_drift",
            score=memory.goal_drift_score().score,
            evidence=(Evidence(kind="shadow_memory.step", seqs=seqs),),
            facts=(Fact("steps", float(len(memory.steps))),),
        )
