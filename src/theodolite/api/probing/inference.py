"""The inference function of axor-probe as a model: both of its contracts, and what breaks them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import anyio
import msgspec
from msgspec import Raw

from theodolite.api.probing.foreign import given_by
from theodolite.api.probing.given import FAULTS, word
from theodolite.core.arguments import MAX_DEPTH, freeze, is_mapping, is_sequence, thaw
from theodolite.core.errors import ConfigError, ModelError
from theodolite.core.inquiry import Draw, Query, Reply, Role
from theodolite.core.reading import Cause
from theodolite.core.text import brief, printable
from theodolite.detectors.behavior.probe import EXPECTED
from theodolite.models.hosted.question import turns

__all__ = ("NAME", "FunctionModel", "InferenceFn")

InferenceFn = Callable[[list[dict[str, str]]], Awaitable[object] | object]
"""Takes messages with `role` and `content`; gives the six fields as a dict, or raw text and calls; plain or async."""

NAME = "inference_fn"
"""What a function is called as a model, where nobody names one."""

# Calls of one inference function under way at once. Our choice: providers' usual limits are above it.
_AT_ONCE = 64


_KNOWN = frozenset({"text", "tool_calls", *EXPECTED})


class FunctionModel:
    """An inference function as a model.

    It is given fresh messages for each draw, which it may change: the system prompt, then turns of user and assistant
    that every provider takes. What it gives is read by its form. A dict with `text` is raw: the text, or a list of
    content blocks, and `tool_calls`, which are judged and never run; so is a bare string. Any other dict is what the
    function's own adapter says of the answer, in the six fields. None, numbers and lists are no answers: ModelError.
    A plain function is called on the event loop, and holds it up. Raises ConfigError for what is no function, or has no
    name.
    """

    max_concurrency = _AT_ONCE

    def __init__(self, inference_fn: InferenceFn, *, name: str = NAME) -> None:
        if not callable(inference_fn):
            raise ConfigError(
                f"inference_fn is {brief(inference_fn)}, no function: give an async one, of a list of messages"
            )
        self._inference_fn = inference_fn
        self.name = word("name", name)

    async def ask(self, query: Query) -> Reply:
        """Call the function once for each draw, all at once. Raises ModelError for what is no answer."""
        draws: list[Draw] = [Draw()] * query.samples

        async def one(place: int) -> None:
            given = await given_by(lambda: self._inference_fn(_messages(query)))
            draws[place] = _draw(given, judge=query.role is Role.JUDGE)

        if query.samples == 1:
            await one(0)
        else:
            async with anyio.create_task_group() as group:
                for place in range(query.samples):
                    group.start_soon(partial(one, place))
        return Reply(query=query, model=self.name, draws=tuple(draws))


def _messages(query: Query) -> list[dict[str, str]]:
    system = [{"role": "system", "content": query.system}] if query.system else []
    return [*system, *turns(query)]


def _draw(given: object, *, judge: bool) -> Draw:
    if isinstance(given, str):
        return Draw(text=printable(given))
    said = _plain(given) if is_mapping(given) else {}
    if judge and is_mapping(given) and "text" not in said:
        return Draw(text=_json(said))
    if said.keys().isdisjoint(_KNOWN):
        raise ModelError(
            f"the inference function gave {_kind(given)}: it gives the six fields as a dict, or a dict with "
            "text and tool_calls",
            cause=Cause.MALFORMED,
        )
    if "text" in said or "tool_calls" in said:
        return Draw(text=_text(said.get("text")), tool_calls=_calls(said.get("tool_calls")))
    return Draw(text=_json(said), vouched=True)


def _kind(given: object) -> str:
    return "a dict without any of its fields" if is_mapping(given) else type(given).__name__


def _text(given: object) -> str:
    """Return the text of an answer; of content blocks those that have one, and the JSON of others."""
    if given is None or isinstance(given, str):
        return given or ""
    parts = [part.get("text") if is_mapping(part) else part for part in (given if is_sequence(given) else (given,))]
    return "\n".join([part if isinstance(part, str) else _json({"block": part}) for part in parts])


def _calls(given: object) -> tuple[Raw, ...]:
    """Return tool calls as JSON, each as it was given: what is none is for who reads the answer to say."""
    if given is None:
        return ()
    calls = given if is_sequence(given) else (given,)
    return tuple([Raw(msgspec.json.encode(_named(call) if is_mapping(call) else call)) for call in calls])


def _named(given: Mapping[object, object]) -> Mapping[object, object]:
    """Return a call with its name and arguments at the top, where OpenAI's form or Anthropic's has them elsewhere."""
    function = given.get("function")
    if is_mapping(function):
        return function
    return {**given, "arguments": given["input"]} if "input" in given and "arguments" not in given else given


def _json(given: Mapping[str, object]) -> str:
    return msgspec.json.encode(given).decode()


def _plain(given: Mapping[object, object]) -> dict[str, object]:
    """Return what a dict holds as JSON has it, of whatever types it is made.

    What is no JSON is its type's name; of a text with a lone surrogate only that is spelled out, for the rest may tell.
    """
    raw, _ = freeze({str(key): _spelled(value, frozenset()) for key, value in given.items()})
    return thaw(raw)


def _spelled(value: object, above: frozenset[int]) -> object:
    """Return a copy of a value with printable texts. What is too deep, goes in a circle or fails is left as it is."""
    if isinstance(value, str):
        return printable(str.__str__(value))
    if id(value) in above or len(above) > MAX_DEPTH or not (is_mapping(value) or is_sequence(value)):
        return value
    within = above | {id(value)}
    try:
        if is_mapping(value):
            return {key: _spelled(item, within) for key, item in value.items()}
        return [_spelled(item, within) for item in value]
    except FAULTS:  # of a mapping of the host's own: `freeze` says that it cannot be read
        return value
