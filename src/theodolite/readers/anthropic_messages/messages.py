"""Tells the messages of one Anthropic conversation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import UNSET, Raw, UnsetType

from theodolite.core.event import Channel, ContextCompacted, Source
from theodolite.readers.anthropic_messages import form
from theodolite.readers.anthropic_messages.toolbox import changes_of, tools_of
from theodolite.readers.conversations.conversation import COUNT, Call, Conversation, Sampling, kind_named
from theodolite.readers.conversations.shown import Shown, shown

__all__ = ("Messages",)

# Results by the type of their block: those of the host's tools, and of those that run at Anthropic. What comes from
# the web was written outside.
_RESULTS: Mapping[str, tuple[Channel, Source]] = {
    "tool_result": (Channel.TOOL_RESULT_TEXT, Source.TOOL),
    "mcp_tool_result": (Channel.MCP_RESULT, Source.TOOL),
    "web_search_tool_result": (Channel.PROVIDER_TOOL, Source.EXTERNAL),
    "web_fetch_tool_result": (Channel.PROVIDER_TOOL, Source.EXTERNAL),
    "code_execution_tool_result": (Channel.PROVIDER_TOOL, Source.TOOL),
    "bash_code_execution_tool_result": (Channel.PROVIDER_TOOL, Source.TOOL),
    "text_editor_code_execution_tool_result": (Channel.PROVIDER_TOOL, Source.TOOL),
    "tool_search_tool_result": (Channel.PROVIDER_TOOL, Source.TOOL),
    "advisor_tool_result": (Channel.PROVIDER_TOOL, Source.TOOL),
}
_ATTACHED = {
    "image": Channel.USER_IMAGE,
    "document": Channel.USER_FILE,
    "search_result": Channel.USER_FILE,
    "container_upload": Channel.USER_FILE,
}
# Reasons why a model stopped before its end; the session ends with that of its last response.
_STOPPED = frozenset({"max_tokens", "pause_turn", "refusal", "model_context_window_exceeded"})


class Messages:
    """Tells messages in order, and what stands beside them first."""

    def __init__(self, under: Conversation) -> None:
        self._under = under
        self._count = 0
        self._stopped = ""
        self._texts: list[str] = []
        self._attached: list[Channel] = []
        self._files: list[str | UnsetType] = []

    def record(self, record: form.Record, line: int) -> Iterator[None]:
        """Tell the tools on offer, the model and the system prompt, then each message, and the response."""
        under = self._under
        under.stand(line, "")
        asked = under.decoded(form.INNER, record.request, "request") or record
        alone = isinstance(record.role, Raw)
        under.declares(tools_of(under, asked.tools))
        answer = None if alone else under.decoded(form.ANSWER, record.response, "response")
        if not alone:
            self._called(asked, answer)
        if isinstance(asked.system, Raw):
            self._system(asked.system, "system")
        yield
        for _, message in under.items(asked.messages, "messages"):
            self.message(message, line)
            yield
        if answer is not None:
            under.stand(line, "response")
            self._message(answer)
        yield

    def message(self, data: bytes | Raw, line: int) -> None:
        """Tell the next message. A response that a host put among them says of itself which model it is of."""
        under = self._under
        under.stand(line, f"messages[{self._count}]")
        self._count += 1
        message = under.decoded(form.MESSAGE, data, "")
        if message is None:
            return
        if isinstance(message.model, Raw):
            under.end_turn()
            self._called(form.Record(), message)
        self._message(message)

    def end(self) -> None:
        """Tell the end of the session."""
        self._under.end(self._stopped)

    def _called(self, asked: form.Record, answer: form.Message | None) -> None:
        under = self._under
        named = asked.model if answer is None or isinstance(answer.model, UnsetType) else answer.model
        usage = None if answer is None else under.decoded(form.USAGE, answer.usage, "usage")
        used: dict[str, int | None] = {}
        if usage is not None:
            inputs = (usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
            counts = [under.decoded(COUNT, count, "usage") for count in inputs]
            used["input_tokens"] = None if counts[0] is None else sum(filter(None, counts))
            used["output_tokens"] = under.decoded(COUNT, usage.output_tokens, "usage")
        under.called(Sampling(named, asked.temperature, asked.top_p), used)

    def _system(self, raw: Raw | UnsetType, field: str) -> None:
        under = self._under
        value = under.decoded(form.CONTENT, raw, field)
        if not isinstance(value, list):
            under.system(UNSET if value is None else value, field)
            return
        texts: list[str] = []
        blocks = [(f"{field}[{index}]", item) for index, item in enumerate(value)]
        for place, item in blocks:
            block = under.decoded(form.BLOCK, item, place)
            if block is None:
                continue
            if block.type == "text":
                texts.append(under.text(block.text, f"{place}.text"))
            elif not changes_of(under, block, place):
                under.fault(place, f"a part of {kind_named(block.type)} is not read here")
        if texts or not blocks:
            under.system("\n".join(texts) if texts else UNSET, field)

    def _message(self, message: form.Message) -> None:
        under = self._under
        if message.role == "system":
            self._system(message.content, "content")
            return
        if message.role not in {"user", "assistant"}:
            under.fault("role", "not one of user, assistant, system")
            return
        if message.role == "assistant":
            under.end_turn()
            under.spoken = True
        value = under.decoded(form.CONTENT, message.content, "content")
        if isinstance(value, list):
            for index, item in enumerate(value):
                self._block(message.role, item, f"content[{index}]")
            self._flush(message.role, empty=not value)
        elif message.role == "user":
            under.asks(UNSET if value is None else value, Channel.USER_TEXT)
        elif value:
            under.says("assistant", value, Channel.ASSISTANT_TEXT)
        if message.role == "assistant":
            self._stop(message)

    def _block(self, role: str, item: Raw, place: str) -> None:
        under = self._under
        block = under.decoded(form.BLOCK, item, place)
        if block is None:
            return
        if block.type == "text":
            self._text(role, block, place)
        elif block.type in _ATTACHED:
            self._attach(role, shown(under, item, form.RESULTS, place), block.type)
        else:
            if role == "assistant":
                self._flush(role)
            self._other(block, place)

    def _attach(self, role: str, seen: Shown, kind: str) -> None:
        if role == "assistant":
            self._flush(role)
            self._under.says("assistant", seen.text, Channel.ASSISTANT_PART, Source.EXTERNAL)
            return
        self._files += [seen.text] if seen.texts else []
        self._attached += [_ATTACHED[kind]] if seen.hidden or not seen.texts else []

    def _text(self, role: str, block: form.Block, place: str) -> None:
        under = self._under
        self._texts.append(under.text(block.text, f"{place}.text"))
        cited = shown(under, block.citations, form.CITATIONS, f"{place}.citations").texts
        if cited and role == "assistant":
            self._flush(role)
            under.says("assistant", "\n".join(cited), Channel.CITATION, Source.EXTERNAL)

    def _flush(self, role: str, *, empty: bool = False) -> None:
        """Tell the texts that came one after the other, and what the user attached: of that, others wrote the text."""
        under = self._under
        texts, self._texts = self._texts, []
        attached, self._attached = self._attached, []
        files, self._files = self._files, []
        text = "\n".join(texts) if texts else UNSET
        if role != "user":
            if text:
                under.says("assistant", text, Channel.ASSISTANT_PART)
            return
        if texts or attached or empty:
            under.asks(text, Channel.USER_PART, attached)
        for file in files:
            under.end_turn()
            under.says("user", file, Channel.USER_FILE, Source.EXTERNAL)

    def _other(self, block: form.Block, place: str) -> None:
        under = self._under
        if block.type in {"tool_use", "server_tool_use", "mcp_tool_use"}:
            self._call(block, place)
        elif block.type in _RESULTS:
            self._result(block, place)
        elif block.type in {"thinking", "redacted_thinking"}:
            # A thought that is not shown is an empty one with a signature.
            thought = under.text(block.thinking, f"{place}.thinking")
            under.says("assistant", thought or UNSET, Channel.REASONING)
        elif block.type == "compaction":
            under.put(ContextCompacted(**under.at(Channel.CONTROL, Source.SYSTEM)))
            summary = under.text(block.content, f"{place}.content")
            under.says("assistant", summary or UNSET, Channel.EARLIER_TURN)
            for field, change in under.items(block.tool_changes, f"{place}.tool_changes"):
                self._change(change, field)
        elif block.type == "fallback":
            to = under.decoded(form.NAMED, block.to, f"{place}.to")
            under.called(Sampling(to.model if to else UNSET))
        elif block.type == "mcp_tool_listing":
            under.declares(tools_of(under, block.tools, f"{place}.tools"), Source.TOOL)
        elif not changes_of(under, block, place):
            under.fault(place, f"a part of {kind_named(block.type)} is not read here")

    def _change(self, item: Raw, place: str) -> None:
        block = self._under.decoded(form.BLOCK, item, place)
        if block is not None and not changes_of(self._under, block, place):
            self._under.fault(place, f"a part of {kind_named(block.type)} is not read here")

    def _call(self, block: form.Block, place: str) -> None:
        under = self._under
        tool = under.text(block.name, f"{place}.name")
        call = Call(tool, under.text(block.id, f"{place}.id"), hosted=block.type != "tool_use")
        under.calls(call, under.arguments(block.input, f"{place}.input"))

    def _result(self, block: form.Block, place: str) -> None:
        under = self._under
        channel, source = _RESULTS[block.type]
        seen = shown(under, block.content, form.RESULTS, f"{place}.content")
        if seen.parts and channel is Channel.TOOL_RESULT_TEXT:
            channel = Channel.TOOL_RESULT_PART
        call = under.call(under.text(block.tool_use_id, f"{place}.tool_use_id"))
        error = seen.failed or block.is_error is True
        under.returns(call, seen.text, channel, source=source, error=error)
        if seen.texts and seen.hidden:
            under.returns(call, UNSET, channel, source=source, error=error)

    def _stop(self, message: form.Message) -> None:
        under = self._under
        reason = under.text(message.stop_reason, "stop_reason")
        self._stopped = reason if reason in _STOPPED else ""
        if reason == "refusal":
            details = under.decoded(form.DETAILS, message.stop_details, "stop_details")
            said = details.explanation if details else None
            under.says("assistant", said or UNSET, Channel.REFUSAL)
