"""What the folds of a session hand to a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from theodolite.core.detector import Feature
from theodolite.core.event import AnyEvent, GoalStated, Source, ToolCallProposed, ToolResultObserved, stamp
from theodolite.core.intent import Call, Origin
from theodolite.features.folds import Folds

PROFILE = "First name: Ada\nEmail: ada@home.example\n"


def session(*asked: Mapping[str, object]) -> Iterator[AnyEvent]:
    yield GoalStated(session="s", agent="", text="Reserve a table in my name.", source=Source.USER)
    for arguments in asked:
        yield ToolCallProposed(session="s", agent="", tool="get_user_info", arguments=arguments, source=Source.MODEL)
    yield ToolResultObserved(session="s", agent="", tool="get_user_info", text=PROFILE, source=Source.TOOL)
    yield ToolCallProposed(
        session="s", agent="", tool="send_email", arguments={"to": "ada@home.example"}, source=Source.MODEL
    )


def last_call(events: Iterator[AnyEvent]) -> Call:
    folds, call = Folds.begin({Feature.MARGIN, Feature.PROVENANCE}), None
    for seq, event in enumerate(events):
        call = folds.fold(stamp(event, session="s", agent="", seq=seq, at=0.0, turn=0), {})
    assert call is not None
    return call


BARE: Mapping[str, object] = {}
OF_BOB: Mapping[str, object] = {"user": "bob"}


@pytest.mark.parametrize(
    ("asked", "origin"),
    [
        ((BARE,), Origin.RECORD),
        ((BARE, BARE), Origin.RECORD),
        ((OF_BOB,), Origin.TOOL_RESULT),
        ((BARE, OF_BOB), Origin.TOOL_RESULT),
        ((OF_BOB, BARE), Origin.TOOL_RESULT),
        ((), Origin.TOOL_RESULT),  # a result of a call that nobody saw
    ],
)
def test_a_profile_is_a_record_while_it_was_asked_for_by_no_name(
    asked: tuple[Mapping[str, object], ...], origin: Origin
) -> None:
    assert [to.origin for to in last_call(session(*asked)).origins or ()] == [origin]
