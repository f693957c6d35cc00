"""What all sessions share: detectors, policy, store, and the queue of inquiries."""

from __future__ import annotations

import hmac
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from theodolite.core.budget import Budget
from theodolite.core.calibration import Band, Calibration, grade, in_force
from theodolite.core.detector import AnyDetector, Asker, asks
from theodolite.core.errors import ConfigError
from theodolite.core.event import AnyEvent, Event, InquirySettled
from theodolite.core.fusion import AnyFusion
from theodolite.core.inquiry import Inquiry
from theodolite.core.intent import Effect, Operator, ToolRule
from theodolite.core.policy import Policy
from theodolite.core.reading import Cause, Failure, Reading, Signal
from theodolite.core.redaction import Redactor
from theodolite.core.shelf import Shelf
from theodolite.core.store import Store
from theodolite.core.verifier import Case, Verifier
from theodolite.core.window import Window
from theodolite.runtime.answers import attempted
from theodolite.runtime.confidential import confidential_of
from theodolite.runtime.guarded import GuardedRedactor
from theodolite.runtime.population import PopulationWatch
from theodolite.runtime.purse import Purse
from theodolite.runtime.reuse import Reuse

if TYPE_CHECKING:
    from theodolite.runtime.drive import Panel

__all__ = ("Fleet",)


# Ids of sessions of which it is known how often they were opened. Our choice: a busy host's day.
_OPENED = 100_000


