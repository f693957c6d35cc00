from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.reading import Cause, Evidence, Fact, Failure, Level, Reading, Signal, Status
from theodolite.testing.strategies import failures, readings

# Python code that ignores types, as plug-ins may.
reading: Callable[..., Reading] = Reading
fact: Callable[..., Fact] = Fact
evidence: Callable[..., Evidence] = Evidence
failure: Callable[..., Failure] = Failure


def some(**changes: object) -> Reading:
    return reading(**{"detector": "d", "version": "1", "code": "d.x", "score": 0.5, **changes})


@pytest.mark.parametrize("score", [-0.01, 1.01, math.nan, math.inf, -math.inf, 2])
def test_a_score_outside_its_range_makes_no_reading(score: float) -> None:
    with pytest.raises(ValueError, match=r"score .* of d is outside \[0, 1\]"):
        some(score=score)


@pytest.mark.parametrize("score", ["0.5", None, [0.5], 1j])
def test_a_score_that_is_no_number_makes_no_reading(score: object) -> None:
    with pytest.raises(TypeError):
        some(score=score)


@pytest.mark.parametrize("score", [0, 1, True])
def test_a_score_is_a_float_whatever_it_was_given_as(score: int) -> None:
    made = some(score=score)
    assert type(made.score) is float
    assert msgspec.json.decode(msgspec.json.encode(made), type=Reading) == made


class Float64(float):
    """As numpy's, which JSON encoders do not take."""


def test_a_float_of_another_library_is_a_float() -> None:
    assert type(some(score=Float64(0.5)).score) is float
    assert type(fact("n", Float64(0.5)).value) is float


@pytest.mark.parametrize("code", ["", "x", "D.x", "d.", ".x", "d.x.", "d.x\n", "d x", "d.é", "1d.x", "d..x"])
def test_a_code_that_is_not_dotted_makes_no_reading(code: str) -> None:
    with pytest.raises(ValueError, match=r"is not of the form 'detector\.kind'"):
        some(code=code)
    with pytest.raises(ValueError, match=r"is not of the form 'detector\.kind'"):
        Evidence(kind=code)


@pytest.mark.parametrize("code", ["d.x", "d_1.x_2", "d.x.y"])
def test_dotted_codes_of_lower_case_words_are_taken(code: str) -> None:
    assert some(code=code).code == code
    assert Evidence(kind=code).kind == code


@pytest.mark.parametrize("name", ["", "Rank", "a.b", "a b", "a\n", "1", "é"])
def test_a_fact_with_another_name_than_a_lower_case_word_is_none(name: str) -> None:
    with pytest.raises(ValueError, match="is not a lower-case word"):
        Fact(name, 1.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_fact_is_a_finite_number_or_a_word(value: float) -> None:
    with pytest.raises(ValueError, match="which is not a number"):
        Fact("rank", value)


@pytest.mark.parametrize("value", [None, [1], b"x"])
def test_a_fact_of_another_kind_is_none(value: object) -> None:
    with pytest.raises(TypeError):
        fact("rank", value)


def test_the_first_fact_of_a_name_is_the_one_that_is_asked_for() -> None:
    made = some(facts=(Fact("rank", 3), Fact("kind", "odd"), Fact("rank", 4)))
    assert (made.fact("rank"), made.fact("kind"), made.fact("none")) == (3.0, "odd", None)


def test_lone_surrogates_are_spelled_out_in_all_that_may_quote() -> None:
    lone, spelled = "a\ud800", r"a\ud800"
    assert Evidence(kind="d.x", path=lone, expected=lone, observed=lone) == Evidence(
        kind="d.x", path=spelled, expected=spelled, observed=spelled
    )
    assert Fact("word", lone).value == spelled
    assert Failure(detector="d", version="1", cause=Cause.ERROR, detail=lone).detail == spelled


@given(st.one_of(readings(), failures()))
def test_answers_come_back_equal_and_byte_for_byte(said: Reading | Failure) -> None:
    line = msgspec.json.encode(said)
    again = msgspec.json.decode(line, type=Reading | Failure)
    assert again == said
    assert msgspec.json.encode(again) == line


def test_answers_are_frozen() -> None:
    for made in (some(), Evidence(kind="d.x"), Fact("n", 1), Failure(detector="d", version="1", cause=Cause.ERROR)):
        with pytest.raises(AttributeError):
            setattr(made, made.__struct_fields__[0], "changed")


def test_a_signal_is_called_by_the_code_of_its_reading_or_by_whose_failure_it_is() -> None:
    assert Signal(said=some()).code == "d.x"
    assert Signal(said=Failure(detector="d", version="1", cause=Cause.ERROR)).code == "d.failure"


def test_the_owner_of_a_signal_is_the_detector_whose_code_it_is_whoever_spoke() -> None:
    assert Signal(said=some()).owner == "d"
    assert Signal(said=some(detector="judge")).owner == "d"
    assert Signal(said=Failure(detector="judge", version="1", cause=Cause.ERROR)).owner == "judge"


@pytest.mark.parametrize(("level", "alarmed"), [(Level.CLEAR, False), (Level.NOTABLE, True), (Level.STRONG, True)])
def test_a_signal_is_alarmed_from_notable_on(level: Level, alarmed: bool) -> None:  # noqa: FBT001 - a column
    assert Signal(said=some(), level=level).alarmed is alarmed


def test_the_words_of_levels_causes_and_statuses_are_those_that_reports_print() -> None:
    assert [*Level] == ["clear", "notable", "strong"]
    assert [*Cause] == ["error", "timeout", "malformed", "no_evidence", "abandoned"]
    assert [*Status] == ["EXACT", "CALIBRATED", "REFERENCE", "UNCALIBRATED", "STALE"]
