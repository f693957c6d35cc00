"""What a calibration keeps of a labeled session: no word of it, only what was said of it and what it counts among."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from theodolite.core.labels import Known
from theodolite.core.policy import Decision
from theodolite.core.reading import Failure, Reading, Signal
from theodolite.detectors.behavior.seen import Composite, ProbeSeen, composite, seen
from theodolite.detectors.behavior.settling import compared_in
from theodolite.runtime.replay import Sighting

__all__ = ("FOLDS", "FRONT", "Known", "Probed", "Sample", "sampled")

FOLDS = 5
"""Parts that the sessions are split into, to judge each by what was fitted without it (our choice, as is usual)."""

FRONT = 16
"""Calls of a session that are kept to fit a fusion. Our choice: of four scores of twenty calls that have nothing to do
with each other some thirteen calls may be the highest one, and recorded sessions have fewer."""


class Probed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What the probes of a session showed, and what they came to."""

    probes: tuple[ProbeSeen, ...] = ()
    composite: Composite | None = None


class Sample(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A session that was replayed as a live one is.

    `place` is its place in the dataset: which file, and the how manieth session of it. `highest` is the highest score
    of each code that spoke; a code that did not speak has 0. `front` has what was said of its calls, code by code, but
    for calls of which every score is below that of another; of more than FRONT the last one stands for the rest, and is
    in each score as high as any of them. `failed` counts the failures of each detector. `slices` are the names that it
    is counted under, such as its suite and its model; sessions with the same `task` are alike, and stay in one fold.
    `probed` is what its probes showed, where it was put any.
    """

    session: str
    known: Known
    place: tuple[int, int] = (0, 0)
    agent: str = ""
    models: tuple[str, ...] = ()
    task: str = ""
    slices: Mapping[str, str] = {}
    highest: Mapping[str, float] = {}
    front: tuple[Mapping[str, float], ...] = ()
    failed: Mapping[str, int] = {}
    probed: Probed | None = None

    @property
    def fold(self) -> int:
        """Which of five folds the session is in: by its task, or by itself where that is not known."""
        return zlib.crc32((self.task or self.session).encode()) % FOLDS


def sampled(
    sighting: Sighting,
    known: Known,
    *,
    place: tuple[int, int] = (0, 0),
    task: str = "",
    slices: Mapping[str, str] | None = None,
    parts: Collection[str] = (),
) -> Sample:
    """Return what is kept of a session that was replayed; `parts` are the codes that a fusion may hear of a call.

    Readings of a model that is not the session's own are left out: they never act, and no threshold is for them.
    """
    highest: dict[str, float] = {}
    failed: dict[str, int] = {}
    for decision in sighting.decisions:
        for signal in decision.signals:
            said = signal.said
            if isinstance(said, Failure):
                failed[said.detector] = failed.get(said.detector, 0) + 1
            elif not said.surrogate:
                highest[said.code] = max(highest.get(said.code, 0.0), said.score)
    calls = [_said(row.decision.signals, parts) for row in sighting.calls] if parts else []
    return Sample(
        session=sighting.session,
        known=known,
        place=place,
        agent=sighting.agent,
        models=sighting.models,
        task=task,
        slices=dict(slices or {}),
        highest=highest,
        front=tuple(_front(calls)),
        failed=failed,
        probed=_probed(sighting.decisions),
    )


def _probed(decisions: Iterable[Decision]) -> Probed | None:
    probes: list[ProbeSeen] = []
    told: Composite | None = None
    for decision in decisions:
        said = [signal.said for signal in decision.signals]
        compared = compared_in(said)
        shown = None if compared is None or compared.surrogate else seen(compared)
        if shown is not None:
            probes.append(shown)
        for one in said:
            if isinstance(one, Reading) and not one.surrogate:
                told = composite(one) or told
    return Probed(probes=tuple(probes), composite=told) if probes else None


def _said(signals: Iterable[Signal], parts: Collection[str]) -> dict[str, float]:
    """Return the highest score of each of these codes that was said of one call."""
    said: dict[str, float] = {}
    for signal in signals:
        one = signal.said
        if isinstance(one, Reading) and one.code in parts and not one.surrogate and one.score > 0.0:
            said[one.code] = max(said.get(one.code, 0.0), one.score)
    return said


def _front(calls: Iterable[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """Return the calls that no other is at least as high as in everything: a sum of what rises is highest at one.

    Which one depends on the weights. So of too many none is left out, or thresholds would be below what new sessions
    come to: those of the smallest sums are put together into one, with the highest of each of their scores.
    """
    front: list[Mapping[str, float]] = []
    for call in calls:
        if any(_covers(other, call) for other in front):
            continue
        front = [other for other in front if not _covers(call, other)]
        front.append(call)
    front.sort(key=lambda call: -sum(call.values()))
    return front if len(front) <= FRONT else [*front[: FRONT - 1], _envelope(front[FRONT - 1 :])]


def _envelope(calls: Iterable[Mapping[str, float]]) -> dict[str, float]:
    highest: dict[str, float] = {}
    for call in calls:
        for code, score in call.items():
            highest[code] = max(highest.get(code, 0.0), score)
    return highest


def _covers(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return all(one.get(code, 0.0) >= score for code, score in other.items())
