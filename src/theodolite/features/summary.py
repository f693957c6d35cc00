"""The summary of a session, folded from its events. No text of a session gets into it."""

from __future__ import annotations

from msgspec import Struct

from theodolite.core.event import (
    ApprovalGiven,
    Event,
    GoalStated,
    MessageObserved,
    ToolResultObserved,
    TurnEnded,
)
from theodolite.core.intent import Call, NormalizedIntent, TargetKind
from theodolite.core.summary import CanonicalizedContextSummary, Escalation, Sensitivity
from theodolite.features.intents.names import named

__all__ = ("SummaryFold",)

_ORDER = tuple(Sensitivity)
# What the reach of a call says of what is at stake: our choice.
_AT_STAKE = {
    TargetKind.SYSTEM_PATH: Sensitivity.MEDIUM,
    TargetKind.PRIVATE_NETWORK: Sensitivity.MEDIUM,
    TargetKind.SECRET: Sensitivity.HIGH,
    TargetKind.CLOUD_METADATA: Sensitivity.CRITICAL,
    TargetKind.DOCKER_SOCKET: Sensitivity.CRITICAL,
}


class SummaryFold(Struct, kw_only=True):
    """What is summarized of a session. State: seven small values; O(1) per event.

    `trusted_user`: a user whom the host vouches for has spoken, and nobody else in the user's place.
    `prior_authorization`: a person allowed a call. `session_depth` counts turns, the one under way too.
    """

    vouched: bool = False
    disguised: bool = False
    approved: bool = False
    sensitivity: Sensitivity = Sensitivity.LOW
    highest: int = -1
    rises: int = 0
    external_reads: int = 0
    tainted: bool = False
    turns: int = 0

    def fold(self, event: Event, call: Call | None = None) -> None:
        """Take one event; `call` is what was folded about it, if it is a proposed call."""
        if call is not None:
            self._called(call.intent)
        elif isinstance(event, GoalStated) or (isinstance(event, MessageObserved) and event.role == "user"):
            self.vouched = self.vouched or event.source.trusted
            self.disguised = self.disguised or not event.source.trusted
        elif isinstance(event, ApprovalGiven):
            self.approved = True
        elif isinstance(event, TurnEnded):
            self.turns += 1
        elif isinstance(event, ToolResultObserved) and not event.source.trusted and not named(event.tool).local:
            self.external_reads += 1
            self.tainted = True

    def _called(self, intent: NormalizedIntent) -> None:
        at_stake = _AT_STAKE.get(intent.target_kind, Sensitivity.LOW)
        if intent.reads_secret_like_data:
            at_stake = max(at_stake, Sensitivity.HIGH, key=_ORDER.index)
        self.sensitivity = max(self.sensitivity, at_stake, key=_ORDER.index)
        if self.highest >= 0 and intent.permission > self.highest:
            self.rises += 1
        self.highest = max(self.highest, intent.permission)
        self.tainted = self.tainted or intent.after_external_read

    def summary(self) -> CanonicalizedContextSummary:
        """Return the summary as of the last event."""
        return CanonicalizedContextSummary(
            trusted_user=self.vouched and not self.disguised,
            prior_authorization=self.approved,
            data_sensitivity=self.sensitivity,
            escalation_chain=tuple(Escalation)[min(self.rises, 2)],
            external_reads_count=self.external_reads,
            taint_active=self.tainted,
            session_depth=self.turns + 1,
        )
