"""A query as a chat model is shown it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec
from msgspec import Raw, Struct

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.errors import ModelError
from theodolite.core.faults import place_of
from theodolite.core.inquiry import Message, Query
from theodolite.models.local.tool_calls import spelled_out

__all__ = ("BEGUN", "Turn", "answers", "grammar", "turns")

BEGUN = '{"answer": '
"""How the answer to a choice begins."""

_ORDERS = frozenset({"system", "developer"})
_RESULTS = frozenset({"tool", "function"})
# JSON levels. The runtime stops enforcing schemas that are some tens of levels deep, and at some thousands it crashes.
_DEEPEST = 64


class Turn(Struct, frozen=True):
    """One turn of a conversation."""

    role: str
    content: str


def turns(query: Query, *, spell_out_tools: bool) -> tuple[Turn, ...]:
    """Return the turns of a query: at most one of the system, then of user and assistant in alternation.

    That is what every chat template takes. So messages of one role that follow each other are joined by a blank line;
    what the context's system says comes with the query's; a tool's message becomes a turn of the user that says what it
    is, since templates disagree about results of calls that they have not seen. The options of a choice are told in
    their order.
    """
    context = query.context or ()
    orders = (query.system, *(message.text for message in context if message.role in _ORDERS))
    system = "\n\n".join(filter(None, (*orders, spelled_out(query.tools) if spell_out_tools else "")))
    said = (_turn(message) for message in context if message.role not in _ORDERS)
    first = (Turn("system", system),) if system else ()
    return (*first, *_joined([*said, Turn("user", _asked(query))]))


def _turn(message: Message) -> Turn:
    if message.role in {"user", "assistant"}:
        return Turn(message.role, message.text)
    told = "Result of a tool" if message.role in _RESULTS else f"Message of the role {message.role}"
    return Turn("user", f"{told}:\n{message.text}")


def _joined(said: Iterable[Turn]) -> Iterator[Turn]:
    for role, together in groupby(said, lambda turn: turn.role):
        yield Turn(role, "\n\n".join(turn.content for turn in together))


def _asked(query: Query) -> str:
    if not query.options:
        return query.prompt
    forms = ", ".join(f"{BEGUN}{answer}" for answer in answers(query.options))
    return f"{query.prompt}\n\nAnswer with one of these: {forms}"


def answers(options: Iterable[str]) -> tuple[str, ...]:
    r"""Return how the answer goes on after `BEGUN`, for each option.

    >>> answers(["comply", 'say "no"'])
    ('"comply"}', '"say \\"no\\""}')
    """
    return tuple([json.dumps(option, ensure_ascii=False) + "}" for option in options])


def grammar(schema: Raw) -> str:
    """Return the grammar that holds a draw to a JSON Schema, without white space that a small model could get lost in.

    Raises ModelError for a schema that is no JSON object or is nested too deeply.
    """
    try:
        stated = msgspec.json.decode(schema, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ModelError(f"the query's schema is no JSON object ({place_of(error)}): give a JSON Schema") from None
    if _depth(stated) > _DEEPEST:
        raise ModelError(f"the query's schema is nested more than {_DEEPEST} levels deep: give a flatter one")
    compact = {**stated, "x-guidance": {"whitespace_flexible": False}}
    return f"%llguidance {{}}\nstart: %json {msgspec.json.encode(compact).decode()}"


def _depth(value: object) -> int:
    level: list[object] = [value]
    depth = 0
    while level:
        depth += 1
        level = [child for parent in level for child in _children(parent)]
    return depth


def _children(value: object) -> Iterable[object]:
    if is_mapping(value):
        return value.values()
    return value if is_sequence(value) else ()
