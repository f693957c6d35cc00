"""Tells one sample of an Inspect log as a session."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, Raw, UnsetType

from theodolite.core.event import Channel, MessageObserved, ModelCalled, Source
from theodolite.readers.conversations.conversation import Call, Conversation, kind_named
from theodolite.readers.inspect_logs import form

__all__ = ("tell",)

_ATTACHMENT = "attachment://"
_FILES = {
    "image": Channel.USER_IMAGE,
    "audio": Channel.USER_AUDIO,
    "video": Channel.USER_FILE,
    "document": Channel.USER_FILE,
    "data": Channel.USER_FILE,
}


def tell(under: Conversation, sample: form.Sample, run: form.Eval, line: int, place: str) -> None:
    """Tell a sample, to its end: the tools that its model was first shown, the model, then each message."""
    under.stand(line, place)
    attached = under.decoded(form.ATTACHMENTS, sample.attachments, "attachments") or {}
    telling = _Telling(under, attached)
    telling.declares(sample)
    if run.model:
        under.put(ModelCalled(model=run.model, **under.at(Channel.CONTROL, Source.SYSTEM)))
    messages = under.items(sample.messages, "messages")
    if not messages:
        telling.asked(sample)
    for where, message in messages:
        under.stand(line, ".".join(filter(None, (place, where))))
        telling.message(message)
    under.end()


class _Content:
    """A content, cut up: its text, what is attached, and what stands for itself."""

    def __init__(self) -> None:
        self.text: str | UnsetType = UNSET
        self.parts = False
        self.files: list[Channel] = []
        self.others: list[tuple[str, form.Part]] = []


class _Telling:
    """Tells the messages of one sample in order. What stood too often in its log is kept once, and is put back."""

    def __init__(self, under: Conversation, attached: Mapping[str, str]) -> None:
        self._under = under
        self._attached = attached

    def declares(self, sample: form.Sample) -> None:
        """Tell the tools that the model was shown first."""
        under = self._under
        for place, event in under.items(sample.events, "events"):
            found = under.decoded(form.MODEL, event, place)
            if found is not None and found.event == "model":
                tools = under.items(found.tools, f"{place}.tools")
                under.declares([tool for where, item in tools for tool in under.declared(item, where)])
                return

    def asked(self, sample: form.Sample) -> None:
        """Tell the input of a sample that has no messages: it may be one message, or a list of them."""
        under = self._under
        given = under.decoded(form.CONTENT, sample.input, "input")
        if isinstance(given, str):
            under.asks(self._whole(given), Channel.USER_TEXT)
        for message in given if isinstance(given, list) else ():
            self.message(message)

    def message(self, data: Raw) -> None:
        """Tell the next message."""
        under = self._under
        message = under.decoded(form.MESSAGE, data, "")
        if message is None:
            return
        content = self._content(message.content)
        if message.role == "system":
            under.system(content.text, "content")
        elif message.role == "user":
            under.asks(content.text, Channel.USER_PART if content.parts else Channel.USER_TEXT, content.files)
        elif message.role == "assistant":
            self._assistant(message, content)
        elif message.role == "tool":
            self._result(message, content)
        else:
            under.fault("role", "not one of system, user, assistant, tool")

    def _assistant(self, message: form.Message, content: _Content) -> None:
        under = self._under
        under.end_turn()
        under.spoken = True
        for place, part in content.others:
            if part.type == "reasoning":
                thought = UNSET if part.redacted else part.reasoning
                under.put(MessageObserved(role="assistant", text=thought, **under.at(Channel.REASONING, Source.MODEL)))
            else:
                self._ran(part, place)
        if content.text:
            under.says("assistant", content.text, Channel.ASSISTANT_PART if content.parts else Channel.ASSISTANT_TEXT)
        for place, item in under.items(message.tool_calls, "tool_calls"):
            call = under.decoded(form.CALL, item, place)
            if call is not None:
                given = under.arguments(call.arguments, f"{place}.arguments")
                under.calls(Call(call.function, call.id or ""), given)

    def _ran(self, part: form.Part, place: str) -> None:
        """Tell a tool that the provider ran, and what it gave."""
        under = self._under
        call = Call(part.name or part.type, part.id or "", hosted=True)
        under.calls(call, under.arguments(part.arguments, f"{place}.arguments"))
        text = part.error if part.error and not part.result else part.result
        under.returns(call, text, Channel.PROVIDER_TOOL, source=Source.EXTERNAL, error=bool(part.error))

    def _result(self, message: form.Message, content: _Content) -> None:
        under = self._under
        failed = under.decoded(form.ERROR, message.error, "error")
        # Where a tool failed, what the agent was shown is the error.
        text = failed.message if failed is not None and not content.text else content.text
        call = under.call(message.tool_call_id or "", message.function or "")
        channel = Channel.TOOL_RESULT_PART if content.parts else Channel.TOOL_RESULT_TEXT
        under.returns(call, text, channel, error=failed is not None)
        for _ in content.files:
            under.returns(call, UNSET, Channel.TOOL_RESULT_PART, error=failed is not None)

    def _content(self, raw: Raw | UnsetType) -> _Content:
        under, found = self._under, _Content()
        value = under.decoded(form.CONTENT, raw, "content")
        if not isinstance(value, list):
            found.text = UNSET if value is None else self._whole(value)
            return found
        found.parts = True
        texts: list[str] = []
        for index, item in enumerate(value):
            place = f"content[{index}]"
            part = under.decoded(form.PART, item, place)
            if part is None:
                continue
            if part.type == "text" and isinstance(part.text, str):
                texts.append(self._whole(part.text))
            elif part.type in {"reasoning", "tool_use"}:
                found.others.append((place, part))
            elif part.type in _FILES:
                found.files.append(_FILES[part.type])
            else:
                under.fault(place, f"a part of {kind_named(part.type)} is not read here")
        found.text = "\n".join(texts) if texts else UNSET
        return found

    def _whole(self, text: str) -> str:
        """Return a text, or the one that was kept in its place."""
        if not text.startswith(_ATTACHMENT):
            return text
        return self._attached.get(text.removeprefix(_ATTACHMENT), text)
