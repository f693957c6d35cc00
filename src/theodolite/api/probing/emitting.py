"""What other components are told: of significant signals only, one way, by protocols of their own.

Each is told at once. Where a sink is asynchronous, await what is returned.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from typing import Protocol

from theodolite.api.probing.signals import DriftAction, DriftSignal, ProbeReport

__all__ = ("CoreSink", "SentinelSink", "Told", "emit_to_sentinel", "feed_audit", "notify_core")


class CoreSink(Protocol):
    """axor-core's BehavioralDriftObserver."""

    def on_drift(self, session_id: str, agent_id: str, action: str) -> object:
        """Take note of a session that has drifted."""
        ...


class SentinelSink(Protocol):
    """axor-sentinel's ProbeTaintBridge."""

    def mark_session_tainted(self, session_id: str, agent_id: str) -> object:
        """Take note of a session that is tainted."""
        ...


class Told:
    """Whether somebody was told: true or false, and it may be awaited, where the sink is a coroutine."""

    def __init__(self, given: object = None, *, told: bool) -> None:
        self._given = given
        self._told = told

    def __bool__(self) -> bool:
        return self._told

    def __await__(self) -> Generator[object, None, bool]:
        """Wait for the sink."""
        if inspect.isawaitable(self._given):
            yield from self._given.__await__()
        return self._told


def notify_core(signal: DriftSignal, sink: CoreSink) -> Told:
    """Tell a core of a significant signal; return whether it was told. Raises what the sink raises.

    The action is `elevated_review` or `restricted_mode`: the latter comes from a calibrated threshold alone.
    """
    if signal.recommended_action is DriftAction.LOG_ONLY:
        return Told(told=False)
    given = sink.on_drift(signal.session_id, signal.agent_id, signal.recommended_action.value)
    return Told(given, told=True)


def emit_to_sentinel(signal: DriftSignal, sink: SentinelSink) -> Told:
    """Tell a sentinel of a significant signal; return whether it was told. Raises what the sink raises."""
    if signal.recommended_action is DriftAction.LOG_ONLY:
        return Told(told=False)
    return Told(sink.mark_session_tainted(signal.session_id, signal.agent_id), told=True)


def feed_audit(report: ProbeReport, feed_fn: Callable[[dict[str, object]], object]) -> Told:
    """Give an audit the numbers of a significant report, under axor-eval's names; return whether it was given them.

    They are the same whether or not probes were explained; `longitudinal_signal` is UNCALIBRATED, `e_value` states its
    evidence. Raises what `feed_fn` raises.
    """
    if report.action is DriftAction.LOG_ONLY:
        return Told(told=False)
    given = feed_fn(
        {
            "session_id": report.session_id,
            "agent_id": report.agent_id,
            "overall_verdict": report.overall_verdict.value,
            "max_drift_score": report.max_drift_score,
            "escape_count": report.escape_count,
            "escape_rate": report.escape_rate,
            "longitudinal_signal": report.longitudinal_signal,
            "e_value": report.e_value,
            "calibration_status": report.calibration_status.value,
            "probes_sent": report.probes_sent,
        }
    )
    return Told(given, told=True)
