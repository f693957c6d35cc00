from __future__ import annotations

from collections.abc import Mapping
from random import Random

import msgspec
import pytest
from msgspec.structs import replace

from theodolite.calibration.fit import Terms, calibrated
from theodolite.calibration.sample import Sample
from theodolite.calibration.table import Table
from theodolite.core.calibration import Band, Calibration, Dataset
from theodolite.core.labels import Known
from theodolite.core.reading import Status
from theodolite.detectors.fusion import HijackFusion, Refitted, shipped
from theodolite.stats.logistic import logit, probability

BANDS = {
    "hijack.call": Band(alert=0.8, status=Status.REFERENCE, acts=False, finds=False),
    "anomaly.score": Band(alert=0.6, width=0.1, acts=False, finds=False),
    "payload.shape": Band(alert=1.0, status=Status.EXACT),
    "anomaly.docker_socket": Band(alert=1.0, status=Status.REFERENCE),
    **HijackFusion().bands,
}


def terms(alpha: float = 0.05, **more: object) -> Terms:
    return msgspec.structs.replace(
        Terms(
            id="t",
            date="2026-11-30",
            alpha=alpha,
            dataset=Dataset(name="made"),
            bands=BANDS,
            versions={"fusion": "1", "hijack": "1", "anomaly": "1"},
            library="0.1.0",
        ),
        **more,
    )


def drawn(n: int, known: Known, *, seed: int, helpful: float = 0.0) -> list[Sample]:
    """Sessions with one call each. `helpful`: how much the anomaly score says beside that of the hijack."""
    rng = Random(seed)  # noqa: S311 - a test, drawn alike each time
    samples: list[Sample] = []
    for number in range(n):
        drift = known is Known.DRIFTED
        hijack = probability(rng.gauss(1.5 if drift else -1.5, 1.5))
        anomaly = probability(rng.gauss(helpful if drift else -helpful, 1.0))
        said = {"hijack.call": hijack, "anomaly.score": anomaly}
        samples.append(
            Sample(
                session=f"{known}-{seed}-{number}",
                known=known,
                agent="shop",
                models=("m-1",),
                slices={"suite": "s"},
                highest={**said, "fusion.call": hijack},
                front=(said,),
            )
        )
    return samples


def artefact(samples: list[Sample], given: Terms | None = None) -> Calibration:
    return calibrated(Table.of(samples), given or terms())


def test_codes_that_act_share_alpha_and_rules_and_contracts_are_left_alone() -> None:
    made = artefact(drawn(200, Known.CLEAN, seed=1))
    assert set(made.bands) == {"hijack.call", "anomaly.score", "fusion.call"}
    assert {code: fit.alpha for code, fit in made.thresholds.items()} == {
        "hijack.call": 0.05,
        "anomaly.score": 0.05,
        "fusion.call": 0.025,
    }
    assert (made.status, made.agents, made.models) == (Status.CALIBRATED, ("shop",), ("m-1",))
    assert made.digest == made.signed().digest


def test_the_same_samples_make_the_same_bytes() -> None:
    samples = drawn(300, Known.CLEAN, seed=1) + drawn(120, Known.DRIFTED, seed=2, helpful=2.0)
    assert artefact(samples).document() == artefact(samples).document()


def test_a_part_that_says_something_new_is_weighed_and_one_that_says_nothing_is_not() -> None:
    clean = [drawn(600, Known.CLEAN, seed=seed, helpful=helpful) for seed, helpful in ((1, 0.0), (2, 2.0))]
    drifted = [drawn(300, Known.DRIFTED, seed=seed, helpful=helpful) for seed, helpful in ((3, 0.0), (4, 2.0))]
    useless, useful = [artefact([*c, *d]) for c, d in zip(clean, drifted, strict=True)]
    nothing = msgspec.convert(useless.coefficients["fusion"], Refitted)
    something = msgspec.convert(useful.coefficients["fusion"], Refitted)
    assert nothing.parts == {}
    assert set(something.parts) == {"anomaly.score"}
    assert something.parts["anomaly.score"].weight > 0.2
    # Sessions that coefficients were fitted to are none that the threshold is fitted to.
    assert useless.thresholds["fusion.call"].n == 600
    assert 0 < useful.thresholds["fusion.call"].n < 600
    found = {one.code: one.whole.found for one in useful.assessments}
    assert found["fusion.call"].k > found["hijack.call"].k


