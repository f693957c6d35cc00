"""How a host hears of a finding where nothing is refused: which decisions are told, and the line of the log."""

from __future__ import annotations

import logging

from theodolite.core.policy import Action, Decision, Policy
from theodolite.core.reading import Failure, Reading, Signal

__all__ = ("logged", "loud")

_LOG = logging.getLogger("theodolite.integrations.langchain")

# Codes that a line names, and characters of a session's name and of a fault in it (our choice).
_CODES, _NAME, _FAULT = 6, 128, 200


def loud(decision: Decision, policy: Policy) -> bool:
    """Whether a decision is to be heard of: it refuses a call, or an alarm in it is a finding or asks for an action.

    A restriction that stands makes each later decision higher, and none of them loud by itself.
    """
    return not decision.allowed or any(_counts(signal, policy) for signal in decision.signals)


def logged(decision: Decision, fault: str = "") -> None:
    """Write a WARNING that names the session, the event, the codes and their scores, and nothing of the content.

    `fault` is why nobody else could be told, redacted: what the host's own code raised may hold keys of its own.
    """
    said = _said(decision)
    codes = [f"{code} {score}" for code, score in said[:_CODES]]
    codes += [f"{len(said) - _CODES} more"] * (len(said) > _CODES)
    _LOG.warning(
        "session %s, event %d: %s; action %s, %s%s%s",
        ascii(decision.session[:_NAME]),
        decision.about,
        ", ".join(codes) or "a restriction stands",
        decision.action.value,
        "nothing was refused" if decision.allowed else "the call was refused",
        f". More: theodolite explain {said[0][0]}" if said else "",
        f" (on_decision failed: {fault[:_FAULT]!a})" if fault else "",
    )


def _counts(signal: Signal, policy: Policy) -> bool:
    return signal.alarmed and (signal.finds or policy.action(signal) is not Action.LOG_ONLY)


def _said(decision: Decision) -> list[tuple[str, str]]:
    """Return the codes that a line names with their scores: what counts, or else what failed."""
    alarmed = [signal for signal in decision.signals if signal.alarmed]
    counted = [signal for signal in alarmed if signal.finds or signal.acts]
    failed = [signal for signal in decision.signals if isinstance(signal.said, Failure)]
    chosen = counted or alarmed or failed
    return list(
        dict.fromkeys(
            (signal.code, f"{signal.said.score:.2f}" if isinstance(signal.said, Reading) else "could not judge")
            for signal in chosen
        )
    )
