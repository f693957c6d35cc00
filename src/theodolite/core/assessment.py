"""What a threshold was found to do on labelled sessions: types alone, for who measures it and who shows it."""

from __future__ import annotations

from msgspec import Struct

__all__ = ("Assessment", "Point", "Share", "Slice")


class Share(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """So many of so many, with the exact 95 % interval (Clopper and Pearson 1934); of none it is all of [0, 1]."""

    k: int
    n: int
    low: float
    high: float


class Point(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What shares of the clean and of the drifted sessions reach a score."""

    score: float
    false_alarms: float
    found: float


class Slice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Rates among some of the sessions. `false_alarms` is of the clean ones, `found` of the drifted ones.

    `precision` is of those that alarmed, and depends on how many of each kind there are in the data: in production
    drift is rarer. `enough` says whether there are enough clean sessions to say anything of alpha.
    """

    name: str
    false_alarms: Share
    found: Share
    precision: Share
    enough: bool


class Assessment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What a threshold does on labelled sessions. `auc` is the area under the curve; None where one kind is absent."""

    code: str
    alert: float
    whole: Slice
    slices: tuple[Slice, ...] = ()
    curve: tuple[Point, ...] = ()
    auc: float | None = None
