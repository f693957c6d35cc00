"""What a session has shown so far, counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import UNSET, Struct

from theodolite.core.calibration import Band
from theodolite.core.coverage import Coverage, Sight
from theodolite.core.detector import AnyDetector
from theodolite.core.event import AnyEvent, Event, MessageObserved, ToolCallProposed, ToolResultObserved
from theodolite.core.fusion import AnyFusion
from theodolite.core.policy import Decision
from theodolite.core.reading import Cause, Reading

__all__ = ("Tally",)

_SHOWN: dict[type[Event], str] = {ToolCallProposed: "arguments", ToolResultObserved: "text", MessageObserved: "text"}


class Tally(Struct, kw_only=True):
    """Counts of events, channels, fields not shown, and of what each detector said. O(1) per event."""

    events: dict[str, int] = {}
    channels: dict[str, int] = {}
    unset: dict[str, int] = {}
    spoke: dict[str, int] = {}
    failures: dict[str, int] = {}
    no_evidence: dict[str, int] = {}
    quiet: int = 0

    def saw(self, event: AnyEvent) -> None:
        """Count an event."""
        kind = type(event)
        name = kind.__name__
        _count(self.events, name)
        _count(self.channels, event.channel)
        field = _SHOWN.get(kind)
        if field is not None and getattr(event, field) is UNSET:
            _count(self.unset, f"{name}.{field}")

    def decided(self, decision: Decision) -> None:
        """Count who said what in a decision."""
        if not decision.signals:
            self.quiet += 1
            return
        for signal in decision.signals:
            said = signal.said
            if isinstance(said, Reading):
                _count(self.spoke, said.detector)
            else:
                _count(self.no_evidence if said.cause is Cause.NO_EVIDENCE else self.failures, said.detector)

    def failed(self, name: str) -> None:
        """Count a failure that is in no decision."""
        _count(self.failures, name)

    def coverage(
        self, detectors: Iterable[AnyDetector], bands: Mapping[str, Band], *, fusions: Iterable[AnyFusion] = ()
    ) -> Coverage:
        """Return the counts, and for each detector whether it could judge. `bands` are those in force."""
        return Coverage(
            events=dict(self.events),
            channels=dict(self.channels),
            unset=dict(self.unset),
            failures=dict(self.failures),
            detectors=(
                *[self._sight(detector, detector.reads, bands) for detector in detectors],
                # A fusion reads no event: it is as blind as those whom it hears, and says so itself.
                *[self._sight(fusion, frozenset(), bands) for fusion in fusions],
            ),
            quiet=self.quiet,
        )

    def _sight(
        self, detector: AnyDetector | AnyFusion, reads: frozenset[type[Event]], bands: Mapping[str, Band]
    ) -> Sight:
        wanted = sorted(kind.__name__ for kind in reads)
        missing = tuple([name for name in wanted if name not in self.events])
        spoke = self.spoke.get(detector.name, 0)
        return Sight(
            detector=detector.name,
            version=detector.version,
            decides=any(bands[code].acts or bands[code].finds for code in detector.bands),
            blind=detector.name in self.no_evidence or (spoke == 0 and bool(wanted) and len(missing) == len(wanted)),
            spoke=spoke,
            failed=self.failures.get(detector.name, 0),
            missing=missing,
        )


def _count(counts: dict[str, int], key: str) -> None:
    counts[key] = counts.get(key, 0) + 1
