"""Every type that the vendors' own packages know is read: what they add shows here first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from types import NoneType, UnionType
from typing import (
    Annotated,
    ClassVar,
    Literal,
    NotRequired,
    Protocol,
    Required,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import pytest

from theodolite.core.event import (
    AnyEvent,
    ModelCalled,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
    encode_event,
)
from theodolite.core.reader import Reader, Unreadable
from theodolite.readers.anthropic_messages import AnthropicMessages
from theodolite.readers.openai_responses import OpenAIResponses

pytest.importorskip("anthropic", reason="the extra anthropic is absent")
pytest.importorskip("openai", reason="the extra openai is absent")

DEPTH = 6  # the types nest in themselves


class Field(Protocol):
    """A field of a pydantic model."""

    annotation: object
    alias: str | None

    def is_required(self) -> bool: ...


class Made(Protocol):
    def model_dump(self, *, mode: str, by_alias: bool) -> dict[str, object]: ...


class Model(Protocol):
    """A pydantic model's class."""

    model_fields: dict[str, Field]

    def model_validate(self, given: object) -> Made: ...


def is_dict(kind: object) -> bool:
    return hasattr(kind, "__required_keys__")


def models(union: object) -> Iterator[type]:
    """Yield the classes of a union, those of unions in it too."""
    if isinstance(union, type) and get_origin(union) is None:
        yield union
    for part in get_args(union):
        yield from models(part)


def examples(hint: object, depth: int) -> list[object]:
    """Return a value of each kind that a type hint allows; none where that would nest too deeply."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return [parts[0]]
    if origin in {Union, UnionType}:
        return [value for part in parts if part is not NoneType for value in examples(part, depth)]
    if origin in {Annotated, Required, NotRequired}:
        return examples(parts[0], depth)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return [{} if issubclass(origin, dict) else examples(parts[0], depth)]
    plain: dict[object, object] = {str: "x", int: 1, float: 0.5, bool: True, object: {"a": 1}}
    if hint in plain:
        return [plain[hint]]
    nests = is_dict(hint) or hasattr(hint, "model_fields")
    return list[object](structs(hint, depth - 1)[-1:]) if depth and nests else []


def structs(kind: object, depth: int) -> list[dict[str, object]]:
    """Return objects of a class with fields: with those that it needs alone, with all, and with each kind of each."""
    if is_dict(kind):
        hints = get_type_hints(kind, localns={"ClassVar": ClassVar}, include_extras=True)
        needed = {name for name, hint in hints.items() if get_origin(hint) is Required}
    else:
        fields = {field.alias or name: field for name, field in cast("Model", kind).model_fields.items()}
        hints = {name: field.annotation for name, field in fields.items()}
        needed = {name for name, field in fields.items() if field.is_required()}
    values = {name: ["{}"] if name == "arguments" else examples(hint, depth) for name, hint in hints.items()}
    if any(not values[name] for name in needed):
        return []
    least = {name: values[name][0] for name in needed}
    most = {name: each[0] for name, each in values.items() if each}
    return [least, *({**most, name: value} for name, each in values.items() for value in each)]


def dumped(kind: type) -> list[dict[str, object]]:
    """Return what the vendor's package itself writes of objects of one of its classes."""
    if is_dict(kind):
        return structs(kind, DEPTH)
    model = cast("Model", kind)  # what pydantic makes has no type here
    return [model.model_validate(made).model_dump(mode="json", by_alias=True) for made in structs(kind, DEPTH)]


def read(reader: Reader, recorded: object) -> tuple[list[AnyEvent], list[str]]:
    found = list(reader.read(BytesIO(json.dumps(recorded).encode()), "f.json"))
    events = [item for item in found if not isinstance(item, Unreadable)]
    for event in events:
        encode_event(event)
    return events, [item.reason for item in found if isinstance(item, Unreadable)]


def named(kinds: Iterable[type]) -> Sequence[object]:
    return [pytest.param(kind, id=kind.__name__) for kind in dict.fromkeys(kinds)]


