"""What a threshold was found to do on labeled sessions: types alone, for who measures it and who shows it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

__all__ = ("Ambiguity", "Assessment", "Bin", "Point", "Share", "Slice", "Threshold", "Verdict", "Verified")


# Counts beyond this are none: a float holds hardly a larger one.
_MOST = 10**300


class Share(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """So many of so many, with the exact 95 % interval (Clopper and Pearson 1934); of none it is all of [0, 1].

    Raises ValueError for counts beyond what a float holds.
    """

    k: int
    n: int
    low: float
    high: float

    def __post_init__(self) -> None:
        if max(abs(self.k), abs(self.n)) > _MOST:
            raise ValueError("a share is of so many sessions as nobody has")


class Point(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What shares of the clean and of the drifted sessions reach a score."""

    score: float
    false_alarms: float
    found: float


class Bin(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """How many of the sessions whose highest score lies in [low, high) were drifted; the last bin has its end too."""

    low: float
    high: float
    drifted: Share


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


class Ambiguity(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What a second opinion would be asked for: in sessions whose highest score is within `width` of the threshold.

    `asked` is the share of the clean sessions in which it is asked for: its cost, since most sessions are clean.
    `changed` is, of all sessions in which it is asked for, the share that the threshold alone judges wrongly: what the
    opinion could change, if it is always right.
    """

    width: float
    asked: Share
    changed: Share


class Threshold(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What the band of a code rests on: `n` clean sessions at `alpha`, its share of the alpha of all.

    `out_of_fold` of the `judged` clean sessions alarmed by a threshold that was fitted without them and without those
    of their task. `low` is the lower 95 % bound of that share (Clopper and Pearson): where it is above `alpha`, the
    rate is not confirmed, as where the sessions of a task are not like those of the others.
    """

    alert: float
    alpha: float
    n: int
    out_of_fold: int
    judged: int
    low: float
    strong: float | None = None

    def __post_init__(self) -> None:
        if max(abs(self.n), abs(self.judged), abs(self.out_of_fold)) > _MOST:
            raise ValueError("a threshold is fitted to so many sessions as nobody has")

    @property
    def confirmed(self) -> bool:
        """Whether held-back folds bear out the rate: enough sessions were judged, and the share may be alpha."""
        return self.tried and self.low <= self.alpha

    @property
    def tried(self) -> bool:
        """Whether so many sessions were judged that alpha can be told from more: as many as it takes to promise it."""
        return (self.judged + 1) * self.alpha >= 1.0 - 1e-9


class Assessment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What a threshold does on labeled sessions. `auc` is the area under the curve; None where one kind is absent."""

    code: str
    alert: float
    whole: Slice
    slices: tuple[Slice, ...] = ()
    curve: tuple[Point, ...] = ()
    bins: tuple[Bin, ...] = ()
    ambiguity: Ambiguity | None = None
    auc: float | None = None


class Verdict(StrEnum):
    """What other sessions say of the rate that a threshold promises."""

    HELD = "held"
    REFUTED = "refuted"
    TOO_FEW = "too_few"


class Verified(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What the threshold of a code does on sessions that it was not fitted on, and whether its `alpha` stands.

    REFUTED: so many of the clean sessions alarm as an artefact that keeps its promise lets alarm in at most 5 % of such
    looks, at all its codes. HELD: they do not, and are enough to tell. TOO_FEW: no more is known than before.
    """

    code: str
    alpha: float
    assessment: Assessment
    verdict: Verdict
