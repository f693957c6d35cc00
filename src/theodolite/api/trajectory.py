"""ShadowMemory under the names of zeph's `shadow_memory`: its quick start runs here with only its imports changed.

`ShadowMemoryConfig.enabled` is false by default, and `ShadowMemory.new` then returns None.
"""

from __future__ import annotations

from theodolite.detectors.trajectory.shadow_memory import (
    GoalDriftResult,
    ShadowEvent,
    ShadowMemory,
    ShadowMemoryConfig,
)

__all__ = ("GoalDriftResult", "ShadowEvent", "ShadowMemory", "ShadowMemoryConfig")
