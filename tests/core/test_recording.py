from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import UNSET, Raw
from msgspec.structs import replace

from theodolite.core.errors import ConfigError, EventError
from theodolite.core.event import (
    HOST_EVENTS,
    AnyEvent,
    ApprovalGiven,
    CanaryChecked,
    CanaryVerdict,
    Channel,
    Cleared,
    ContextCompacted,
    GoalStated,
    HandedOff,
    InquirySettled,
    MessageObserved,
    ModelCalled,
    OwnEvent,
    ProbeRequested,
    SessionEnded,
    Source,
    SystemPromptSet,
    Tool,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
    TurnEnded,
    stamp,
)
from theodolite.core.reading import Cause, Evidence, Fact, Failure, Reading
from theodolite.core.recording import HEADER, VERSION, check_header, decode_line, encode_line

KEY = b"the operator's key"

_T = TypeVar("_T")

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
number = st.floats(allow_nan=False, allow_infinity=False)
share = st.floats(min_value=0, max_value=1)
count = st.integers(min_value=-1, max_value=2**62)
leaf = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | number | text
tree: SearchStrategy[object] = st.recursive(leaf, lambda below: st.lists(below) | st.dictionaries(text, below))
mapping = st.dictionaries(text, tree, max_size=4)
schema = mapping.map(lambda value: Raw(msgspec.json.encode(value)))


def maybe(values: SearchStrategy[_T]) -> SearchStrategy[_T | msgspec.UnsetType]:
    return st.just(UNSET) | values


def many(values: SearchStrategy[_T]) -> SearchStrategy[tuple[_T, ...]]:
    return st.lists(values, max_size=3).map(tuple)


def event(kind: Callable[..., _T], **fields: SearchStrategy[object]) -> SearchStrategy[_T]:
    return st.builds(
        kind,
        session=text,
        agent=text,
        seq=count,
        at=number,
        turn=count,
        channel=st.sampled_from(Channel),
        source=st.sampled_from(Source),
        **fields,
    )


flag = st.none() | st.booleans()
tool = st.builds(
    Tool,
    name=text,
    description=text,
    parameters=maybe(schema),
    results=maybe(schema),
    read_only=flag,
    destructive=flag,
    open_world=flag,
)
evidence = st.builds(
    Evidence, kind=st.just("margin.passage"), seqs=many(count), path=text, expected=text, observed=text
)
fact = st.builds(Fact, st.just("rank"), number | text)
reading = st.builds(
    Reading,
    detector=text,
    version=text,
    code=st.just("trajectory.margin"),
    score=share,
    evidence=many(evidence),
    models=many(text),
    facts=many(fact),
    surrogate=st.booleans(),
)
failure = st.builds(Failure, detector=text, version=text, cause=st.sampled_from(Cause), detail=text)

HOST: dict[type[AnyEvent], SearchStrategy[AnyEvent]] = {
    SystemPromptSet: event(SystemPromptSet, prompt_hash=text, length=count),
    ToolsDeclared: event(ToolsDeclared, tools=many(tool)),
    GoalStated: event(GoalStated, text=text),
    MessageObserved: event(MessageObserved, role=st.sampled_from(["system", "user", "assistant"]), text=maybe(text)),
    ModelCalled: event(
        ModelCalled,
        model=text,
        temperature=maybe(number),
        top_p=maybe(number),
        input_tokens=maybe(count),
        output_tokens=maybe(count),
    ),
    ToolCallProposed: event(ToolCallProposed, tool=text, arguments=maybe(mapping), call=text),
    ToolResultObserved: event(ToolResultObserved, tool=text, text=maybe(text), call=text, error=st.booleans()),
    TurnEnded: event(TurnEnded),
    ContextCompacted: event(ContextCompacted, before=maybe(count), after=maybe(count)),
    HandedOff: event(HandedOff, to=text, child=text),
    ApprovalGiven: event(ApprovalGiven, call=text, operator=text),
    SessionEnded: event(SessionEnded, reason=text),
}
OWN: dict[type[AnyEvent], SearchStrategy[AnyEvent]] = {
    ProbeRequested: event(ProbeRequested, reason=text),
    InquirySettled: event(
        InquirySettled,
        asker=text,
        about=count,
        said=many(reading | failure),
        first=st.none() | reading,
        exchanges=count,
        canaries=many(text),
    ),
    CanaryChecked: event(
        CanaryChecked, contract=text, checked=st.sampled_from(Channel), verdict=st.sampled_from(CanaryVerdict)
    ),
    Cleared: event(Cleared, operator=text, reason=text),
}
host_events = st.one_of(*HOST.values())
own_events = st.one_of(*OWN.values())


