"""The score: what adds to it, that nothing takes away from it, and what the shipped model is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.anomaly import DISAGREE, AnomalyClass, AnomalyResult, class_of
from theodolite.core.errors import CalibrationError
from theodolite.core.intent import (
    FLAGS,
    DataFlow,
    DestinationKind,
    NormalizedIntent,
    Operation,
    Provenance,
    TargetKind,
)
from theodolite.detectors.anomaly.rules import broken_by
from theodolite.detectors.anomaly.scoring import Coefficients, Scoring, shipped
from theodolite.detectors.anomaly.tasks import task_of
from theodolite.detectors.anomaly.traits import TRAITS, places_of, sign_of, traits_of

INTENTS = st.builds(
    NormalizedIntent,
    tool=st.just("x"),
    operation=st.sampled_from(Operation),
    target_kind=st.sampled_from(TargetKind),
    destination_kind=st.sampled_from(DestinationKind),
    provenance=st.sampled_from(Provenance),
    data_flow=st.sampled_from(DataFlow),
    **{flag: st.booleans() for flag in FLAGS},
)
WINDOWS = st.lists(INTENTS, max_size=10)


@given(WINDOWS, INTENTS, st.integers(0, 10), st.text(max_size=20))
def test_one_more_call_never_lowers_the_score(
    window: list[NormalizedIntent], more: NormalizedIntent, at: int, hint: str
) -> None:
    scoring = Scoring(window_size=11)
    longer = [*window[:at], more, *window[at:]]
    assert scoring.score(longer, hint).score >= scoring.score(window, hint).score


@given(WINDOWS, st.text(max_size=40), st.text(max_size=40))
def test_a_hint_never_lowers_the_score(window: list[NormalizedIntent], hint: str, policy: str) -> None:
    scoring = Scoring()
    assert scoring.score(window, hint, policy).score >= scoring.score(window).score


@given(WINDOWS)
def test_a_score_has_its_class_and_its_reasons_are_known(window: list[NormalizedIntent]) -> None:
    result = Scoring().score(window)
    assert result.cls is class_of(result.score)
    assert set(result.reasons) <= {*TRAITS.values(), "cloud_metadata", "docker_socket", "exfiltration"}


@given(st.lists(WINDOWS, max_size=5), st.sampled_from(["", "readonly", "offline"]))
def test_a_batch_gives_what_each_window_gives(windows: list[list[NormalizedIntent]], hint: str) -> None:
    scoring = Scoring()
    assert scoring.score_batch(windows, hint) == [scoring.score(window, hint) for window in windows]


@given(st.lists(INTENTS, max_size=12), st.integers(1, 4))
def test_windows_that_slide_along_a_stream_are_worth_what_each_is(stream: list[NormalizedIntent], size: int) -> None:
    scoring = Scoring()
    windows = [stream[at : at + size] for at in range(len(stream))]
    assert scoring.score_batch([*windows, *windows]) == [scoring.score(window) for window in [*windows, *windows]]


def test_a_window_that_is_filled_anew_for_each_score_is_read_anew() -> None:
    harmless, secret = NormalizedIntent(tool="x"), NormalizedIntent(tool="x", target_kind=TargetKind.SECRET)
    filled = ([secret, secret], [harmless, harmless], [harmless, harmless])
    window: list[NormalizedIntent] = []

    def each() -> Iterator[list[NormalizedIntent]]:
        for intents in filled:
            window[:] = intents
            yield window

    scoring = Scoring()
    assert scoring.score_batch(each()) == [scoring.score(intents) for intents in filled]


def test_a_batch_may_be_made_while_it_is_scored() -> None:
    scoring = Scoring()
    kinds = [TargetKind.WORKDIR, TargetKind.SECRET] * 500
    windows = ([NormalizedIntent(tool=str(n), target_kind=kind)] for n, kind in enumerate(kinds))
    assert [result.score for result in scoring.score_batch(windows)] == [
        scoring.score([NormalizedIntent(tool="x", target_kind=kind)]).score for kind in kinds
    ]


@given(WINDOWS)
def test_each_trait_names_the_calls_that_show_it(window: list[NormalizedIntent]) -> None:
    signs = [sign_of(intent) for intent in window]
    traits = traits_of(signs)
    for bit in TRAITS:
        if bit & traits:
            places = places_of(bit, signs)
            assert places
            assert all(0 <= place < len(window) for place in places)


def test_every_trait_can_be_shown_but_the_one_of_the_task() -> None:
    seen = 0
    for operation in Operation:
        for target in TargetKind:
            for destination in DestinationKind:
                for flow in DataFlow:
                    for provenance in (Provenance.EXTERNAL_WEB, Provenance.UNKNOWN):
                        intent = NormalizedIntent(
                            tool="x",
                            operation=operation,
                            target_kind=target,
                            destination_kind=destination,
                            data_flow=flow,
                            provenance=provenance,
                            reads_secret_like_data=target is TargetKind.SECRET,
                            writes_outside_workdir=operation is Operation.FILE_WRITE,
                            after_external_read=True,
                            after_secret_access=True,
                        )
                        seen |= traits_of([sign_of(intent)] * 3)
    assert {name for bit, name in TRAITS.items() if not bit & seen} == {"unexpected_for_task"}


def test_the_shipped_model_is_of_known_traits_and_the_thresholds_lie_in_its_reach() -> None:
    model = shipped()
    assert model.weights.keys() <= set(TRAITS.values())
    assert all(weight >= 0 for weight in model.weights.values())
    assert Scoring().of(0).cls is AnomalyClass.NORMAL
    assert Scoring().of(sum(TRAITS)).cls is AnomalyClass.CRITICAL


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"weights": {"kindness": 1.0}}, "no trait 'kindness'"),
        ({"weights": {"secret_access": -0.1}}, "secret_access is -0.1"),
        ({"bias": "low"}, "Expected `float`"),
        ({"extra": 1}, "unknown field"),
        ({"schema": 2}, "schema"),
    ],
)
def test_a_model_that_cannot_be_is_refused_with_its_fault(change: dict[str, object], fault: str) -> None:
    document: dict[str, object] = {"schema": 1, "version": "1", "bias": 0.0, "weights": {}, **change}
    with pytest.raises(CalibrationError, match=fault):
        Coefficients.load(msgspec.json.encode(document), "x.json")


def test_a_model_with_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="bias is nan"):
        Coefficients(schema=1, version="1", bias=math.nan, weights={})


@pytest.mark.parametrize("score", [-0.1, 1.1, math.nan, math.inf])
def test_a_score_is_in_the_unit_interval(score: float) -> None:
    with pytest.raises(ValueError, match="is in"):
        AnomalyResult(score, AnomalyClass.NORMAL)


@given(st.floats(0, 1), st.sampled_from(AnomalyClass), st.floats(0, 1), st.floats(0, 1))
def test_a_result_never_contradicts_itself(score: float, cls: AnomalyClass, one: float, other: float) -> None:
    low, high = sorted((one, other))
    result = AnomalyResult(score, cls, (), low, high)
    assert result.cls is class_of(result.score, suspicious=low, critical=high)
    assert result.score >= score
    assert list(AnomalyClass).index(result.cls) >= list(AnomalyClass).index(cls)
    agreed = class_of(score, suspicious=low, critical=high) is cls
    assert result.reasons == (() if agreed else (DISAGREE,))
    # Saved and read again it is the same.
    assert msgspec.json.decode(msgspec.json.encode(result), type=AnomalyResult) == result


def test_a_class_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="severe"):
        AnomalyResult(0.5, "severe")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as untyped callers do


@given(st.lists(INTENTS, max_size=40), st.lists(INTENTS, max_size=10))
def test_what_comes_later_takes_no_broken_rule_back(
    window: list[NormalizedIntent], later: list[NormalizedIntent]
) -> None:
    before = broken_by(map(sign_of, window))
    assert set(before) <= set(broken_by(map(sign_of, [*window, *later])))


@pytest.mark.parametrize(
    ("hint", "policy", "operation", "unexpected"),
    [
        ("focused_readonly", "", "file_write", True),
        ("Read-Only", "", "file_write", True),
        ("FOCUSED/READONLY/coding", "", "file_write", False),  # coding changes files, whatever else is said
        ("", "readonly", "package_install", True),
        ("read_write", "", "file_write", False),
        ("offline", "", "package_install", True),
        ("research", "", "execute_generated_code", True),
        ("focused_mutative", "", "execute_generated_code", False),
        ("", "", "execute_generated_code", False),
        ("xyzzy", "plugh", "file_write", False),
        ("readonly" * 1000, "", "file_write", False),
    ],
)
def test_what_a_task_leaves_out(hint: str, policy: str, operation: str, *, unexpected: bool) -> None:
    assert task_of(hint, policy).unexpected(NormalizedIntent.of("x", operation=operation)) is unexpected


def untyped(call: Callable[..., AnomalyResult]) -> Callable[..., AnomalyResult]:
    """Return a callable as those see it who check no types."""
    return call


@pytest.mark.parametrize("score", [True, False, "0.5", None, [0.5], math.nan, math.inf, -0.1, 1.1])
@pytest.mark.parametrize("field", ["score", "suspicious", "critical"])
def test_a_result_is_made_of_numbers(field: str, score: object) -> None:
    make = untyped(AnomalyResult)
    with pytest.raises(ValueError, match=rf"is in \[0, 1\], not .*{field}"):
        make(**{"score": 0.1, "cls": AnomalyClass.NORMAL, field: score})


@pytest.mark.parametrize("reasons", [None, "text", 3, [1], (b"x",), {"a": 1}])
def test_the_reasons_of_a_result_are_texts(reasons: object) -> None:
    make = untyped(AnomalyResult)
    with pytest.raises(ValueError, match="reasons of an AnomalyResult"):
        make(0.1, AnomalyClass.NORMAL, reasons)


@pytest.mark.parametrize("cls", [None, "harmless", 3, []])
def test_the_class_of_a_result_is_of_its_list(cls: object) -> None:
    make = untyped(AnomalyResult)
    with pytest.raises(ValueError, match="AnomalyClass"):
        make(0.1, cls)


def test_whole_numbers_and_lists_are_taken_as_what_they_stand_for() -> None:
    make = untyped(AnomalyResult)
    result = make(1, "critical", ["a"])
    assert result == AnomalyResult(1.0, AnomalyClass.CRITICAL, ("a",))
    assert type(result.score) is float
