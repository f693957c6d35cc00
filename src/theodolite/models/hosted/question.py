"""How a query is put to a hosted model: its turns, its options as lettered choices, its tools and schema as JSON.

Pure, and the same for every provider, so that two models that are compared were shown the same words.
"""

from __future__ import annotations

import string
from collections.abc import Collection

import msgspec
from msgspec import Raw, Struct, UnsetType

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.errors import ConfigError, ModelError
from theodolite.core.event import Tool
from theodolite.core.faults import place_of
from theodolite.core.inquiry import Message, Query
from theodolite.core.text import printable

__all__ = (
    "LETTERS",
    "Sampling",
    "is_strict",
    "parameters",
    "question",
    "schema_of",
    "turns",
)

LETTERS = string.ascii_uppercase
"""What options are called in a question. Neutral: a session that holds the words of an option primes them."""

# What the Responses API takes at least as `max_output_tokens`; a letter needs one or two.
LETTER_TOKENS = 16

_EXPLAINED = {"tool": "Result of a tool", "function": "Result of a tool"}
_SPOKEN = frozenset({"user", "assistant"})


class Sampling(Struct, frozen=True, kw_only=True, gc=False):
    """What is asked of a hosted model beside the query. Raises ConfigError for numbers that no provider takes.

    `top_logprobs` is how many alternatives to a token are asked for when the query has options; 0: none are.
    """

    model: str
    max_tokens: int
    temperature: float | None = None
    top_logprobs: int = 0

    def __post_init__(self) -> None:
        if not self.model:
            raise ConfigError("a model needs a name: give the one that the provider knows it by")
        if self.max_tokens < 1:
            raise ConfigError(f"max_tokens={self.max_tokens} leaves no room for an answer: give 1 or more")
        if not 0 <= self.top_logprobs <= 20:  # noqa: PLR2004 - the most that OpenAI gives; its API reference
            raise ConfigError(f"top_logprobs={self.top_logprobs}: give 0 for none, or up to 20")

    def tokens(self, query: Query) -> int:
        """Return how long an answer may be: short where a letter is enough and its alternatives are shown."""
        return min(self.max_tokens, LETTER_TOKENS) if query.options and self.top_logprobs else self.max_tokens


def question(query: Query) -> str:
    """Return the prompt, with its options by letter where it has some. Raises ModelError for more than 26.

    >>> from theodolite.core.inquiry import Role
    >>> print(question(Query(role=Role.JUDGE, prompt="Is this the same?", options=("yes", "no"))))
    Is this the same?
    <BLANKLINE>
    A. yes
    B. no
    <BLANKLINE>
    Answer with the letter of one option, and nothing else.
    """
    if not query.options:
        return printable(query.prompt)
    if len(query.options) > len(LETTERS):
        raise ModelError(f"{len(query.options)} options are more than there are letters: ask about at most 26")
    lines = [f"{letter}. {option}" for letter, option in zip(LETTERS, query.options, strict=False)]
    listed = "\n".join(lines)
    return printable(f"{query.prompt}\n\n{listed}\n\nAnswer with the letter of one option, and nothing else.")


def turns(query: Query, *, roles: Collection[str] = _SPOKEN) -> list[dict[str, str]]:
    r"""Return the context and the question as messages with a `role` and a `content`.

    A message whose role is none of `roles` becomes one of the user that says what it is: a query holds no ids of calls,
    without which no provider takes the result of a tool as such. Messages without text are left out.

    >>> from theodolite.core.inquiry import Role
    >>> turns(Query(role=Role.SUBJECT, prompt="Go on.", context=(Message("tool", "30.20 EUR"),)))[0]
    {'role': 'user', 'content': 'Result of a tool:\n30.20 EUR'}
    """
    said = [_turn(message, roles) for message in query.context or () if message.text]
    return [*said, {"role": "user", "content": question(query)}]


def _turn(message: Message, roles: Collection[str]) -> dict[str, str]:
    text = printable(message.text)
    if message.role in roles:
        return {"role": message.role, "content": text}
    told = _EXPLAINED.get(message.role, f"Message of the role {printable(message.role)}")
    return {"role": "user", "content": f"{told}:\n{text}"}


def parameters(tool: Tool) -> dict[str, object]:
    """Return the schema of a tool's arguments; of any object where it is not known."""
    given = (
        {} if isinstance(tool.parameters, UnsetType) else msgspec.json.decode(tool.parameters, type=dict[str, object])
    )
    return given or {"type": "object", "properties": {}}


def schema_of(query: Query) -> dict[str, object] | None:
    """Return the schema that answers must fit, or None. Raises ModelError where it is no JSON object."""
    if not isinstance(query.schema, Raw):
        return None
    try:
        return msgspec.json.decode(query.schema, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ModelError(f"the schema of the query is no JSON object ({place_of(error)}): mend whoever asks") from None


def is_strict(schema: object) -> bool:
    """Whether OpenAI can hold a model to a schema: every object closed, and all of its properties required.

    >>> is_strict({"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False})
    True
    >>> is_strict({"type": "object"})
    False
    """
    if is_mapping(schema):
        if schema.get("type") == "object" and not _is_closed(schema):
            return False
        return all(is_strict(part) for part in schema.values())
    return all(is_strict(part) for part in schema) if is_sequence(schema) else True


def _is_closed(schema: object) -> bool:
    if not is_mapping(schema):
        return False
    properties, required = schema.get("properties", {}), schema.get("required", [])
    named = set(properties) if is_mapping(properties) else set[object]()
    return schema.get("additionalProperties") is False and is_sequence(required) and named == set(required)