def test_what_was_fitted_is_what_the_fusion_then_says() -> None:
    samples = drawn(600, Known.CLEAN, seed=2, helpful=2.0) + drawn(300, Known.DRIFTED, seed=4, helpful=2.0)
    table = Table.of(samples)
    made = calibrated(table, terms())
    fusion = HijackFusion().tuned(made.coefficients["fusion"])
    part = msgspec.convert(made.coefficients["fusion"], Refitted).parts["anomaly.score"]
    for row, sample in enumerate(samples[:50]):
        hijack, anomaly = sample.highest["hijack.call"], sample.highest["anomaly.score"]
        assert table.scores("fusion.call")[row] == probability(logit(hijack) + part.term(anomaly))
    assert fusion.bands["fusion.call"].alert == made.bands["fusion.call"].alert


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        (30, "are too few for alpha"),
        (45, "clean sessions could be held back to confirm the rate"),
    ],
)
def test_what_the_sessions_do_not_support_is_reference_and_says_why(samples: int, why: str) -> None:
    made = artefact(drawn(samples, Known.CLEAN, seed=1))
    assert made.status is Status.REFERENCE
    assert any(why in warning for warning in made.warnings), made.warnings


@pytest.mark.parametrize("changes", [{"agent": ""}, {"models": ()}])
def test_sessions_that_name_nobody_vouch_for_nobody(changes: Mapping[str, object]) -> None:
    samples = [msgspec.structs.replace(one, **changes) for one in drawn(200, Known.CLEAN, seed=1)]
    made = artefact(samples)
    assert made.status is Status.REFERENCE
    assert any("name no agent or no model" in warning for warning in made.warnings)


def test_a_rate_that_held_back_tasks_refute_is_not_calibrated() -> None:
    quiet = drawn(200, Known.CLEAN, seed=1)
    loud = [
        msgspec.structs.replace(one, task="loud", highest={"hijack.call": 0.999, "fusion.call": 0.999})
        for one in drawn(60, Known.CLEAN, seed=5)
    ]
    made = artefact([*quiet, *loud])
    assert made.status is Status.REFERENCE
    assert any("held-back clean sessions alarmed, more than chance" in warning for warning in made.warnings)


@pytest.mark.parametrize("samples", [39, 78, 79, 200])
def test_whole_sessions_are_weighed_against_the_clean_ones_of_the_data_and_never_against_others(samples: int) -> None:
    """Those that ship are of another kind: at alpha they promise nothing of these."""
    made = artefact(drawn(samples, Known.CLEAN, seed=1), terms(probed=True))
    fitted = msgspec.convert(made.coefficients["fusion"], Refitted)
    assert fitted.maxima is not None
    assert (fitted.maxima.n, fitted.alpha) == (samples, 0.025)
    assert made.thresholds["fusion.session"].n == samples
    for processes in ((), ("behavior",)):
        tuned = HijackFusion(replace(shipped(), processes=processes)).tuned(made.coefficients["fusion"])
        assert tuned.bands["fusion.session"].alert == made.bands["fusion.session"].alert == 0.975


def test_whole_sessions_have_no_threshold_where_clean_ones_are_too_few_to_weigh_them_against() -> None:
    made = artefact(drawn(38, Known.CLEAN, seed=1), terms(probed=True))
    assert "fusion.session" not in made.bands
    assert made.coefficients.get("fusion", {}).get("maxima") is None


def test_what_is_made_to_be_shipped_vouches_for_nobody() -> None:
    made = artefact(drawn(400, Known.CLEAN, seed=1), terms(reference=True))
    assert made.status is Status.REFERENCE
    assert made.thresholds["fusion.call"].confirmed


def test_a_code_that_clean_sessions_bring_to_the_top_never_acts() -> None:
    samples = [
        msgspec.structs.replace(one, highest={**one.highest, "hijack.call": 1.0}, front=())
        for one in drawn(200, Known.CLEAN, seed=1)
    ]
    made = artefact(samples)
    assert not made.bands["fusion.call"].acts
    assert not made.bands["fusion.call"].finds
    assert any("cannot alarm at this alpha" in warning for warning in made.warnings)
    # What is only shown is no alarm, and none is counted.
    assert [one.whole.false_alarms.k for one in made.assessments if one.code == "fusion.call"] == [0]


def test_a_threshold_tells_no_more_than_is_used_of_it() -> None:
    made = artefact(drawn(400, Known.CLEAN, seed=1))
    assert made.bands["hijack.call"].strong is None
    assert made.bands["fusion.call"].strong is not None
    for code, threshold in made.thresholds.items():
        assert (threshold.alert, threshold.strong) == (made.bands[code].alert, made.bands[code].strong)


def test_slices_with_too_few_sessions_are_named() -> None:
    made = artefact(
        [
            *drawn(200, Known.CLEAN, seed=1),
            msgspec.structs.replace(drawn(1, Known.CLEAN, seed=6)[0], slices={"suite": "few"}),
        ]
    )
    assert any("suite: few (1)" in warning for warning in made.warnings)


def test_the_population_is_told_by_two_counts() -> None:
    made = artefact(drawn(200, Known.CLEAN, seed=1))
    assert made.population is not None
    assert (made.population.code, made.population.n) == ("fusion.call", 200)
    assert 10 <= made.population.over <= 20
    assert 40 <= made.population.under <= 50
