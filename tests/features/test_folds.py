"""What the folds of a session hand to a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from theodolite.core.detector import Feature
from theodolite.core.event import AnyEvent, GoalStated, Source, ToolCallProposed, ToolResultObserved, stamp
from theodolite.core.intent import Call, Origin, Role
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


def asked(*events: AnyEvent) -> Call:
    return last_call(iter(events))


def opened(tool: str) -> Call:
    return asked(
        GoalStated(session="s", agent="", text="Which trains go to Bonn?", source=Source.USER),
        ToolResultObserved(session="s", agent="", tool=tool, text="More at www.trips.example/b", source=Source.TOOL),
        ToolCallProposed(
            session="s", agent="", tool="fetch", arguments={"url": "www.trips.example/b"}, source=Source.MODEL
        ),
    )


def test_a_page_that_a_search_engine_lists_is_within_the_goal() -> None:
    found, told = opened("web_search").grounds, opened("read_mail").grounds
    assert found is not None
    assert told is not None
    assert (found.beyond, told.beyond) == (False, True)


def test_arguments_that_are_written_as_json_are_read_as_arguments() -> None:
    call = asked(
        ToolResultObserved(session="s", agent="", tool="read_mail", text="Pay DE44XX7", source=Source.TOOL),
        ToolCallProposed(
            session="s", agent="", tool="pay", arguments={"payload": '{"iban": "DE44XX7"}'}, source=Source.MODEL
        ),
    )
    assert [(at.path, at.role, at.origin) for at in call.origins or ()] == [
        ("/payload/iban", Role.TARGET, Origin.TOOL_RESULT)
    ]
    plain = asked(
        ToolCallProposed(session="s", agent="", tool="pay", arguments={"payload": '{"iban": '}, source=Source.MODEL)
    )
    assert [at.path for at in plain.origins or ()] == ["/payload"]
