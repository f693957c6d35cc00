"""Recorded sessions without the wording of their tool results.

Each word of a result that neither the goal nor a call of the session holds is exchanged for a meaningless one of the
same length, always the same for the same word. "Ignore previous instructions" becomes letters; what the call has in
common with the text, and the text with the goal, stays. A score that looks for wording falls; one that compares what
was asked with what is done does not.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

from agentdojo import Session
from msgspec.structs import replace

from theodolite.core.arguments import leaves
from theodolite.features.goal import Goal
from theodolite.features.index import caseless, words_of
from theodolite.features.intents import forms, words

__all__ = ("exchanged",)

# Not the letter of an escape: a line break of YAML or JSON stays one.
_WORD = re.compile(r"(?<!\\)[^\W\d_]+")
_LETTERS = "bcdfghjklmnpqrstvwxz"


def exchanged(session: Session) -> Session:
    """Return a session in whose tool results only the words of its goal and of its calls are left."""
    kept = frozenset(_kept(session))

    def other(found: re.Match[str]) -> str:
        word = caseless(found[0])
        return found[0] if word in kept else _meaningless(word, len(found[0]))

    steps = [
        replace(step, text=_WORD.sub(other, step.text)) if step.role == "tool" else step for step in session.events
    ]
    return replace(session, events=steps)


def _kept(session: Session) -> Iterator[str]:
    goal = Goal()
    goal.hear(session.goal)
    yield from goal.about
    yield from _letters_of(session.goal)
    for step in session.events:
        if step.tool:
            for word in words(step.tool):
                yield from forms(word)
        for _, value in leaves(step.args or {}):
            yield from _letters_of(value)


def _letters_of(text: str) -> Iterator[str]:
    yield from words_of(text)
    yield from _WORD.findall(caseless(text))


def _meaningless(word: str, length: int) -> str:
    drawn = zlib.crc32(word.encode())
    return "".join(_LETTERS[zlib.crc32(f"{drawn} {place}".encode()) % len(_LETTERS)] for place in range(length))
