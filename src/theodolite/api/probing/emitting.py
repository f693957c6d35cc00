"""What other components are told: of significant signals only, one way, by protocols of their own.

Each is told at once. Where a sink is asynchronous, await what is returned.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from typing import Protocol

from theodolite.api.probing.given import able, called, of_kind
from theodolite.api.probing.payloads import report_payload
from theodolite.api.probing.signals import DriftAction, DriftSignal, ProbeReport

__all__ = ("CoreSink", "SentinelIntegration", "SentinelSink", "Told", "emit_to_sentinel", "feed_audit", "notify_core")


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

    The action is `elevated_review` or `restricted_mode`: the latter comes from a calibrated threshold alone. Raises
    ConfigError for what is no signal or no sink.
    """
    able("sink", sink, "on_drift")
    if of_kind("signal", signal, DriftSignal).recommended_action is DriftAction.LOG_ONLY:
        return Told(told=False)
    given = sink.on_drift(signal.session_id, signal.agent_id, signal.recommended_action.value)
    return Told(given, told=True)


def emit_to_sentinel(signal: DriftSignal, sink: SentinelSink) -> Told:
    """Tell a sentinel of a significant signal; return whether it was told. Raises what the sink raises.

    Raises ConfigError for what is no signal or no sink.
    """
    able("sink", sink, "mark_session_tainted")
    if of_kind("signal", signal, DriftSignal).recommended_action is DriftAction.LOG_ONLY:
        return Told(told=False)
    return Told(sink.mark_session_tainted(signal.session_id, signal.agent_id), told=True)


class SentinelIntegration:
    """Tells a sentinel of each significant report: one of the `integrations` of a ProbePipeline.

    Raises ConfigError for what is no sink.
    """

    def __init__(self, sink: SentinelSink) -> None:
        able("sink", sink, "mark_session_tainted")
        self.sink = sink

    async def emit(self, report: ProbeReport, action: DriftAction) -> None:
        """Tell of the session, once for each report whose action is significant. Raises what the sink raises."""
        if action is not DriftAction.LOG_ONLY:
            await Told(self.sink.mark_session_tainted(report.session_id, report.agent_id), told=True)


def feed_audit(report: ProbeReport, feed_fn: Callable[[dict[str, object]], object]) -> Told:
    """Give an audit the numbers of a significant report, as `report_payload` has them; return whether it was given.

    Raises what `feed_fn` raises, and ConfigError for what is no report or no function.
    """
    called("feed_fn", feed_fn)
    if of_kind("report", report, ProbeReport).action is DriftAction.LOG_ONLY:
        return Told(told=False)
    return Told(feed_fn(report_payload(report)), told=True)
