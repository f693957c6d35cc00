"""What a query becomes before a chat model sees it, and what is read of its attempts to call tools."""

from __future__ import annotations

import itertools
import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from theodolite.core.errors import ModelError
from theodolite.core.event import Tool
from theodolite.core.inquiry import Message, Query, Role
from theodolite.models.local.choice import Forced, Scored, Token, chances, force
from theodolite.models.local.query import Sampling
from theodolite.models.local.rendering import Turn, grammar, turns
from theodolite.models.local.tool_calls import NativeCall, attempted, declared, named, spelled_out

PAY = Tool(name="pay", description="Pays.", parameters=Raw(b'{"type":"object","properties":{"to":{"type":"string"}}}'))


def _turns(query: Query) -> list[tuple[str, str]]:
    return [(turn.role, turn.content) for turn in turns(query, spell_out_tools=True)]


def test_no_context_is_the_prompt_alone() -> None:
    for context in (None, ()):
        assert _turns(Query(role=Role.BASELINE, prompt="Pay?", context=context)) == [("user", "Pay?")]


def test_a_conversation_keeps_its_order() -> None:
    context = (Message("user", "hello"), Message("assistant", "hi"))
    query = Query(role=Role.SUBJECT, prompt="Pay?", system="Be careful.", context=context)
    expected = [("system", "Be careful."), ("user", "hello"), ("assistant", "hi"), ("user", "Pay?")]
    assert _turns(query) == expected


def test_a_tool_result_is_told_as_one_and_turns_alternate() -> None:
    context = (Message("user", "Pay."), Message("tool", "30 EUR"), Message("critic", "no"))
    query = Query(role=Role.SUBJECT, prompt="Well?", context=context)
    told = "Pay.\n\nResult of a tool:\n30 EUR\n\nMessage of the role critic:\nno\n\nWell?"
    assert _turns(query) == [("user", told)]


def test_what_the_system_says_within_the_context_comes_with_the_system_text() -> None:
    context = (Message("user", "hello"), Message("developer", "Be brief."))
    assert _turns(Query(role=Role.SUBJECT, prompt="Pay?", system="Be careful.", context=context)) == [
        ("system", "Be careful.\n\nBe brief."),
        ("user", "hello\n\nPay?"),
    ]


@given(
    st.lists(
        st.builds(Message, st.sampled_from(["user", "assistant", "tool", "system", "x"]), st.text(max_size=5)),
        max_size=8,
    )
)
def test_turns_alternate_end_with_the_user_and_lose_no_text(context: list[Message]) -> None:
    said = turns(Query(role=Role.SUBJECT, prompt="Pay?", context=tuple(context)), spell_out_tools=False)
    roles = [turn.role for turn in said]
    assert roles[-1] == "user"
    assert all(a != b for a, b in itertools.pairwise(roles))
    assert "system" not in roles[1:]
    together = "\n".join(turn.content for turn in said)
    assert all(message.text in together for message in context)


def test_options_are_told_in_their_order_as_json() -> None:
    (turn,) = turns(Query(role=Role.JUDGE, prompt="Same?", options=("no", 'say "yes"')), spell_out_tools=False)
    assert turn == Turn("user", 'Same?\n\nAnswer with one of these: {"answer": "no"}, {"answer": "say \\"yes\\""}')


def test_tools_are_told_in_the_system_text_or_declared() -> None:
    query = Query(role=Role.SUBJECT, prompt="Pay?", tools=(PAY,))
    (role, text), _ = _turns(query)
    assert role == "system"
    assert '{"name":"pay","description":"Pays.","parameters":{"type":"object"' in text
    assert [turn.role for turn in turns(query, spell_out_tools=False)] == ["user"]
    (definition,) = json.loads(msgspec.json.encode(declared([PAY])))
    assert definition["function"]["parameters"]["properties"] == {"to": {"type": "string"}}
    assert not spelled_out([])


def test_a_tool_without_parameters_takes_any_object() -> None:
    assert '"parameters":{"type":"object"}' in spelled_out([Tool(name="look")])