def blocks() -> list[type]:
    from anthropic.types import ContentBlock, ContentBlockParam
    from anthropic.types.beta import BetaContentBlock, BetaContentBlockParam

    return [
        kind
        for union in (ContentBlock, ContentBlockParam, BetaContentBlock, BetaContentBlockParam)
        for kind in models(union)
    ]


def items() -> list[type]:
    from openai.types.responses import (
        ResponseInputItem,
        ResponseInputItemParam,
        ResponseItem,
        ResponseOutputItem,
    )

    unions = (ResponseInputItem, ResponseOutputItem, ResponseItem, ResponseInputItemParam)
    return [kind for union in unions for kind in models(union)]


# Of these no event tells anything by itself: settings, and tools that were not on offer, or of which only the server
# is named.
SILENT = {"compaction_trigger", "configuration_update", "tool_addition", "tool_removal"}


@pytest.mark.parametrize("kind", named(blocks()))
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_every_block_is_read(kind: type, role: str) -> None:
    made = dumped(kind)
    assert made
    for block in made:
        events, faults = read(AnthropicMessages(), [{"role": role, "content": [block]}])
        assert faults == [], block
        assert {type(event).__name__ for event in events} - {"TurnEnded", "SessionEnded"} or block["type"] in SILENT


@pytest.mark.parametrize("kind", named(items()))
def test_every_item_is_read(kind: type) -> None:
    made = dumped(kind)
    assert made
    for item in made:
        events, faults = read(OpenAIResponses(), [item])
        assert faults == [], item
        assert {type(event).__name__ for event in events} - {"TurnEnded", "SessionEnded"} or item["type"] in SILENT


def test_every_tool_of_anthropic_is_declared() -> None:
    from anthropic.types import ToolUnionParam
    from anthropic.types.beta import BetaToolUnionParam

    for kind in [*models(ToolUnionParam), *models(BetaToolUnionParam)]:
        for tool in dumped(kind):
            events, faults = read(AnthropicMessages(), {"messages": [], "system": "x", "tools": [tool]})
            assert (faults, type(events[0])) == ([], ToolsDeclared), tool


def test_every_tool_of_the_responses_interface_is_declared() -> None:
    from openai.types.responses import Tool

    for kind in models(Tool):
        for tool in dumped(kind):
            events, faults = read(OpenAIResponses(), {"input": [], "tools": [tool]})
            assert (faults, type(events[0])) == ([], ToolsDeclared), tool


def test_whole_answers_of_both_interfaces_are_read_with_their_requests_and_alone() -> None:
    from anthropic.types import Message
    from openai.types.responses import Response

    for reader, kind, request in (
        (AnthropicMessages(), Message, {"messages": [{"role": "user", "content": "Go."}]}),
        (OpenAIResponses(), Response, {"input": "Go."}),
    ):
        for answer in dumped(kind):
            for recorded in ({"request": request, "response": answer}, answer):
                events, faults = read(reader, recorded)
                assert faults == []
                assert sum(isinstance(event, ModelCalled) for event in events) >= 1
                assert reader.detects(json.dumps(recorded).encode())


@pytest.mark.parametrize(("reader", "kinds"), [(AnthropicMessages(), blocks()), (OpenAIResponses(), items())])
def test_results_carry_the_id_of_their_call(reader: Reader, kinds: Sequence[type]) -> None:
    made = [one for kind in kinds if not is_dict(kind) for one in dumped(kind)]
    recorded = [{"role": "assistant", "content": made}] if reader.name == "anthropic-messages" else made
    events, _ = read(reader, recorded)
    called = {event.call for event in events if isinstance(event, ToolCallProposed)}
    # A server that cannot list its tools answers nobody's call.
    answered = [event for event in events if isinstance(event, ToolResultObserved) and event.tool != "mcp_list_tools"]
    # The search for tools may leave its ids out.
    assert called - {""} == {event.call for event in answered} - {""} == {"x"}
