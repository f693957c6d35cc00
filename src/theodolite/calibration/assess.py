"""What the threshold of a code is worth on labelled sessions: rates with intervals, as a whole and for each slice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from theodolite.calibration.sample import Known, Sample
from theodolite.calibration.thresholds import least
from theodolite.core.assessment import Assessment, Point, Share, Slice
from theodolite.stats.area import area
from theodolite.stats.interval import clopper_pearson

__all__ = ("assess",)

# Points of a curve that are kept (our choice): more are not told apart in a picture.
_POINTS = 100


def assess(code: str, alert: float, samples: Iterable[Sample], alpha: float) -> Assessment:
    """Return what a threshold does on labelled sessions, as a whole and by each of their slices, in order of names.

    Linear in the sessions but for sorting them. A slice has few sessions, and so a wide interval: which one is worst is
    mostly chance where many are compared.
    """
    held = list(samples)
    clean, drifted = _scores(code, held, Known.CLEAN), _scores(code, held, Known.DRIFTED)
    names = sorted({f"{key}: {value}" for one in held for key, value in one.slices.items() if value})
    return Assessment(
        code=code,
        alert=alert,
        whole=_slice("all", code, alert, held, alpha),
        slices=tuple([_slice(name, code, alert, [one for one in held if _in(one, name)], alpha) for name in names]),
        curve=tuple(_curve(clean, drifted)),
        auc=area(drifted, clean) if clean and drifted else None,
    )


def _in(sample: Sample, name: str) -> bool:
    key, _, value = name.partition(": ")
    return sample.slices.get(key) == value


def _slice(name: str, code: str, alert: float, samples: Sequence[Sample], alpha: float) -> Slice:
    alarmed = [one.known for one in samples if one.score(code) >= alert]
    false, found = alarmed.count(Known.CLEAN), alarmed.count(Known.DRIFTED)
    clean = sum(one.known is Known.CLEAN for one in samples)
    return Slice(
        name=name,
        false_alarms=_share(false, clean),
        found=_share(found, len(samples) - clean),
        precision=_share(found, false + found),
        enough=clean >= least(alpha),
    )


def _share(k: int, n: int) -> Share:
    low, high = clopper_pearson(k, n) if n else (0.0, 1.0)
    return Share(k, n, low, high)


def _scores(code: str, samples: Iterable[Sample], known: Known) -> list[float]:
    return sorted((one.score(code) for one in samples if one.known is known), reverse=True)


def _curve(clean: Sequence[float], drifted: Sequence[float]) -> Iterator[Point]:
    """Yield the corners of the curve from the highest score down; of many, some that are evenly apart."""
    every = sorted({*clean, *drifted}, reverse=True)
    step = max(1, -(-len(every) // _POINTS))
    reached_clean = reached_drifted = 0
    for place, score in enumerate(every):
        while reached_clean < len(clean) and clean[reached_clean] >= score:
            reached_clean += 1
        while reached_drifted < len(drifted) and drifted[reached_drifted] >= score:
            reached_drifted += 1
        if place % step == 0 or place == len(every) - 1:
            yield Point(
                score,
                reached_clean / len(clean) if clean else 0.0,
                reached_drifted / len(drifted) if drifted else 0.0,
            )
