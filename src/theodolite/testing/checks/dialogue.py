"""Holding a dialogue with scripted answers, and telling how far it got."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from theodolite.core.inquiry import Dialogue, Draw, Inquiry, Query, Reply
from theodolite.core.reading import Failure, Reading
from theodolite.runtime.consult import ROUNDS

__all__ = ("Answerer", "Conversation", "alike", "by_role", "converse", "maker")

Answerer = Callable[[Query], Reply | Failure]
"""Who answers the queries of a dialogue: a script, a seed, or nobody (a Failure)."""


class Conversation(NamedTuple):
    """What was asked, round by round, and what was said in the end (None: it did not end)."""

    rounds: tuple[tuple[Query, ...], ...]
    said: tuple[Reading | Failure, ...] | None


def converse(dialogue: Dialogue, answer: Answerer, *, rounds: int = ROUNDS) -> Conversation:
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


def maker(said: object) -> tuple[str, str] | None:
    """Return the name and version that an answer is signed with; None for what is no answer."""
    if isinstance(said, Reading | Failure):
        return said.detector, said.version
    return (said.asker, said.version) if isinstance(said, Inquiry) else None


def alike(seed: int) -> Answerer:
    """Return who answers every arm of a comparison alike: by what is asked, whoever is asked and in whatever context.

    >>> from theodolite.core.inquiry import Role
    >>> subject, shadow = (alike(7)(Query(role=role, prompt="Pay?")) for role in (Role.SUBJECT, Role.SHADOW))
    >>> subject.draws == shadow.draws
    True
    """
    return lambda query: _invented(query, f"{seed} {query.prompt} {query.options}")


def by_role(seed: int) -> Answerer:
    """Return who answers each role in its own way, as arms that have drifted apart do.

    >>> from theodolite.core.inquiry import Role
    >>> subject, shadow = (by_role(7)(Query(role=role, prompt="Pay?")) for role in (Role.SUBJECT, Role.SHADOW))
    >>> subject.draws == shadow.draws
    False
    """
    return lambda query: _invented(query, f"{seed} {query.role.value} {query.prompt} {query.options}")


def _invented(query: Query, key: str) -> Reply:
    digest = hashlib.sha256(key.encode("utf-8", "backslashreplace")).digest()
    said = query.options[digest[0] % len(query.options)] if query.options else f"answer {digest.hex()[:8]}"
    choice = tuple([(option, float(option == said)) for option in query.options])
    return Reply(query=query, model="m-1", draws=(Draw(text=said),) * max(1, query.samples), choice=choice)
