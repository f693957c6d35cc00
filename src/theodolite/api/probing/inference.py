"""The inference function of axor-probe as a model: both of its contracts, and what breaks them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import anyio
import msgspec
from msgspec import Raw

from theodolite.api.probing.given import word
from theodolite.core.arguments import freeze, is_mapping, is_sequence
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
            given = self._inference_fn(_messages(query))
            if inspect.isawaitable(given):
                given = await given
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
    if judge and is_mapping(given) and "text" not in given:
        return Draw(text=_json(given))
    if not is_mapping(given) or given.keys().isdisjoint(_KNOWN):
        raise ModelError(
            f"the inference function gave {_kind(given)}: it gives the six fields as a dict, or a dict with "
            "text and tool_calls",
            cause=Cause.MALFORMED,
        )
    if "text" in given or "tool_calls" in given:
        return Draw(text=_text(given.get("text")), tool_calls=_calls(given.get("tool_calls")))
    return Draw(text=_json(given), vouched=True)


def _kind(given: object) -> str:
    return "a dict without any of its fields" if is_mapping(given) else type(given).__name__


def _text(given: object) -> str:
    """Return the text of an answer; of content blocks those that have one, and the JSON of others."""
    if given is None or isinstance(given, str):
        return printable(given or "")
    parts = [part.get("text") if is_mapping(part) else part for part in (given if is_sequence(given) else (given,))]
    return "\n".join([printable(part) if isinstance(part, str) else _json({"block": part}) for part in parts])


def _calls(given: object) -> tuple[Raw, ...]:
    """Return tool calls as JSON, each as it was given: what is none is for who reads the answer to say."""
    if given is None:
        return ()
    calls = given if is_sequence(given) else (given,)
    return tuple([_call(call) for call in calls])


def _call(given: object) -> Raw:
    if is_mapping(given):
        raw, _ = freeze(_plain(_named(given)))
        return raw
    return Raw(msgspec.json.encode(given if isinstance(given, str | bool | int | None) else type(given).__name__))


def _named(given: Mapping[object, object]) -> Mapping[object, object]:
    """Return a call with its name and arguments at the top, where OpenAI's form or Anthropic's has them elsewhere."""
    function = given.get("function")
    if is_mapping(function):
        return function
    return {**given, "arguments": given["input"]} if "input" in given and "arguments" not in given else given


def _plain(given: Mapping[object, object]) -> dict[str, object]:
    return {str(key): value for key, value in given.items()}


def _json(given: Mapping[object, object]) -> str:
    raw, _ = freeze(_plain(given))
    return bytes(raw).decode()
