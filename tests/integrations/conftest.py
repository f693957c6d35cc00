from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from typing_extensions import override


class Scripted(FakeMessagesListChatModel):
    """Gives the answer that comes next in its conversation, so that several can go on at once."""

    model_name: str = "office-agent-2026"

    @override
    def bind_tools(self, tools: object, **kwargs: object) -> Scripted:
        return self

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        said = sum(isinstance(message, AIMessage) for message in messages)
        script = FakeMessagesListChatModel(responses=[self.responses[said % len(self.responses)].model_copy(deep=True)])
        return script._generate(messages, stop, run_manager)


Answer = str | Sequence[tuple[str, dict[str, object]]]


@pytest.fixture
def scripted() -> Callable[..., BaseChatModel]:
    """Return what makes a model of its answers: a text, or calls of a tool with arguments."""

    def make(*answers: Answer | AIMessage) -> BaseChatModel:
        numbers = itertools.count(1)
        return Scripted(responses=[_message(answer, numbers) for answer in answers])

    return make


def _message(answer: Answer | AIMessage, numbers: itertools.count[int]) -> AIMessage:
    if isinstance(answer, AIMessage):
        return answer
    if isinstance(answer, str):
        return AIMessage(answer)
    calls = [{"name": name, "args": args, "id": f"c-{next(numbers)}"} for name, args in answer]
    return AIMessage("", tool_calls=calls)
