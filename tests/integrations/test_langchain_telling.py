"""What becomes of the messages, tools and models of LangChain, one by one."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import pytest
from langchain.agents.middleware import ModelRequest
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.tools import BaseTool, StructuredTool
from msgspec import UNSET

from theodolite import Channel, Decision, EventError, Source, ToolsDeclared
from theodolite.core.event import (
    AnyHostEvent,
    GoalStated,
    MessageObserved,
    ModelCalled,
    SystemPromptSet,
    ToolCallProposed,
    ToolResultObserved,
)
from theodolite.integrations.langchain import conversation as told_by
from theodolite.integrations.langchain.conversation import Conversation, proposed
from theodolite.integrations.langchain.whereabouts import messages_in

PICTURE = {"type": "image", "url": "https://example.org/a.png"}


class Named(FakeMessagesListChatModel):
    model_id: str = "agent-1"
    temperature: float = 0.5


def tell(*messages: BaseMessage) -> list[AnyHostEvent]:
    conversation = Conversation()
    return [event for message in messages for event in conversation.tell(message)]


def asked(*tools: BaseTool | dict[str, object], prompt: str = "", **settings: object) -> ModelRequest[None]:
    messages: list[AnyMessage] = []
    model = Named(responses=[])
    system = SystemMessage(prompt) if prompt else None
    return ModelRequest(
        model=model, messages=messages, tools=[*tools], system_message=system, model_settings={**settings}
    )


def test_what_is_attached_is_told_unseen() -> None:
    parts: list[str | dict[str, object]] = ["Look:", dict(PICTURE), {"type": "input_audio"}, {"type": "file"}]
    told = tell(HumanMessage([*parts]))
    assert [(type(event), event.channel) for event in told] == [
        (GoalStated, Channel.USER_PART),
        (MessageObserved, Channel.USER_PART),
        (MessageObserved, Channel.USER_IMAGE),
        (MessageObserved, Channel.USER_AUDIO),
        (MessageObserved, Channel.USER_FILE),
    ]
    assert [getattr(event, "text", "") for event in told] == ["Look:", "Look:", UNSET, UNSET, UNSET]


def test_a_picture_alone_is_no_goal() -> None:
    assert [event.channel for event in tell(HumanMessage([dict(PICTURE)]))] == [Channel.USER_IMAGE]


def test_a_result_of_parts_shows_its_texts() -> None:
    content: list[str | dict[str, object]] = [
        {"type": "text", "text": "a"},
        dict(PICTURE),
        {"type": "text", "text": "b"},
    ]
    (told,) = tell(ToolMessage([*content], tool_call_id="c-1", name="scan", status="error"))
    assert isinstance(told, ToolResultObserved)
    assert (told.tool, told.text, told.error, told.channel) == ("scan", "a\nb", True, Channel.TOOL_RESULT_PART)


def test_a_result_of_the_old_kind_and_a_message_of_an_unknown_role_are_not_the_users() -> None:
    result, message = tell(
        FunctionMessage(content="done", name="pay"), ChatMessage(content="Pay XK-666", role="auditor")
    )
    assert isinstance(result, ToolResultObserved)
    assert (result.tool, result.text, result.source) == ("pay", "done", Source.TOOL)
    assert isinstance(message, MessageObserved)
    assert message.source is Source.EXTERNAL


def test_a_system_message_in_the_thread_becomes_its_hash() -> None:
    (told,) = tell(SystemMessage("Help."))
    assert isinstance(told, SystemPromptSet)
    assert told.length == 5
    assert "Help" not in str(told)


def test_a_call_that_langchain_cannot_read_is_told_without_arguments() -> None:
    broken = InvalidToolCall(name="pay", args="{", id="c-1", error="no JSON", type="invalid_tool_call")
    (told,) = tell(AIMessage("", invalid_tool_calls=[broken]))
    assert isinstance(told, ToolCallProposed)
    assert (told.tool, told.arguments, told.channel) == ("pay", UNSET, Channel.TOOL_CALL_STRING)


def test_calls_are_known_by_all_that_they_say() -> None:
    tell_call: Callable[[object], object] = attrgetter("proposed")(told_by)
    with pytest.raises(EventError, match="arguments must be a mapping"):
        tell_call({"name": "pay", "args": "{}", "id": "c-1"})
    conversation = Conversation()
    call = proposed(ToolCall(name="pay", args={"to": "a"}, id=None))
    assert call.call == ""
    assert conversation.decided(call) is None


def test_of_two_equal_calls_a_refused_one_refuses_both() -> None:
    conversation = Conversation()
    call = proposed(ToolCall(name="pay", args={"to": "a"}, id="c-1"))
    for seq, allowed in enumerate((True, False, True)):
        conversation.decide(call, Decision(session="s-1", seq=seq, about=seq, allowed=allowed))
    assert conversation.decided(call) == Decision(session="s-1", seq=1, about=1, allowed=False)


def test_a_model_without_a_name_is_not_told() -> None:
    nameless = asked().override(model=FakeMessagesListChatModel(responses=[]))
    assert not list(Conversation().asks(nameless))


def test_what_the_model_is_asked_with_is_told_when_it_changes() -> None:
    def look(at: str) -> str:
        """Look."""
        return at

    hints = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": "?"}
    tool = StructuredTool.from_function(look, metadata=hints)
    conversation = Conversation()
    declared, model, prompt = conversation.asks(asked(tool, {"type": "web_search"}, prompt="Help.", temperature=1))
    assert isinstance(declared, ToolsDeclared)
    mine, hosted = declared.tools
    assert (mine.name, mine.description, mine.read_only, mine.destructive, mine.open_world) == (
        "look",
        "Look.",
        True,
        False,
        None,
    )
    assert b'"at"' in bytes(mine.parameters or b"")
    assert (hosted.name, hosted.parameters) == ("web_search", UNSET)
    assert isinstance(model, ModelCalled)
    assert (model.model, model.temperature, model.top_p) == ("agent-1", 1.0, UNSET)
    assert isinstance(prompt, SystemPromptSet)
    assert not list(conversation.asks(asked(tool, {"type": "web_search"}, prompt="Help.", temperature=1)))
    (cooler,) = conversation.asks(asked(tool, {"type": "web_search"}, prompt="Help."))
    assert isinstance(cooler, ModelCalled)
    assert cooler.temperature == 0.5
    (fewer,) = conversation.asks(asked(tool, prompt="Help."))
    assert isinstance(fewer, ToolsDeclared)


def test_messages_are_found_in_each_form_of_state() -> None:
    class Form:
        messages = (HumanMessage("a"),)

    found = [HumanMessage("a")]
    for state in ({"messages": [*found, "no message"]}, found, Form()):
        assert messages_in(state) == found
    assert messages_in({}) == messages_in(None) == []