class Fleet:
    """The parts of an instrument, checked against each other; a Monitor makes one for its sessions.

    Raises ConfigError where detectors, fusions or verifiers share a name, a code is not its detector's, or an effect is
    none.
    """

    def __init__(  # noqa: PLR0913 - the parts of the instrument, by name
        self,
        *,
        detectors: Iterable[AnyDetector],
        fusions: Iterable[AnyFusion],
        verifiers: Iterable[Verifier],
        policy: Policy,
        store: Store | None,
        redactor: Redactor,
        calibration: Calibration | None,
        panel: Panel | None,
        effects: Operator,
        capacity: int,
        clock: Callable[[], float],
        budget: Budget,
        shelf: Shelf | None,
        secret: bytes,
        recorder: Callable[[AnyEvent], None] | None,
    ) -> None:
        self.detectors = tuple(detectors)
        self.fusions = tuple(fusions)
        self.speakers: tuple[AnyDetector | AnyFusion, ...] = (*self.detectors, *self.fusions)
        self.verifiers = tuple(verifiers)
        self.policy = policy
        self.store = store
        # A store of others may have no such method: that it fails is then known from `append` alone.
        self._ready: Callable[[], None] | None = getattr(store, "ready", None) if policy.fail_closed else None
        self.redactor = GuardedRedactor(redactor, confidential_of((*self.speakers, *self.verifiers)))
        self.calibration = calibration
        self.effects = _effects(effects)
        self.clock = clock
        self.purse = Purse(budget, clock)
        self.reuse = Reuse()
        self.shelf = shelf
        self._secret = secret
        self.recorder = recorder
        self.bands = _bands(self.speakers)
        self.versions = {one.name: one.version for one in (*self.speakers, *self.verifiers)}
        # What recordings hold is no part of it: who reads them has what they come to, in their order.
        self.population = PopulationWatch.of(calibration, self.speakers)
        self.in_force = {code: in_force(code, band, calibration) for code, band in self.bands.items()}
        self.askers = _askers(self.detectors, self.fusions, self.verifiers)
        # The codes that each may say. A verifier settles codes of detectors, and has no bands of its own.
        self._codes = {verifier.name: self.bands.keys() & verifier.codes for verifier in self.verifiers}
        self._codes.update({speaker.name: set(speaker.bands) for speaker in self.speakers})
        self.needs = frozenset(need for detector in self.detectors for need in detector.needs)
        self.readers: dict[type[Event], tuple[AnyDetector, ...]] = {
            kind: tuple([detector for detector in self.detectors if kind in detector.reads])
            for kind in {kind for detector in self.detectors for kind in detector.reads}
        }
        self._panel = panel
        self._capacity = capacity
        self._waiting: Counter[str] = Counter()
        self._opened: dict[str, int] = {}
        self._lock = threading.Lock()

    def grade(
        self, said: Reading | Failure, *, agent: str = "", models: Collection[str] = (), recorded: bool = False
    ) -> Signal:
        """Return what an answer is worth in a session of that agent and those models.

        A code that is none of its detector's or verifier's is worth a Failure. What was `recorded` may be said by who
        is not wired.
        """
        if isinstance(said, Reading) and not self._knows(said, recorded=recorded):
            detail = f"it gave the code {said.code}, which is none of its own"
            said = Failure(detector=said.detector, version=said.version, cause=Cause.MALFORMED, detail=detail)
        return grade(said, self.bands, self.calibration, agent=agent, models=models, wired=self.versions)

    def _knows(self, said: Reading, *, recorded: bool) -> bool:
        codes = self._codes.get(said.detector)
        return said.code in (self.bands if codes is None and recorded else codes or ())

    def judges(self, event: InquirySettled) -> bool:
        """Whether what an inquiry came to can be graded here, whoever asked."""
        known = event.asker in self.askers or any(isinstance(one, Reading) for one in event.said)
        return known and all(self._knows(one, recorded=True) for one in event.said if isinstance(one, Reading))

    def secret(self, session: str) -> bytes:
        """Return the secret of a session, from which its canaries and choices are drawn: a new one at each call.

        An id may be opened again, and what was planted before is then known to whoever saw it.
        """
        with self._lock:
            number = self._opened.get(session, 0)
            self._opened[session] = number + 1
            if len(self._opened) > _OPENED:
                del self._opened[next(iter(self._opened))]
        label = session if number == 0 else f"{session}\0{number}"
        return hmac.digest(self._secret, label.encode(), "sha256")

    def unready(self) -> list[Failure]:
        """Return why no evidence of a call could be kept, where the operator would rather have the call refused."""
        fault = None if self._ready is None else attempted(self._ready, "store", "1")
        return [] if fault is None else [fault]

    def second_opinion(self, signal: Signal, seq: int, window: Window) -> Inquiry | None:
        """Return the inquiry that may settle an ambiguous signal of that event, if there is a verifier for it."""
        able = [verifier for verifier in self.verifiers if signal.ambiguous and signal.code in verifier.codes]
        if not able:
            return None
        case = Case(signal=signal, events=tuple(window.recent()), intents=window.intents)
        return Inquiry(asker=able[0].name, version=able[0].version, about=seq, subject=case)

    def admit(self, session: str) -> bool:
        """Take a place for a session in the fleet's queue of inquiries, if there is one."""
        with self._lock:
            if self._waiting.total() >= self._capacity:
                return False
            self._waiting[session] += 1
            return True

    def hold(self, session: str, places: int) -> None:
        """Give back what places a session holds beyond so many."""
        with self._lock:
            if places:
                self._waiting[session] = places
            else:
                self._waiting.pop(session, None)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The ids of the sessions with inquiries that are not settled, the one that has waited longest first."""
        with self._lock:
            return tuple(self._waiting)

    @property
    def panel(self) -> Panel:
        """The models that answer, by role; an empty one fails every query."""
        if self._panel is None:
            # The event loop takes some 80 ms to import: only those who ask models pay for it.
            from theodolite.runtime.drive import Panel  # noqa: PLC0415

            self._panel = Panel()
        return self._panel


def _effects(effects: Operator) -> dict[str, Effect | ToolRule]:
    try:
        return {tool: rule if isinstance(rule, ToolRule) else Effect(rule) for tool, rule in effects.items()}
    except ValueError as error:
        known = ", ".join(Effect)
        raise ConfigError(f"the effect of a tool: {error}; it is one of {known}") from error


def _bands(speakers: Sequence[AnyDetector | AnyFusion]) -> dict[str, Band]:
    bands: dict[str, Band] = {}
    for speaker in speakers:
        for code, band in speaker.bands.items():
            if code.partition(".")[0] != speaker.name:
                raise ConfigError(f"the detector {speaker.name} may not say the code {code}: it begins with its name")
            bands[code] = band
    return bands


def _askers(
    detectors: Sequence[AnyDetector], fusions: Sequence[AnyFusion], verifiers: Sequence[Verifier]
) -> dict[str, Asker]:
    names = [detector.name for detector in detectors] + [fusion.name for fusion in fusions]
    names += [verifier.name for verifier in verifiers]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise ConfigError(f"two detectors, fusions or verifiers are called {double[0]}: leave one out")
    askers: dict[str, Asker] = {verifier.name: verifier for verifier in verifiers}
    askers.update({detector.name: detector for detector in detectors if asks(detector)})
    return askers
