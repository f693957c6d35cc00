"""Tells the items of one Responses conversation."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, Raw, UnsetType

from theodolite.core.event import Channel, ContextCompacted, Source
from theodolite.readers.conversations.content import Content, Parts, content_of
from theodolite.readers.conversations.conversation import COUNT, Conversation, Sampling, kind_named
from theodolite.readers.conversations.shown import shown
from theodolite.readers.openai_responses import form
from theodolite.readers.openai_responses.calls import Calls
from theodolite.readers.openai_responses.tools import tools_of

__all__ = ("Items",)

_TEXTS = ("input_text", "output_text", "text")
_ATTACHED = {
    "input_image": Channel.USER_IMAGE,
    "input_audio": Channel.USER_AUDIO,
    "input_file": Channel.USER_FILE,
}
_USER = Parts(_TEXTS, _ATTACHED)
_OTHERS = Parts(_TEXTS, {})
# Requests to the interface about how it should work: nothing of them is in the agent's context.
_SETTINGS = frozenset({"compaction_trigger", "configuration_update"})
# Why a response ended before its time; the session ends with that.
_STOPPED = frozenset({"cancelled", "failed", "incomplete"})
_INCOMPLETE = frozenset({"content_filter", "max_output_tokens"})


class Items:
    """Tells items in order, and what stands beside them first.

    What the model says is one turn until a result of the host, or the user, comes between.
    """

    def __init__(self, under: Conversation) -> None:
        self._under = under
        self._calls = Calls(under)
        self._count = 0
        self._stopped = ""

    def record(self, record: form.Record, line: int) -> Iterator[None]:
        """Tell what stands beside the items, then each item that went in, and each that came out."""
        under = self._under
        under.stand(line, "")
        asked = under.decoded(form.INNER, record.request, "request") or record
        answer = under.decoded(form.INNER, record.response, "response") or record
        self._beside(asked, answer)
        yield from self._told(_first(asked.instructions, answer.instructions), "instructions", line)
        self._hidden(asked, answer)
        yield from self._told(asked.input, "input", line)
        yield from self._told(answer.output, "output", line)

    def message(self, data: bytes | Raw, line: int) -> None:
        """Tell the next item of a bare list."""
        self._item(data, line, f"items[{self._count}]")
        self._count += 1

    def end(self) -> None:
        """Tell the end of the session."""
        self._under.end(self._stopped)

    def _told(self, raw: Raw | UnsetType, field: str, line: int) -> Iterator[None]:
        """Tell a text, as whose it is by its place, or items."""
        under = self._under
        under.stand(line, "")
        value = under.decoded(form.INPUT, raw, field)
        if isinstance(value, str) and field == "instructions":
            under.system(value, field)
        elif isinstance(value, str):
            under.asks(value, Channel.USER_TEXT)
        yield
        for index, item in enumerate(value if isinstance(value, list) else ()):
            self._item(item, line, f"{field}[{index}]")
            yield

    def _beside(self, asked: form.Record, answer: form.Record) -> None:
        under = self._under
        under.declares(tools_of(under, _first(asked.tools, answer.tools), "tools"))
        usage = under.decoded(form.USAGE, answer.usage, "usage")
        used: dict[str, int | None] = {}
        if usage is not None:
            used["input_tokens"] = under.decoded(COUNT, usage.input_tokens, "usage")
            used["output_tokens"] = under.decoded(COUNT, usage.output_tokens, "usage")
        named = _first(answer.model, asked.model)
        temperature, top_p = _first(asked.temperature, answer.temperature), _first(asked.top_p, answer.top_p)
        under.called(Sampling(named, temperature, top_p), used)
        status = under.text(answer.status, "status")
        if status in _STOPPED:
            details = under.decoded(form.INCOMPLETE, answer.incomplete_details, "incomplete_details")
            self._stopped = details.reason if details and details.reason in _INCOMPLETE else status

    def _hidden(self, asked: form.Record, answer: form.Record) -> None:
        """Tell that there is a prompt, or an earlier part, that the provider keeps."""
        if isinstance(_first(asked.prompt, answer.prompt), Raw):
            self._under.says("system", UNSET, Channel.SYSTEM_TEXT)
        earlier = _first(asked.previous_response_id, asked.conversation)
        if isinstance(_first(earlier, answer.previous_response_id), Raw):
            self._under.says("assistant", UNSET, Channel.EARLIER_TURN)

    def _item(self, data: bytes | Raw, line: int, place: str) -> None:
        under = self._under
        under.stand(line, place)
        item = under.decoded(form.ITEM, data, "")
        if item is None:
            return
        kind = item.type or ("message" if isinstance(item.role, Raw) else "item_reference")
        if item.type is None and isinstance(item.role, UnsetType) and isinstance(item.id, UnsetType):
            under.fault("", "an item without a type")
        elif kind == "message":
            self._message(item)
        else:
            if kind == "reasoning" or self._calls.of_model(kind):
                self._speaks()
            if not (self._calls.tell(kind, data, item) or self._other(kind, item)):
                under.fault("", f"an item of {kind_named(kind)} is not read here")

    def _other(self, kind: str, item: form.Item) -> bool:
        """Tell an item that is neither a message nor a call; whether its type is known."""
        under = self._under
        if kind == "reasoning":
            thought = shown(under, item.content, form.RESULTS, "content").texts
            thought = thought or shown(under, item.summary, form.RESULTS, "summary").texts
            under.says("assistant", "\n".join(thought) if thought else UNSET, Channel.REASONING)
        elif kind == "additional_tools":
            under.declares(tools_of(under, item.tools, "tools"))
        elif kind == "compaction":
            under.put(ContextCompacted(**under.at(Channel.CONTROL, Source.SYSTEM)))
        elif kind == "item_reference":
            under.says("assistant", UNSET, Channel.EARLIER_TURN, Source.EXTERNAL)
        else:
            return kind in _SETTINGS
        return True

    def _speaks(self) -> None:
        """Begin a turn of the model, if the one under way was answered."""
        if self._calls.answered:
            self._under.end_turn()
        self._under.spoken, self._calls.answered = True, False

    def _message(self, item: form.Item) -> None:
        under = self._under
        role = under.text(item.role, "role")
        if role == "user":
            content = content_of(under, item.content, _USER)
            under.asks(content.text, Channel.USER_PART if content.parts else Channel.USER_TEXT, content.attached)
            self._calls.answered = False
        elif role in {"system", "developer"}:
            under.system(content_of(under, item.content, _OTHERS).text, "content")
        elif role == "assistant":
            self._speaks()
            self._said(content_of(under, item.content, _OTHERS))
        else:
            under.fault("role", "not one of user, assistant, system, developer")

    def _said(self, content: Content) -> None:
        under = self._under
        if content.text:
            channel = Channel.ASSISTANT_PART if content.parts else Channel.ASSISTANT_TEXT
            under.says("assistant", content.text, channel)
        for text in filter(None, content.refusals):
            under.says("assistant", text, Channel.REFUSAL)
        cited = [text for place, raw in content.annotations for text in shown(under, raw, form.CITATIONS, place).texts]
        if cited:
            under.says("assistant", "\n".join(cited), Channel.CITATION, Source.EXTERNAL)


def _first(one: Raw | UnsetType, other: Raw | UnsetType) -> Raw | UnsetType:
    """Return the first that is there and not null."""
    return one if isinstance(one, Raw) and bytes(memoryview(one)[:4]) != b"null" else other