def test_every_kind_of_event_is_tried() -> None:
    assert HOST.keys() == HOST_EVENTS
    assert OWN.keys() == set(get_args(AnyEvent)) - HOST_EVENTS
    assert all(issubclass(kind, OwnEvent) for kind in OWN)


@given(host_events | own_events)
def test_any_event_comes_back_equal_and_is_written_in_equal_bytes_again(made: AnyEvent) -> None:
    line = encode_line(made, KEY)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    again = decode_line(line, KEY)
    assert again == made
    assert encode_line(again, KEY) == line


@given(host_events)
def test_events_of_a_host_need_no_key(made: AnyEvent) -> None:
    assert decode_line(encode_line(made, None), None) == made


@given(own_events)
def test_own_events_are_refused_without_the_key_under_another_key_and_unsealed(made: AnyEvent) -> None:
    line = encode_line(made, KEY)
    unsealed = msgspec.json.encode(made)
    for forged, key in ((line, None), (line, b""), (line, b"another key"), (unsealed, KEY), (unsealed, None)):
        with pytest.raises(EventError, match="own events count only with the operator's key"):
            decode_line(forged, key)


def test_a_sealed_event_that_was_changed_is_refused() -> None:
    line = encode_line(Cleared(session="s-1", seq=7, operator="n.abara", reason="checked by hand"), KEY)
    assert decode_line(line, KEY).seq == 7
    for before, after in (
        (b"s-1", b"s-2"),
        (b'"seq":7', b'"seq":8'),
        (b"by hand", b"by luck"),
        (b'"seal":"', b'"seal":"0'),
    ):
        assert before in line
        with pytest.raises(EventError, match="does not fit"):
            decode_line(line.replace(before, after), KEY)


def test_a_seal_does_not_turn_one_kind_of_own_event_into_another() -> None:
    line = encode_line(ProbeRequested(session="s-1", reason="doubt"), KEY)
    forged = line.replace(b'"ProbeRequested"', b'"Cleared"').replace(b'"reason"', b'"operator":"x","reason"')
    with pytest.raises(EventError, match="does not fit"):
        decode_line(forged, KEY)


def test_an_own_event_cannot_be_written_without_a_key() -> None:
    for key in (None, b""):
        with pytest.raises(ConfigError, match="give the operator's key"):
            encode_line(ProbeRequested(session="s-1", reason="doubt"), key)


def test_a_seal_on_an_event_of_a_host_means_nothing() -> None:
    line = b'{"event":"GoalStated","text":"book","seal":"00"}'
    assert decode_line(line, KEY) == GoalStated(text="book")


@pytest.mark.parametrize(
    "unsayable",
    [
        stamp(GoalStated(text="book"), session="s-1", agent="", seq=0, at=float("nan"), turn=0),
        stamp(GoalStated(text="book"), session="\ud800", agent="", seq=0, at=1.0, turn=0),
        stamp(TurnEnded(), session="s-1", agent="\udfff", seq=0, at=1.0, turn=0),
    ],
)
def test_what_json_cannot_say_is_not_written(unsayable: AnyEvent) -> None:
    with pytest.raises(EventError, match="holds what JSON cannot say"):
        encode_line(unsayable, KEY)


def test_arguments_given_as_json_are_written_without_white_space() -> None:
    call = ToolCallProposed(tool="t", arguments=Raw(b'{ "to" : "a@example.org" }'))
    line = encode_line(call, None)
    assert b'{"to":"a@example.org"}' in line
    assert encode_line(decode_line(line, None), None) == line


def test_arguments_that_nest_too_deeply_are_cut_and_listed_not_lost() -> None:
    line = b'{"event":"ToolCallProposed","tool":"t","arguments":{"a":%b}}' % (b"[" * 300 + b"]" * 300)
    call = decode_line(line, None)
    assert isinstance(call, ToolCallProposed)
    assert [place.type for place in call.foreign] == ["too_deep"]


