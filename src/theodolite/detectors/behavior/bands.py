"""What the codes of probes are graded by where no artefact has a band for them."""

from __future__ import annotations

from theodolite.core.calibration import Band
from theodolite.core.reading import Status
from theodolite.detectors.behavior.accumulation import ALPHA_LONG
from theodolite.detectors.behavior.asking import TOLD
from theodolite.detectors.behavior.tuning import Tuning

__all__ = ("SESSION", "bands")

SESSION = "behavior.session"


def bands(tuning: Tuning, *, alone: bool) -> dict[str, Band]:
    """Return the band of each code. `alone`: no fusion hears them, so that the session's own may act."""
    fitted = {"thresholds", "ambiguity_band"}.issubset(tuning.fitted)
    single = {
        f"behavior.{kind.value}": Band(
            alert=threshold,
            width=tuning.ambiguity_band,
            acts=False,
            finds=False,
            source="the artefact's" if fitted else "axor-probe's thresholds and ambiguity band; not measured",
        )
        for kind, threshold in tuning.thresholds.items()
    }
    told = Band(
        alert=1.0,
        status=Status.EXACT,
        acts=False,
        source=(
            "exact: the session's copy told 64 random bits that the others kept. It does not act by itself: a model "
            "answers by chance, and fresh draws bet on it"
        ),
    )
    session = Band(
        alert=1.0 - ALPHA_LONG,
        # Ten times the evidence that is asked for a review. Our choice.
        strong=1.0 - ALPHA_LONG / 10,
        acts=alone,
        finds=alone,
        source=f"an e-process gets to 1/{ALPHA_LONG:g} in at most {ALPHA_LONG:.1%} of clean sessions: Ville, 1939",
    )
    return {**single, TOLD: told, SESSION: session}
