"""Which answers of models are forgotten where there is no room: those that nobody asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from theodolite.core.inquiry import Draw, Query, Reply, Role
from theodolite.runtime.reuse import Reuse


def counted(number: int) -> Query:
    return Query(role=Role.SHADOW, prompt="Well?", reuse=f"t-{number}")


def exact(number: int) -> Query:
    return Query(role=Role.SUBJECT, prompt=f"Which {number}?", options=("a", "b"))


def learn(reuse: Reuse, query: Query) -> None:
    draws = () if query.options else (Draw(text="yes"),)
    choice = (("a", 0.25), ("b", 0.75)) if query.options else ()
    reply = Reply(query=query, model="m", draws=draws, choice=choice, exact=bool(query.options))
    reuse.learn(reply, "m", lambda _: {"yes": 1})


@pytest.mark.parametrize("made", [counted, exact])
def test_what_still_answers_is_not_forgotten_for_what_comes_later(made: Callable[[int], Query]) -> None:
    reuse = Reuse(enough=1, most=3)
    for number in range(20):
        learn(reuse, made(number))
        assert reuse.known(made(0), "m") is not None, number
    assert [number for number in range(20) if reuse.known(made(number), "m") is not None] == [0, 18, 19]


def test_counts_that_are_asked_for_while_they_grow_are_not_forgotten_either() -> None:
    reuse = Reuse(enough=100, most=2)
    learn(reuse, counted(0))
    for number in range(1, 10):
        assert reuse.known(counted(0), "m") is None
        learn(reuse, counted(number))
    for _ in range(99):
        learn(reuse, counted(0))
    known = reuse.known(counted(0), "m")
    assert known is not None
    assert known.counts == (("draws", 100), ("yes", 100))
