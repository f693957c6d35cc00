from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.event import Tool, ToolCallProposed
from theodolite.core.intent import Effect, Permission
from theodolite.features.intents import IntentFold, words


@pytest.mark.parametrize(
    ("name", "permission", "effect"),
    [
        ("get_order", Permission.READ, Effect.READ),
        ("list_requests", Permission.READ, Effect.READ),
        ("get_node", Permission.READ, Effect.READ),
        ("list_delete", Permission.READ, Effect.UNKNOWN),
        ("describe_exec_shell", Permission.READ, Effect.UNKNOWN),
        ("searchNotes", Permission.READ, Effect.READ),
        ("read_file", Permission.READ, Effect.READ),
        ("send_money", Permission.WRITE, Effect.WRITE),
        ("send_email", Permission.WRITE, Effect.WRITE),
        ("cancel_order", Permission.WRITE, Effect.WRITE),
        ("createUser", Permission.WRITE, Effect.WRITE),
        ("delete-file", Permission.WRITE, Effect.WRITE),
        ("rm", Permission.WRITE, Effect.WRITE),
        ("run_shell", Permission.EXECUTE, Effect.WRITE),
        ("bash", Permission.EXECUTE, Effect.WRITE),
        ("get_webpage", Permission.NETWORK, Effect.UNKNOWN),
        ("http_post", Permission.NETWORK, Effect.WRITE),
        ("download_file", Permission.NETWORK, Effect.UNKNOWN),
        ("frobnicate", Permission.READ, Effect.UNKNOWN),
        ("", Permission.READ, Effect.UNKNOWN),
        ("форматировать", Permission.READ, Effect.UNKNOWN),
    ],
)
def test_a_name_is_read_by_its_words(name: str, permission: Permission, effect: Effect) -> None:
    intent = IntentFold().of(ToolCallProposed(tool=name), {})
    assert (intent.permission, intent.effect) == (permission, effect)


def test_the_operator_comes_before_the_host_and_the_host_before_the_name() -> None:
    fold = IntentFold()
    call = ToolCallProposed(tool="get_order")
    assert fold.of(call, {}).effect is Effect.READ
    fold.declare((Tool(name="get_order", read_only=False),))
    assert fold.of(call, {}).effect is Effect.WRITE
    assert fold.of(call, {}).permission is Permission.WRITE
    assert fold.of(call, {"get_order": Effect.READ}).effect is Effect.READ


@pytest.mark.parametrize(
    ("tool", "effect"),
    [
        (Tool(name="frobnicate", read_only=True), Effect.READ),
        (Tool(name="frobnicate", destructive=True), Effect.WRITE),
        (Tool(name="frobnicate", read_only=True, destructive=True), Effect.WRITE),
        (Tool(name="frobnicate", destructive=False), Effect.UNKNOWN),
        (Tool(name="frobnicate"), Effect.UNKNOWN),
    ],
)
def test_the_hints_of_the_host(tool: Tool, effect: Effect) -> None:
    fold = IntentFold()
    fold.declare((tool,))
    assert fold.of(ToolCallProposed(tool="frobnicate"), {}).effect is effect


def test_a_later_declaration_replaces_an_earlier_one() -> None:
    fold = IntentFold()
    fold.declare((Tool(name="frobnicate", read_only=True),))
    fold.declare(())
    assert fold.of(ToolCallProposed(tool="frobnicate"), {}).effect is Effect.UNKNOWN


def test_a_call_after_text_from_outside_says_so() -> None:
    fold = IntentFold()
    assert not fold.of(ToolCallProposed(tool="x"), {}).after_external_read
    fold.saw_outside()
    assert fold.of(ToolCallProposed(tool="x"), {}).after_external_read


@given(st.text(max_size=500))
def test_any_name_has_words(name: str) -> None:
    assert all(word == word.lower() and word for word in words(name))
