"""What a session showed, and what could therefore not be judged."""

from __future__ import annotations

from msgspec import Struct

__all__ = ("Coverage", "Sight")


class Sight(Struct, frozen=True, kw_only=True, gc=False):
    """What one detector got to see. `missing` names event types that it reads and that never came.

    `blind` means that it could not judge all that it should have: nothing that it reads ever came, or its evidence was
    missing at least once. `decides`: an alarm of it may act or counts as a finding.
    """

    detector: str
    version: str
    decides: bool
    blind: bool
    spoke: int
    failed: int
    missing: tuple[str, ...] = ()


class Coverage(Struct, frozen=True, kw_only=True, gc=False):
    """Counts of what came: events by type, events by channel, fields that the channel did not show, quiet decisions.

    `unset` maps `Type.field` to how often it was not shown; `failures` counts them by who failed: detectors, and also
    verifiers, askers that are gone, and the store.
    """

    events: dict[str, int] = {}
    channels: dict[str, int] = {}
    unset: dict[str, int] = {}
    failures: dict[str, int] = {}
    detectors: tuple[Sight, ...] = ()
    quiet: int = 0
    unreadable: int = 0

    @property
    def blind(self) -> tuple[str, ...]:
        """The detectors that decide and could not judge."""
        return tuple(sight.detector for sight in self.detectors if sight.blind and sight.decides)
