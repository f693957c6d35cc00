"""Models that answer from a script or from a seed, and that hang, fail and talk nonsense when told to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from random import Random

import anyio

from theodolite.core.errors import ModelError
from theodolite.core.inquiry import Draw, Query, Reply, Usage

__all__ = ("ScriptedAnswer", "ScriptedModel", "SeededModel")

ScriptedAnswer = str | Reply | Exception
"""A text to answer with, a whole reply, or what is raised instead."""


class _Desk:
    """Counts the queries of a fake model, and how many are under way at once."""

    def __init__(self, delay: float) -> None:
        self.asked: list[Query] = []
        self.under_way = 0
        self.most_at_once = 0
        self._delay = delay

    async def serve(self, query: Query, answer: Callable[[], Reply]) -> Reply:
        """Wait for the delay, then answer; the query is under way until then, or until it is cancelled."""
        self.asked.append(query)
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            await anyio.sleep(self._delay)
            return answer()
        finally:
            self.under_way -= 1


class ScriptedModel:
    """Answers from a script: a function of the query, or answers in turn, the last one again and again.

    A text becomes every draw of the reply and, where it is one of the query's options, the whole of its choice. An
    exception is raised: a ModelError keeps the law, any other breaks it. `delay` is in seconds; `math.inf` hangs until
    cancelled. `asked` lists the queries, `most_at_once` says how many were under way together.

    >>> from theodolite.core.inquiry import Role
    >>> model = ScriptedModel("no")
    >>> anyio.run(model.ask, Query(role=Role.JUDGE, prompt="Is this drift?")).draws[0].text
    'no'
    """

    def __init__(
        self,
        script: ScriptedAnswer | Iterable[ScriptedAnswer] | Callable[[Query], ScriptedAnswer],
        *,
        name: str = "scripted-model",
        max_concurrency: int = 4,
        delay: float = 0.0,
    ) -> None:
        self.name = name
        self.max_concurrency = max_concurrency
        self._script = script if callable(script) else _in_turn(script)
        self._desk = _Desk(delay)

    @property
    def asked(self) -> tuple[Query, ...]:
        """The queries so far, in the order in which they came."""
        return tuple(self._desk.asked)

    @property
    def most_at_once(self) -> int:
        """The most queries that were ever under way at once."""
        return self._desk.most_at_once

    async def ask(self, query: Query) -> Reply:
        """Answer one query as the script says."""
        return await self._desk.serve(query, lambda: self._reply(query))

    def _reply(self, query: Query) -> Reply:
        answer = self._script(query)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Reply) else _saying(query, self.name, [answer] * max(1, query.samples))


class SeededModel:
    """Answers each query by its seed: equal queries get equal answers, whoever is asked and in whatever order.

    With `by_role` the roles answer differently, as a subject that has drifted does. One query in `fails` gives a
    ModelError (0: none).
    """

    def __init__(
        self,
        seed: int,
        *,
        by_role: bool = False,
        fails: int = 0,
        name: str = "seeded-model",
        max_concurrency: int = 4,
        delay: float = 0.0,
    ) -> None:
        self.name = name
        self.max_concurrency = max_concurrency
        self._seed = seed
        self._by_role = by_role
        self._fails = fails
        self._desk = _Desk(delay)

    @property
    def asked(self) -> tuple[Query, ...]:
        """The queries so far, in the order in which they came."""
        return tuple(self._desk.asked)

    @property
    def most_at_once(self) -> int:
        """The most queries that were ever under way at once."""
        return self._desk.most_at_once

    async def ask(self, query: Query) -> Reply:
        """Answer one query by the seed."""
        return await self._desk.serve(query, lambda: self._reply(query))

    def _reply(self, query: Query) -> Reply:
        role = query.role.value if self._by_role else ""
        dice = Random(f"{self._seed} {role} {query.prompt} {query.options}")  # noqa: S311 - test data, not secrets
        if self._fails and dice.randrange(self._fails) == 0:
            raise ModelError(f"{self.name} refuses this query, as its seed has it: ask another or set fails=0")
        said = [_invented(dice, query.options) for _ in range(max(1, query.samples))]
        return _saying(query, self.name, said)


def _in_turn(script: ScriptedAnswer | Iterable[ScriptedAnswer]) -> Callable[[Query], ScriptedAnswer]:
    answers = [script] if isinstance(script, str | Reply | Exception) else list(script)
    if not answers:
        raise ValueError("a script needs at least one answer")

    def answer(_: Query) -> ScriptedAnswer:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    return answer


def _invented(dice: Random, options: tuple[str, ...]) -> str:
    return dice.choice(options) if options else hashlib.sha256(dice.randbytes(8)).hexdigest()[:12]


def _saying(query: Query, model: str, said: list[str]) -> Reply:
    """Return a reply with those draws; where the query has options, its choice is how often each was drawn."""
    hits = {option: said.count(option) for option in query.options}
    total = sum(hits.values())
    choice = tuple([(option, count / total) for option, count in hits.items()]) if total else ()
    usage = Usage(input_tokens=len(query.prompt.split()), output_tokens=sum(len(text.split()) for text in said))
    return Reply(query=query, model=model, draws=tuple([Draw(text=text) for text in said]), choice=choice, usage=usage)
