"""The small types of the core: what they reject, and what follows from them."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from theodolite.core.coverage import Coverage, Sight
from theodolite.core.inquiry import Inquiry, Query, Role
from theodolite.core.intent import Effect, Permission
from theodolite.core.text import encodable, printable


def sight(detector: str, *, decides: bool, blind: bool) -> Sight:
    return Sight(detector=detector, version="1", decides=decides, blind=blind, spoke=0, failed=0)


def test_only_what_decides_and_could_not_judge_is_blind() -> None:
    coverage = Coverage(
        detectors=(
            sight("a", decides=True, blind=True),
            sight("b", decides=True, blind=False),
            sight("c", decides=False, blind=True),
        )
    )
    assert coverage.blind == ("a",)
    assert Coverage().blind == ()


class Subject(Struct, frozen=True):
    prompt: str = ""


@pytest.mark.parametrize("moment", [math.nan, math.inf, -math.inf])
def test_an_inquiry_for_no_moment_cannot_be_made(moment: float) -> None:
    with pytest.raises(ValueError, match=r"not_before of an inquiry of a is .*, which is no moment"):
        Inquiry(asker="a", version="1", about=0, subject=Subject(), not_before=moment)


def test_an_inquiry_is_a_value() -> None:
    inquiry = Inquiry(asker="a", version="1", about=3, subject=Subject(prompt="May I?"), not_before=12.0)
    assert inquiry == Inquiry(asker="a", version="1", about=3, subject=Subject(prompt="May I?"), not_before=12.0)
    assert Inquiry(asker="a", version="1", about=3, subject=Subject()).not_before == 0.0


def test_a_query_carries_text_and_definitions_only() -> None:
    query = Query(role=Role.SUBJECT, prompt="May I?")
    assert msgspec.json.decode(msgspec.json.encode(query), type=Query) == query


def test_permissions_rank_by_the_harm_that_they_allow() -> None:
    assert sorted(Permission) == [Permission.READ, Permission.WRITE, Permission.EXECUTE, Permission.NETWORK]
    assert [*Effect] == ["read", "write", "unknown"]


@given(st.text(st.characters()))
def test_printable_text_can_be_encoded_and_other_text_is_left_alone(text: str) -> None:
    assert encodable(printable(text))
    assert printable(printable(text)) == printable(text)
    assert (printable(text) == text) is encodable(text)
