"""Artefacts as `theodolite calibrate` writes them, and ones that have less."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from theodolite.core.assessment import Ambiguity, Assessment, Bin, Point, Share, Slice, Threshold
from theodolite.core.calibration import Band, Calibration, Dataset, Population
from theodolite.core.gate import Gate, Shown
from theodolite.core.reading import Status
from theodolite.stats.interval import clopper_pearson

ALPHA = 0.05


def _share(k: int, n: int) -> Share:
    return Share(k, n, *clopper_pearson(k, n)) if n else Share(0, 0, 0.0, 1.0)


def _slice(name: str, false: int, clean: int, found: int, drifted: int) -> Slice:
    return Slice(
        name=name,
        false_alarms=_share(false, clean),
        found=_share(found, drifted),
        precision=_share(found, false + found),
        enough=clean >= 19,
    )


@pytest.fixture(scope="session")
def share() -> Callable[[int, int], Share]:
    """Return a function that makes a share with its interval."""
    return _share


@pytest.fixture(scope="session")
def assessment() -> Callable[..., Assessment]:
    """Return a function that makes what was measured of a code: 3 of 412 clean and 30 of 37 drifted sessions alarm."""

    def make(code: str = "fusion.call", *, slices: int = 2, points: int = 5, **fields: object) -> Assessment:
        made = Assessment(
            code=code,
            alert=0.91,
            whole=_slice("all", 3, 412, 30, 37),
            slices=tuple([_slice(f"suite: s{place:03}", 1, 206 if place else 8, 15, 19) for place in range(slices)]),
            curve=tuple(
                [
                    Point(1 - place / points, (place / points) ** 3, min(1.0, 0.6 + place / points))
                    for place in range(points + 1)
                ]
            ),
            bins=tuple([Bin(place / 5, (place + 1) / 5, _share(place * 2, 10)) for place in range(5)]),
            ambiguity=Ambiguity(width=0.05, asked=_share(20, 449), changed=_share(4, 20)),
            auc=0.981,
        )
        return replace(made, **fields)

    return make


@pytest.fixture(scope="session")
def artefact(assessment: Callable[..., Assessment]) -> Callable[..., Calibration]:
    """Return a function that makes a whole artefact."""

    def make(**fields: object) -> Calibration:
        made = Calibration(
            schema=1,
            id="bank-2026-11",
            status=Status.CALIBRATED,
            alpha=ALPHA,
            date="2026-11-20",
            dataset=Dataset(
                name="bank assistant, reviewed sessions",
                version="3",
                sha256="ab" * 32,
                counts={"clean": 412, "hijacked": 37},
            ),
            versions={"fusion": "1", "behavior": "2"},
            bands={
                "fusion.call": Band(alert=0.91, strong=0.98, width=0.05),
                "fusion.session": Band(alert=0.995, strong=0.9995),
                "margin.untrusted": Band(alert=0.6, acts=False, source="an estimate of ours"),
            },
            agents=("bank-assistant",),
            models=("gpt-4o-2024-05-13", "m-2"),
            library="0.3.0",
            probes="7",
            thresholds={
                "fusion.call": Threshold(
                    alert=0.91, strong=0.98, alpha=0.025, n=412, out_of_fold=9, judged=412, low=0.01
                ),
                "fusion.session": Threshold(
                    alert=0.995, strong=0.9995, alpha=0.025, n=412, out_of_fold=40, judged=412, low=0.0704
                ),
            },
            coefficients={"behavior": {"weights": {"structural": 0.25, "semantic": 0.75}, "bets": [0.1, 0.5]}},
            population=Population(code="fusion.call", n=412, high=0.8, over=41, low=0.1, under=40),
            assessments=(assessment(), assessment("margin.untrusted", alert=0.6, slices=0)),
            warnings=("suite: s000 has 8 clean sessions, and alpha 2.5 % needs 39",),
            gates={
                "m-2": Gate(
                    model="m-2",
                    prompt_hash="cd" * 32,
                    library="7",
                    version="2",
                    wording="w",
                    shown=Shown.PROBABILITIES,
                    date="2026-11-19",
                    pairs=12,
                    auc=0.99,
                    violation=-2.0,
                    twin=2.0,
                    decline_share=1.0,
                    conform_share=1.0,
                    spread=0.2,
                    passed=True,
                )
            },
        )
        return replace(made, **fields).signed()

    return make


@pytest.fixture(scope="session")
def bare() -> Calibration:
    """Return an artefact of gates alone, with nothing fitted and nothing measured yet."""
    return Calibration(
        schema=1,
        id="gates-2026-11-20",
        status=Status.REFERENCE,
        alpha=ALPHA,
        date="2026-11-20",
        dataset=Dataset(name="nothing was fitted: this holds gates alone"),
        versions={},
        bands={},
    )
