"""What a calibration keeps of a labelled session: the highest score of each code, and what it is counted among."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from theodolite.core.reading import Failure
from theodolite.runtime.replay import Sighting

__all__ = ("FOLDS", "Known", "Sample", "sampled")

FOLDS = 5
"""Parts that the sessions are split into, to judge each by what was fitted without it (our choice, as is usual)."""


class Known(StrEnum):
    """What is known of a session. What nobody knows is in no sample."""

    CLEAN = "clean"
    DRIFTED = "drifted"


class Sample(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A session that was replayed as a live one is: no word of it, only what was said of it.

    `highest` is the highest score of each code that spoke; a code that did not speak has 0. `failed` counts the
    failures of each detector. `slices` are the names that it is counted under, such as its suite and its model;
    sessions with the same `task` are alike, and stay in one fold.
    """

    session: str
    known: Known
    agent: str = ""
    task: str = ""
    slices: Mapping[str, str] = {}
    highest: Mapping[str, float] = {}
    failed: Mapping[str, int] = {}
    calls: int = 0

    @property
    def fold(self) -> int:
        """Which of five folds the session is in: by its task, or by itself where that is not known."""
        return zlib.crc32((self.task or self.session).encode()) % FOLDS

    def score(self, code: str) -> float:
        """Return the highest score of a code; 0 where it did not speak."""
        return self.highest.get(code, 0.0)


def sampled(sighting: Sighting, known: Known, *, task: str = "", slices: Mapping[str, str] | None = None) -> Sample:
    """Return what is kept of a session that was replayed.

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
    return Sample(
        session=sighting.session,
        known=known,
        agent=sighting.agent,
        task=task,
        slices=dict(slices or {}),
        highest=highest,
        failed=failed,
        calls=len(sighting.calls),
    )
