"""The sessions for tests are what they say they are."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from msgspec import UNSET

from theodolite.core.event import (
    AnyEvent,
    AnyHostEvent,
    HostEvent,
    MessageObserved,
    OwnEvent,
    SessionEnded,
    ToolCallProposed,
    decode_event,
    encode_event,
)
from theodolite.core.store import Entry, verify
from theodolite.stores.memory import MemoryStore
from theodolite.testing.sessions import (
    clean_session,
    every_event,
    flood_session,
    hijacked_session,
    hostile_session,
    sparse_session,
    stamped,
    synthetic_session,
)
from theodolite.testing.strategies import entries, events, failures, host_events, own_events, readings, sessions

ALL = {
    "clean": clean_session(),
    "hijacked": hijacked_session(),
    "synthetic": synthetic_session(8, seed=1),
    "flood": tuple(flood_session(40)),
    "endless turn": tuple(flood_session(40, turns=False)),
    "sparse": sparse_session(),
    "hostile": hostile_session(),
    "every event": every_event(),
}


@pytest.mark.parametrize("name", ALL)
def test_every_event_of_a_session_can_be_written_and_read(name: str) -> None:
    for event in stamped(ALL[name]):
        assert decode_event(encode_event(event)) == event


def test_stamps_count_from_nought_and_turns_with_their_ends() -> None:
    found = list(stamped(clean_session(), session="s-9", agent="a-9"))
    assert [event.seq for event in found] == list(range(len(found)))
    assert {(event.session, event.agent) for event in found} == {("s-9", "a-9")}
    assert [event.turn for event in found if isinstance(event, ToolCallProposed)] == [0, 1]
    assert isinstance(found[-1], SessionEnded)


def test_every_type_of_event_is_in_every_event() -> None:
    assert {type(event) for event in every_event()} == set(get_args(AnyEvent))


def test_no_word_of_a_flood_comes_twice() -> None:
    texts = [
        event.text for event in flood_session(70) if isinstance(event, MessageObserved) and event.text is not UNSET
    ]
    words = [word for text in texts for word in str(text).split()]
    assert len(words) == len(set(words)) > 100


@given(host_events())
def test_a_host_event_is_one(event: AnyHostEvent) -> None:
    assert isinstance(event, HostEvent)


@given(own_events())
def test_an_own_event_is_one(event: AnyEvent) -> None:
    assert isinstance(event, OwnEvent)


@given(events())
def test_any_event_can_be_written_and_read(event: AnyEvent) -> None:
    assert decode_event(encode_event(event)) == event


@given(sessions(max_size=6))
def test_a_generated_session_is_stamped(session: tuple[AnyEvent, ...]) -> None:
    assert [event.seq for event in session] == list(range(len(session)))


@given(entries())
def test_an_entry_can_be_kept(entry: Entry) -> None:
    store = MemoryStore()
    assert store.append(entry).payload == entry.payload
    assert verify(store).intact


@given(readings("d", "2", codes=("d.x",)), failures("d", "2"))
def test_answers_are_of_whom_they_were_asked_for(reading: object, failure: object) -> None:
    for said in (reading, failure):
        assert getattr(said, "detector", "") == "d"
        assert getattr(said, "version", "") == "2"
    assert getattr(reading, "code", "") == "d.x"