SECRET = "hunter2-7f3a"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"event":"%s","text":"x"}', "an event kind that this version does not know"),
        ('{"event":7,"text":"%s"}', "Expected str - at $.event"),
        ('{"text":"%s"}', "Object missing required field event"),
        ('{"event":"GoalStated","x":"%s"}', "Object missing required field text"),
        ('{"event":"GoalStated","text":["%s"]}', "Expected str, got array - at $.text"),
        ('{"event":"GoalStated","text":"","channel":"%s"}', "a value that is not allowed - at $.channel"),
        ('{"event":"MessageObserved","role":"%s"}', "a value that is not allowed - at $.role"),
        ('{"event":"ToolCallProposed","tool":"t","arguments":["%s"]}', "Expected object, got array - at $.arguments"),
        (
            '{"event":"ToolCallProposed","tool":"%s","arguments":{"a":1e999}}',
            "Number out of range - at $.arguments[...]",
        ),
        ('{"event":"GoalStated","text":"%s","at":NaN}', "JSON is malformed: invalid character (byte 49)"),
        ('{"event":"GoalStated","text":"%s","at":"now"}', "Expected float, got str - at $.at"),
        ('{"event":"GoalStated","text":"%s"} x', "JSON is malformed: trailing characters (byte 46)"),
        ('{"event":"GoalStated","text":"%s', "Input data was truncated"),
        ('["%s"]', "Expected object, got array"),
        ('"%s"', "Expected object, got str"),
        ("%s", "JSON is malformed: invalid character (byte 0)"),
        ('{"event":"GoalStated","text":"%s","x":' + "[" * 10**5, "nested too deeply to be read"),
    ],
)
def test_a_bad_line_is_refused_with_place_and_expected_type_and_nothing_of_what_it_holds(
    line: str, reason: str
) -> None:
    with pytest.raises(EventError) as refused:
        decode_line((line % SECRET if "%s" in line else line).encode(), KEY)
    assert str(refused.value).startswith(reason)
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


def test_reasons_from_nested_values_quote_nothing_either() -> None:
    line = encode_line(InquirySettled(asker="a", about=1, said=(), first=None), KEY)
    reading = b'{"type":"Reading","detector":"d","version":"1","code":"%b","score":0.5}' % SECRET.encode()
    with pytest.raises(EventError) as refused:
        decode_line(line.replace(b'"said":[]', b'"said":[%b]' % reading), KEY)
    assert str(refused.value) == "a value that is not allowed - at $.said[0]"


def test_lone_surrogates_are_spelled_out_and_pairs_are_characters() -> None:
    told = decode_line(rb'{"event":"GoalStated","text":"\ud83d\ude00 \ud83d \\ud83d \ude00"}', None)
    assert told == GoalStated(text="\U0001f600 \\ud83d \\ud83d \\ude00")
    called = decode_line(rb'{"event":"ToolCallProposed","tool":"\udc00","arguments":{"\ud800":"\udbff"}}', None)
    assert isinstance(called, ToolCallProposed)
    assert (called.tool, called.values()) == ("\\udc00", {"\\ud800": "\\udbff"})


def test_of_equal_keys_the_last_one_counts() -> None:
    assert decode_line(b'{"event":"GoalStated","text":"a","text":"b"}', None) == GoalStated(text="b")
    called = decode_line(b'{"event":"ToolCallProposed","tool":"t","arguments":{"to":"a","to":"b"}}', None)
    assert isinstance(called, ToolCallProposed)
    assert called.arguments == Raw(b'{"to":"b"}')


def test_huge_whole_numbers_keep_their_digits() -> None:
    line = b'{"event":"ToolCallProposed","tool":"t","arguments":{"n":1%b}}' % (b"0" * 40)
    called = decode_line(line, None)
    assert isinstance(called, ToolCallProposed)
    assert called.values() == {"n": 10**40}


def test_the_header_states_the_version() -> None:
    assert check_header(HEADER) == VERSION
    assert check_header(b'{"theodolite":"events","version":9,"made_by":"x"}') == 9
    for other in (b"", b"{}", b'{"theodolite":"records","version":1}', b'{"theodolite":"events","version":0}'):
        with pytest.raises(EventError, match="the first line must be"):
            check_header(other)


def test_a_line_says_whose_session_it_is_only_where_the_event_does() -> None:
    assert decode_line(encode_line(GoalStated(text="x"), None), None).session == ""
    named = replace(GoalStated(text="x"), session="s-1")
    assert decode_line(encode_line(named, None), None).session == "s-1"
