from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.intent import (
    FLAGS,
    TOOL_LENGTH,
    DataFlow,
    DestinationKind,
    Effect,
    NormalizedIntent,
    Operation,
    Permission,
    Provenance,
    TargetKind,
    ToolRule,
)

WORDS = {
    "operation": "file_read file_write test search network_request package_install execute_generated_code other",
    "target_kind": ("workdir system_path secret external_url localhost private_network cloud_metadata docker_socket"),
    "destination_kind": "none localhost same_origin external_domain private_network",
    "provenance": "user repo official_docs external_web",
    "data_flow": "none local_to_local local_to_external external_to_shell",
}
KINDS = {
    "operation": Operation,
    "target_kind": TargetKind,
    "destination_kind": DestinationKind,
    "provenance": Provenance,
    "data_flow": DataFlow,
}


@pytest.mark.parametrize("field", WORDS)
def test_the_words_are_those_of_the_original_and_an_unknown(field: str) -> None:
    assert [str(word) for word in KINDS[field]] == [*WORDS[field].split(), "unknown"]


@pytest.mark.parametrize("field", WORDS)
def test_a_word_is_taken_in_any_case(field: str) -> None:
    for word in WORDS[field].split():
        for spelled in (word.upper(), word.title(), f" {word} "):
            assert getattr(NormalizedIntent.of("x", **{field: spelled}), field) is KINDS[field](word)


@pytest.mark.parametrize("field", WORDS)
def test_a_word_that_is_none_is_unknown_and_never_a_harmless_one(field: str) -> None:
    for word in ("", "power_state_change", "None", "file-read", "х"):  # noqa: RUF001 - a Cyrillic letter is no word
        intent = NormalizedIntent.of("x", **{field: word})
        expected = "none" if word == "None" and "none" in WORDS[field] else "unknown"
        assert getattr(intent, field) == expected


def test_a_destination_that_axor_gives_undocumented_is_the_target_it_means() -> None:
    intent = NormalizedIntent.of("curl", destination_kind="cloud_metadata", target_kind="external_url")
    assert (intent.target_kind, intent.destination_kind) == ("cloud_metadata", "private_network")


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("value", [1, 0, "true", None, 1.0, [True]])
def test_a_flag_is_true_or_false(flag: str, value: object) -> None:
    with pytest.raises(ValueError, match=flag):
        NormalizedIntent(tool="x", **{flag: value})  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as untyped callers do


@pytest.mark.parametrize("field", [*WORDS, "tool"])
@pytest.mark.parametrize("value", [None, 3, b"test", ["test"], True])
def test_a_word_is_text(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        NormalizedIntent(**{"tool": "x", field: value})  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as untyped callers do


@given(st.text(max_size=600))
def test_a_tools_name_is_cut_and_can_be_written_anywhere(tool: str) -> None:
    intent = NormalizedIntent(tool=tool)
    assert len(intent.tool) <= TOOL_LENGTH
    intent.tool.encode()


def test_a_lone_surrogate_in_a_name_is_spelled_out() -> None:
    assert NormalizedIntent(tool="a\ud800").tool == "a\\ud800"


def test_an_intent_of_plain_words_names_the_field_that_is_none() -> None:
    with pytest.raises(TypeError, match="'operatoin'"):
        NormalizedIntent.of("x", operatoin="test")


def test_permission_and_effect_are_what_nobody_knows_where_they_are_not_said() -> None:
    intent = NormalizedIntent(tool="x")
    assert (intent.permission, intent.effect) == (Permission.READ, Effect.UNKNOWN)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("permission", value) for value in ("foo", 9, 1.5, 2.0, None, object(), True)],
        *[("effect", value) for value in (0, None, object(), True, b"write")],
    ],
)
def test_permission_and_effect_are_of_their_lists(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{field} of an intent is "):
        NormalizedIntent(tool="x", **{field: value})  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as untyped callers do


def test_permission_and_effect_are_taken_by_their_values_too() -> None:
    plain: dict[str, object] = {"permission": 2, "effect": "WRITE"}
    intent = NormalizedIntent(tool="x", **plain)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as untyped callers do
    assert intent.permission is Permission.EXECUTE
    assert intent.effect is Effect.WRITE
    other: dict[str, object] = {"effect": "harmless"}
    assert NormalizedIntent(tool="x", **other).effect is Effect.UNKNOWN  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as above


def test_an_intent_survives_json() -> None:
    intent = NormalizedIntent.of("x", operation="test", reads_secret_like_data=True)
    assert msgspec.json.decode(msgspec.json.encode(intent), type=NormalizedIntent) == intent


def test_a_rule_takes_no_key_that_it_does_not_have() -> None:
    with pytest.raises(msgspec.ValidationError, match="colour"):
        msgspec.convert({"colour": "red"}, ToolRule)