CALL = b'{"name":"pay","arguments":{"to":"ES-77"}}'


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "pay", "arguments": {"to": "ES-77"}}',
        '{"name": "pay", "parameters": {"to": "ES-77"}}',
        '```json\n{"name": "pay", "arguments": {"to": "ES-77"}}\n```',
        '<tool_call>\n{"name": "pay", "arguments": {"to": "ES-77"}}\n</tool_call>',
        'I {will} pay: [{"name": "pay", "arguments": {"to": "ES-77"}}] {"done": tru',
    ],
)
def test_a_call_is_found_however_it_is_written(text: str) -> None:
    assert [bytes(call) for call in attempted(text)] == [CALL]


def test_several_calls_are_found_in_their_order() -> None:
    calls = attempted('{"name": "a", "arguments": {}} and {"name": "b", "arguments": {}}')
    assert [json.loads(bytes(call))["name"] for call in calls] == ["a", "b"]


@pytest.mark.parametrize(
    "text", ["", "pay", '{"name": "pay"}', '{"name": 1, "arguments": {}}', "{" * 5000, "[{" * 5000]
)
def test_what_is_no_call_is_none(text: str) -> None:
    assert attempted(text) == ()


@pytest.mark.parametrize("value", ['"\\ud800"', "9" * 400, "NaN", "[" * 900 + "]" * 900])
def test_a_call_with_what_json_cannot_carry_on_is_still_told(value: str) -> None:
    text = f'{{"name": "pay", "arguments": {{"to": {value}}}}}'
    (call,) = attempted(text)
    assert msgspec.json.decode(call, type=dict[str, object])["name"] == "pay"


@pytest.mark.parametrize(("said", "kept"), [('{"to":"ES-77"}', {"to": "ES-77"}), ('{"to":', '{"to":')])
def test_arguments_that_are_no_json_are_kept_as_text(said: str, kept: object) -> None:
    call = msgspec.convert({"function": {"name": "pay", "arguments": said}}, NativeCall)
    assert json.loads(bytes(named([call])[0])) == {"name": "pay", "arguments": kept}


def test_a_schema_becomes_a_grammar_on_one_line() -> None:
    rules = grammar(Raw(b'{"const":"a\\nstart: \\"x\\""}')).split("\n")
    assert rules[0] == "%llguidance {}"
    assert rules[1].startswith("start: %json {")
    assert len(rules) == 2


@pytest.mark.parametrize("schema", [b"[]", b"true", b"{", b'{"a":' * 100 + b"1" + b"}" * 100, b"[" * 100_000])
def test_a_schema_that_could_harm_is_refused(schema: bytes) -> None:
    with pytest.raises(ModelError, match="schema"):
        grammar(Raw(schema))


@given(st.lists(st.floats(min_value=-1e300, max_value=0.0), min_size=1, max_size=6))
def test_chances_are_a_distribution_in_the_same_order(logprobs: list[float]) -> None:
    found = chances(logprobs)
    assert math.isclose(sum(found), 1.0, abs_tol=1e-9)
    assert all(a <= b for (x, a), (y, b) in zip(*[list(zip(logprobs, found, strict=True))] * 2, strict=True) if x <= y)
    assert found[logprobs.index(max(logprobs))] == max(found)


def _letters(text: str) -> tuple[int, ...]:
    return tuple([ord(letter) for letter in text])


def test_texts_are_split_where_they_begin_to_differ() -> None:
    split = force(['? "yes"}', '? "yes, but"}', '? "no"}'], _letters)
    assert {forced.prompt for forced in split} == {_letters('? "')}
    assert [forced.answer for forced in split] == [_letters('yes"}'), _letters('yes, but"}'), _letters('no"}')]


def test_one_text_alone_has_nothing_left_to_score() -> None:
    assert force(["yes"], _letters) == (Forced(_letters("yes"), ()),)


def test_another_answer_than_the_forced_one_is_not_scored() -> None:
    forced = Forced((1,), (2, 3))
    assert forced.logprob(Scored((Token(2, -1.0), Token(3, -0.5)))) == -1.5
    for tokens in [(Token(2, -1.0),), (Token(2, -1.0), Token(4, -0.5)), (Token(2, -1.0), Token(3, math.nan)), ()]:
        with pytest.raises(ModelError, match="did not score"):
            forced.logprob(Scored(tokens))


@given(st.integers(), st.integers(0, 100))
def test_seeds_differ_by_draw_and_are_never_the_random_one(seed: int, number: int) -> None:
    sampling = Sampling(temperature=0.7, max_tokens=1, seed=seed, context=1)
    assert sampling.of(number) != sampling.of(number + 1)
    assert 0 <= sampling.of(number) < 2**32 - 1
