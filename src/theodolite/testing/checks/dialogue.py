"""Holding a dialogue with scripted answers, and telling how far it got."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from theodolite.core.inquiry import Dialogue, Draw, Query, Reply
from theodolite.core.reading import Failure, Reading

__all__ = ("MAX_ROUNDS", "Answerer", "Conversation", "alike", "converse")

Answerer = Callable[[Query], Reply | Failure]
"""Who answers the queries of a dialogue: a script, a seed, or nobody (a Failure)."""

# A dialogue that asks more often than this will not end: the largest inquiry in the design, a probe with its twin in
# all rotations of five options, needs about ten rounds.
MAX_ROUNDS = 100


class Conversation(NamedTuple):
    """What was asked, round by round, and what was said in the end (None: it did not end)."""

    rounds: tuple[tuple[Query, ...], ...]
    said: tuple[Reading | Failure, ...] | None


def converse(dialogue: Dialogue, answer: Answerer, *, rounds: int = MAX_ROUNDS) -> Conversation:
    """Hold a dialogue for at most that many rounds, then close it. Lets through what the dialogue raises."""
    asked: list[tuple[Query, ...]] = []
    try:
        queries = next(dialogue)
        while len(asked) < rounds:
            asked.append(queries)
            queries = dialogue.send(tuple([answer(query) for query in queries]))
    except StopIteration as stop:
        return Conversation(tuple(asked), stop.value)
    finally:
        dialogue.close()
    return Conversation(tuple(asked), None)


def alike(seed: int) -> Answerer:
    """Return who answers every arm of a comparison alike: by what is asked, whoever is asked and in whatever context.

    >>> from theodolite.core.inquiry import Role
    >>> answer = alike(7)
    >>> subject, shadow = (answer(Query(role=role, prompt="Pay?")) for role in (Role.SUBJECT, Role.SHADOW))
    >>> subject.draws == shadow.draws
    True
    """

    def answer(query: Query) -> Reply:
        digest = hashlib.sha256(f"{seed} {query.prompt} {query.options}".encode("utf-8", "backslashreplace")).digest()
        chosen = query.options[digest[0] % len(query.options)] if query.options else f"answer {digest.hex()[:8]}"
        choice = tuple([(option, float(option == chosen)) for option in query.options])
        return Reply(query=query, model="m-1", draws=(Draw(text=chosen),) * max(1, query.samples), choice=choice)

    return answer
