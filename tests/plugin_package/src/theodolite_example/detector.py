"""A detector of capitals."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, Struct

from theodolite.core.calibration import Band
from theodolite.core.detector import Feature
from theodolite.core.event import Event, MessageObserved
from theodolite.core.reading import Evidence, Reading
from theodolite.core.window import Window

__all__ = ("ShoutingDetector", "ShoutingState")


class ShoutingState(Struct, kw_only=True):
    """How many messages were read."""

    messages: int = 0


class ShoutingDetector:
    """Says which share of an assistant's letters are capitals. An example, not a monitor: it neither acts nor finds."""

    name = "shouting"
    version = "1"
    reads: frozenset[type[Event]] = frozenset({MessageObserved})
    needs: frozenset[Feature] = frozenset()
    bands: Mapping[str, Band] = {
        "shouting.capitals": Band(alert=0.9, acts=False, finds=False, source="an example, nothing was measured")
    }

    def begin(self) -> ShoutingState:
        """Return a count of nothing."""
        return ShoutingState()

    def update(self, state: ShoutingState, event: Event, window: Window) -> tuple[Reading, ...]:
        """Score a message of the assistant."""
        del window
        if not isinstance(event, MessageObserved) or event.text is UNSET or event.role != "assistant":
            return ()
        state.messages += 1
        letters = [letter for letter in str(event.text) if letter.isalpha()]
        share = sum(letter.isupper() for letter in letters) / max(1, len(letters))
        evidence = (Evidence(kind="shouting.message", seqs=(event.seq,)),)
        return (
            Reading(detector=self.name, version=self.version, code="shouting.capitals", score=share, evidence=evidence),
        )
