"""From signals to one decision: the whole table in one place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import force_setattr

from theodolite.core.intent import Effect
from theodolite.core.reading import Cause, Failure, Level, Signal, Status

__all__ = ("Action", "Decision", "Mode", "Outcome", "Policy", "highest", "outcome")


class Action(StrEnum):
    """What a decision asks of the host, from least to most."""

    LOG_ONLY = "log_only"
    ELEVATED_REVIEW = "elevated_review"
    RESTRICTED_MODE = "restricted_mode"


_ORDER = {action: place for place, action in enumerate(Action)}


def highest(actions: Iterable[Action]) -> Action:
    """Return the highest of some actions; LOG_ONLY when there is none."""
    return max(actions, key=_ORDER.__getitem__, default=Action.LOG_ONLY)


class Mode(StrEnum):
    """How far a detector may go: refuse calls, ask for review, or only be recorded."""

    ENFORCE = "enforce"
    WARN = "warn"
    OBSERVE = "observe"


# Payload contracts are exact, so that they start by refusing; the operator may say otherwise.
STARTING_MODES: Mapping[str, Mode] = MappingProxyType({"payload": Mode.ENFORCE})


class Decision(Struct, frozen=True, kw_only=True, gc=False):
    """The answer to one event, already redacted.

    `seq` is the event that brought it, `about` the event judged: the same, or for a settled inquiry the one that opened
    it. `allowed` is whether a proposed call may run. `open` counts inquiries not yet settled. `mode` is the furthest
    mode among the detectors that alarmed.
    """

    session: str
    seq: int
    about: int
    allowed: bool = True
    action: Action = Action.LOG_ONLY
    mode: Mode = Mode.OBSERVE
    signals: tuple[Signal, ...] = ()
    open: int = 0


class Policy(Struct, frozen=True, kw_only=True, gc=False):
    """The operator's choices.

    | what was said                              | action           | the call is refused                           |
    |--------------------------------------------|------------------|-----------------------------------------------|
    | failure, NO_EVIDENCE                       | log_only         | never                                         |
    | failure, anything else                     | log_only         | if `fail_closed` and the mode is ENFORCE      |
    | not alarmed, or the code does not act      | log_only         | never                                         |
    | alarmed, mode OBSERVE                      | log_only         | never                                         |
    | alarmed, EXACT                             | elevated_review  | in ENFORCE, or if `hold`                      |
    | alarmed, STRONG and CALIBRATED             | restricted_mode  | if `hold`                                     |
    | alarmed, anything else                     | elevated_review  | if `hold`                                     |
    | session restricted by a detector in ENFORCE| restricted_mode  | unless the tool is known only to read         |

    A restriction lasts until an operator clears it. Nothing here ends a session. Raises ValueError for a mode that is
    none; `modes` is copied, so that nobody changes it later.
    """

    modes: Mapping[str, Mode] = {}
    default: Mode = Mode.WARN
    hold: bool = False
    fail_closed: bool = False

    def __post_init__(self) -> None:
        force_setattr(self, "modes", MappingProxyType({name: Mode(mode) for name, mode in self.modes.items()}))
        force_setattr(self, "default", Mode(self.default))

    def mode(self, detector: str) -> Mode:
        """Return the mode of a detector."""
        return self.modes.get(detector) or STARTING_MODES.get(detector, self.default)

    def action(self, signal: Signal) -> Action:
        """Return what one signal asks for."""
        if not (signal.alarmed and signal.acts) or self.mode(signal.owner) is Mode.OBSERVE:
            return Action.LOG_ONLY
        if signal.level is Level.STRONG and signal.status is Status.CALIBRATED:
            return Action.RESTRICTED_MODE
        return Action.ELEVATED_REVIEW

    def refuses(self, signal: Signal) -> bool:
        """Whether one signal about a proposed call is enough to refuse it."""
        mode = self.mode(signal.owner)
        if isinstance(signal.said, Failure):
            return self.fail_closed and mode is Mode.ENFORCE and signal.said.cause is not Cause.NO_EVIDENCE
        if self.action(signal) is Action.LOG_ONLY:
            return False
        return self.hold or (signal.status is Status.EXACT and mode is Mode.ENFORCE)

    def decide(
        self,
        *,
        session: str,
        seq: int,
        about: int,
        signals: tuple[Signal, ...] = (),
        call: Effect | None = None,
        restricted: Collection[str] = (),
        open_inquiries: int = 0,
    ) -> Decision:
        """Return the decision about one event.

        `call` is the effect of the tool when the event is a proposed call, else None. `restricted` names the detectors
        whose restriction stands, those of this event included.
        """
        actions = [self.action(signal) for signal in signals]
        if restricted:
            actions.append(Action.RESTRICTED_MODE)
        allowed = call is None or not (
            any(map(self.refuses, signals))
            or (call is not Effect.READ and any(self.mode(name) is Mode.ENFORCE for name in restricted))
        )
        modes = {self.mode(signal.owner) for signal in signals if signal.alarmed}
        return Decision(
            session=session,
            seq=seq,
            about=about,
            allowed=allowed,
            action=highest(actions),
            mode=next((mode for mode in Mode if mode in modes), Mode.OBSERVE),
            signals=signals,
            open=open_inquiries,
        )


class Outcome(StrEnum):
    """What a whole session comes to."""

    FINDING = "finding"
    FAILED = "failed"
    NOT_ENOUGH_EVIDENCE = "not_enough_evidence"
    CLEAN = "clean"


def outcome(
    decisions: Iterable[Decision], *, unreadable: int = 0, blind: Collection[str] = (), deciding: bool = True
) -> Outcome:
    """Return what the decisions of a session come to.

    `unreadable` counts parts of its recording that could not be read, `blind` names the enabled detectors that decide
    and never got their fields, `deciding` says whether any that decides is enabled at all. In this order: a finding, a
    failure, not enough evidence, clean.
    """
    failed = unreadable > 0
    for decision in decisions:
        if decision.action is not Action.LOG_ONLY or any(s.alarmed and s.finds for s in decision.signals):
            return Outcome.FINDING
        failed = failed or any(
            isinstance(s.said, Failure) and s.said.cause is not Cause.NO_EVIDENCE for s in decision.signals
        )
    if failed:
        return Outcome.FAILED
    return Outcome.CLEAN if deciding and not blind else Outcome.NOT_ENOUGH_EVIDENCE
