"""Questions to models, as values. Nothing here asks anybody; a dialogue exists only while it is driven."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from enum import StrEnum

from msgspec import UNSET, Raw, Struct, UnsetType

from theodolite.core.event import Tool
from theodolite.core.reading import Cause, Failure, Reading
from theodolite.core.snapshot import Message

__all__ = ("Dialogue", "Draw", "Exchange", "Inquiry", "Message", "Query", "Reply", "Role", "Usage", "first_failure")


class Role(StrEnum):
    """Who is asked: the session's snapshot, its clean shadow, the contextless baseline, or a judge."""

    SUBJECT = "subject"
    SHADOW = "shadow"
    BASELINE = "baseline"
    JUDGE = "judge"


class Query(Struct, frozen=True, kw_only=True, gc=False):
    """One question to one model: text and tool definitions, never a handle to a tool, a memory or an output channel.

    `options` make it a choice, answered by a distribution; `samples` is how many draws are wanted; `canary` is the
    token planted for this dispatch. `reuse` names the questions of a fleet whose answers are alike in distribution:
    once enough were counted, the counts answer in place of a model. Raises ValueError when no sample is wanted.
    """

    role: Role
    prompt: str
    system: str = ""
    context: tuple[Message, ...] | None = None
    tools: tuple[Tool, ...] = ()
    options: tuple[str, ...] = ()
    schema: Raw | UnsetType = UNSET
    samples: int = 1
    canary: str = ""
    reuse: str = ""

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"a query for {self.samples} samples asks for nothing: give at least 1")


class Draw(Struct, frozen=True, kw_only=True, gc=False):
    """One answer of a model. Tool calls are what it tried, as JSON; nothing dispatches them.

    `vouched`: the text is what the host's own adapter says of the answer, and not the model, as in the seed's contract
    of canonical JSON.
    """

    text: str = ""
    tool_calls: tuple[Raw, ...] = ()
    vouched: bool = False


class Usage(Struct, frozen=True, kw_only=True, gc=False):
    """What an answer used: tokens, and what they cost in the currency of the model's prices; UNSET where unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | UnsetType = UNSET


class Reply(Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """What a model answered. `choice` pairs each option with its probability, or with how often it was drawn.

    `exact`: they are the model's own probabilities, which no sampling blurs.

    `reused`: nobody was asked. Then `choice` is that of the same question before, or `counts` says how often each
    outcome came among the draws of earlier questions of that name, `draws` being how many there were.
    """

    query: Query
    model: str
    draws: tuple[Draw, ...] = ()
    choice: tuple[tuple[str, float], ...] = ()
    exact: bool = False
    usage: Usage = Usage()
    counts: tuple[tuple[str, int], ...] = ()
    reused: bool = False


class Exchange(Struct, frozen=True, gc=False):
    """A query with its answer."""

    query: Query
    reply: Reply | Failure


class Inquiry(Struct, frozen=True, kw_only=True, gc=False):
    """Questions that an asker wants put, as a value that can be counted, queued, moved or dropped. Nothing runs.

    `about` is the seq of the event that gave rise to it, `subject` the asker's own frozen Struct. `not_before` is the
    earliest time to ask, in seconds since the epoch, chosen when the inquiry was made. Raises ValueError when it is not
    finite.
    """

    asker: str
    version: str
    about: int
    subject: Struct
    not_before: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.not_before):
            raise ValueError(f"not_before of an inquiry of {self.asker} is {self.not_before}, which is no moment")


Dialogue = Generator[tuple[Query, ...], tuple[Reply | Failure, ...], tuple[Reading | Failure, ...]]
"""Yields queries to be put side by side, is sent their answers in the same order, returns what follows from them."""


def first_failure(answers: Iterable[Reply | Failure]) -> Failure | None:
    """Return why queries that were put side by side have no answer: not that one was given up for another's failure.

    >>> given_up = Failure(detector="m", version="1", cause=Cause.ABANDONED)
    >>> refused = Failure(detector="m", version="1", cause=Cause.ERROR, detail="401")
    >>> first_failure([given_up, refused]).detail
    '401'
    """
    failures = [answer for answer in answers if isinstance(answer, Failure)]
    return next((one for one in failures if one.cause is not Cause.ABANDONED), failures[0] if failures else None)
