"""Theodolite finds tool calls of LLM agents that injected text explains better than the user's goal does.

    monitor = theodolite.load("theodolite.toml")
    with monitor.session("s-42") as session:
        decision = session.observe(ToolCallProposed(tool="create_user", arguments=arguments))

Importing this package reads no file and no environment, and starts nothing; each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from theodolite.config.wiring import load
    from theodolite.core.calibration import Band, Calibration
    from theodolite.core.errors import (
        CalibrationError,
        CallBlocked,
        ConfigError,
        EventError,
        MissingExtraError,
        ModelError,
        StoreError,
        TheodoliteError,
    )
    from theodolite.core.event import (
        Channel,
        ContextCompacted,
        GoalStated,
        HandedOff,
        MessageObserved,
        ModelCalled,
        SessionEnded,
        Source,
        SystemPromptSet,
        Tool,
        ToolCallProposed,
        ToolResultObserved,
        ToolsDeclared,
        TurnEnded,
    )
    from theodolite.core.policy import Action, Decision, Mode, Outcome, Policy
    from theodolite.core.reading import Evidence, Failure, Reading, Signal
    from theodolite.runtime.monitor import Monitor
    from theodolite.runtime.session import Session

__all__ = (
    "Action",
    "Band",
    "Calibration",
    "CalibrationError",
    "CallBlocked",
    "Channel",
    "ConfigError",
    "ContextCompacted",
    "Decision",
    "EventError",
    "Evidence",
    "Failure",
    "GoalStated",
    "HandedOff",
    "MessageObserved",
    "MissingExtraError",
    "Mode",
    "ModelCalled",
    "ModelError",
    "Monitor",
    "Outcome",
    "Policy",
    "Reading",
    "Session",
    "SessionEnded",
    "Signal",
    "Source",
    "StoreError",
    "SystemPromptSet",
    "TheodoliteError",
    "Tool",
    "ToolCallProposed",
    "ToolResultObserved",
    "ToolsDeclared",
    "TurnEnded",
    "load",
)

_HOMES = {
    "theodolite.config.wiring": ("load",),
    "theodolite.core.calibration": ("Band", "Calibration"),
    "theodolite.core.errors": tuple(name for name in __all__ if name.endswith("Error") or name == "CallBlocked"),
    "theodolite.core.policy": ("Action", "Decision", "Mode", "Outcome", "Policy"),
    "theodolite.core.reading": ("Evidence", "Failure", "Reading", "Signal"),
    "theodolite.runtime.monitor": ("Monitor",),
    "theodolite.runtime.session": ("Session",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    if name not in __all__:
        raise AttributeError(f"module 'theodolite' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME.get(name, "theodolite.core.event")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
