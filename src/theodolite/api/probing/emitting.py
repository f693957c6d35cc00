"""What other components are told: of significant signals only, one way, by protocols of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from theodolite.api.probing.signals import DriftAction, DriftSignal, ProbeReport

__all__ = ("CoreSink", "SentinelSink", "emit_to_sentinel", "feed_audit", "notify_core")


class CoreSink(Protocol):
    """axor-core's BehavioralDriftObserver."""

    def on_drift(self, session_id: str, agent_id: str, action: str) -> None:
        """Take note of a session that has drifted."""
        ...


class SentinelSink(Protocol):
    """axor-sentinel's ProbeTaintBridge."""

    def mark_session_tainted(self, session_id: str, agent_id: str) -> None:
        """Take note of a session that is tainted."""
        ...


def notify_core(signal: DriftSignal, sink: CoreSink) -> bool:
    """Tell a core of a significant signal; return whether it was told. Raises what the sink raises.

    The action is `elevated_review` or `restricted_mode`: the latter comes from a calibrated threshold alone.
    """
    if signal.recommended_action is DriftAction.LOG_ONLY:
        return False
    sink.on_drift(signal.session_id, signal.agent_id, signal.recommended_action.value)
    return True


def emit_to_sentinel(signal: DriftSignal, sink: SentinelSink) -> bool:
    """Tell a sentinel of a significant signal; return whether it was told. Raises what the sink raises."""
    if signal.recommended_action is DriftAction.LOG_ONLY:
        return False
    sink.mark_session_tainted(signal.session_id, signal.agent_id)
    return True


def feed_audit(report: ProbeReport, feed_fn: Callable[[dict[str, object]], object]) -> bool:
    """Give an audit the numbers of a significant report, under axor-eval's names; return whether it was given them.

    They are the same whether or not probes were explained; `longitudinal_signal` is UNCALIBRATED, `e_value` states its
    evidence. Raises what `feed_fn` raises.
    """
    if report.action is DriftAction.LOG_ONLY:
        return False
    feed_fn(
        {
            "session_id": report.session_id,
            "agent_id": report.signal.agent_id if report.signal is not None else "",
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
    return True
