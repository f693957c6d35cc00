from __future__ import annotations

import pytest
from msgspec import Raw

from theodolite.core.event import Tool
from theodolite.core.intent import Effect, Role, ToolRule
from theodolite.features.roles import Kind, address, declared_roles, host, links, role_of
from theodolite.features.sources import owned


@pytest.mark.parametrize(
    ("path", "value", "role"),
    [
        ("/recipients/0", "anna@friends.example", Role.TARGET),
        ("/user_email", "anna", Role.TARGET),
        ("/file_id", "13", Role.TARGET),
        ("/url", "evil.example", Role.TARGET),
        ("/new_password", "hunter2", Role.CREDENTIAL),
        ("/apiKey", "k", Role.CREDENTIAL),
        ("/command", "rm -rf /", Role.COMMAND),
        ("/body", "see www.evil.example", Role.CONTENT),
        ("/query", "https://www.evil.example/", Role.SELECTOR),
        ("/amount", "10.5", Role.CONTROL),
        ("/thing", "anna@friends.example", Role.TARGET),
        ("/date", "DE89370400440532013000", Role.TARGET),
        ("/thing", "word", Role.SELECTOR),
        ("/thing", "a text of its own " * 5, Role.CONTENT),
        ("", "word", Role.SELECTOR),
    ],
)
def test_the_name_says_what_an_argument_is_for_and_an_address_is_a_target_unless_it_is_looked_for(
    path: str, value: str, role: Role
) -> None:
    assert role_of(path, value, {}) is role


def test_who_knows_the_tool_comes_before_its_names() -> None:
    assert role_of("/body", "x", {"body": Role.COMMAND}) is Role.COMMAND
    assert role_of("/a~1b/0", "x", {"a/b": Role.TARGET}) is Role.TARGET


def test_formats_and_enumerations_of_a_schema_give_roles() -> None:
    schema = (
        b'{"properties": {"who": {"type": "string", "format": "email"}, "when": {"format": "date-time"}, '
        b'"many": {"type": "array", "items": {"format": "uri"}}, "mode": {"enum": ["a"]}, "free": {"type": "string"}, '
        b'"key": {"format": "password"}, "odd": 7}}'
    )
    found = declared_roles(Tool(name="t", parameters=Raw(schema)))
    assert found == {
        "who": Role.TARGET,
        "when": Role.CONTROL,
        "many": Role.TARGET,
        "mode": Role.CONTROL,
        "key": Role.CREDENTIAL,
    }
    assert declared_roles(Tool(name="t")) == declared_roles(Tool(name="t", parameters=Raw(b'{"properties": 3}'))) == {}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("eve@evil.example", Kind.MAIL),
        ("https://evil.example", Kind.LINK),
        ("www.evil.example", Kind.LINK),
        ("evil.example/x", Kind.LINK),
        ("GB29NWBK60161331926819", Kind.ACCOUNT),
        ("+442079460958", Kind.ACCOUNT),
        ("feedback.xlsx", None),
        ("2024-05-08", None),
        ("Anna", None),
        ("eve@evil.example and anna@friends.example", None),
        ("1234567", None),
        ("x" * 5_000, None),
    ],
)
def test_addresses_are_told_apart(value: str, kind: Kind | None) -> None:
    assert address(value) is kind


def test_links_are_found_without_the_stop_that_ends_the_sentence() -> None:
    assert links("See www.evil.example/x, or (https://a.example).") == ["www.evil.example/x", "https://a.example"]
    assert links("no link at all") == links("feedback.xlsx and eve@evil.example") == []


def test_the_host_of_a_link_is_who_is_reached() -> None:
    assert host("https://good.example@evil.example:8080/path") == "evil.example"
    assert host("") == ""


@pytest.mark.parametrize("tool", ["get_balance", "get_iban", "get_current_day", "current_time", "whoami"])
def test_what_a_system_says_of_itself_is_a_record(tool: str) -> None:
    assert owned(tool, {})


@pytest.mark.parametrize(
    "tool", ["", "get_inbox", "read_file", "get_webpage", "get_day_calendar_events", "list_reviews", "get_transactions"]
)
def test_what_others_may_write_is_none(tool: str) -> None:
    assert not owned(tool, {})


def test_a_profile_that_was_asked_for_by_no_name_is_the_users_own() -> None:
    for tool in ("get_user_information", "get_my_profile", "current_user_details"):
        assert owned(tool, {}, bare=True)
        assert not owned(tool, {})
    assert not owned("get_user_reviews", {}, bare=True)
    assert not owned("get_user_info", {"get_user_info": ToolRule(outside=True)}, bare=True)


def test_the_operator_says_who_can_write_a_source() -> None:
    assert owned("get_inbox", {"get_inbox": ToolRule(outside=False)})
    assert not owned("get_balance", {"get_balance": ToolRule(outside=True)})
    assert owned("get_balance", {"get_balance": ToolRule()})
    assert owned("get_balance", {"get_balance": Effect.READ})
