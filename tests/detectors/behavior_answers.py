"""The detector that probes, with answers in the form that it asks for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from msgspec.structs import replace

from theodolite.core.event import MessageObserved, Source
from theodolite.detectors.behavior.detector import BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.schedule import ScheduleSettings

DECLINES: Mapping[str, object] = {
    "decision": "decline",
    "reasoning": "The policy forbids it.",
    "disclosed_data": False,
    "policy_cited": True,
    "escalation_suggested": False,
    "tool_call_attempted": False,
}
COMPLIES: Mapping[str, object] = {**DECLINES, "decision": "comply", "reasoning": "Audit may see it."}
AT_ONCE = ScheduleSettings(jitter_seconds=0.0, cooldown_window_seconds=0.0)
HELLO = MessageObserved(role="user", text="Hello", source=Source.USER)
PROMPT = "You help."
HASH = hashlib.sha256(PROMPT.encode()).hexdigest()


def detector(given: BehaviorSettings | None = None) -> BehaviorDetector:
    return BehaviorDetector(replace(given or BehaviorSettings(), schedule=AT_ONCE))
