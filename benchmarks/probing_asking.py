"""Asking a model for the probing protocol, so that an interruption loses nothing: each answer is kept as it comes.

An answer is found again by the model's name and the whole query, so that a changed text is asked anew.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec
from msgspec import Struct

from theodolite.core.inquiry import Draw, Query, Reply, Role, Usage
from theodolite.core.model import Model
from theodolite.core.reading import Failure
from theodolite.runtime.drive import Panel

__all__ = ("Asker", "Kept")

_T = TypeVar("_T")

# Seconds for one answer: a large model on a slow machine reads some hundred tokens before it says anything.
TIMEOUT = 300.0
# How often a query is asked that fails: transport errors are retried by the adapters already.
ATTEMPTS = 2
# Seconds between two lines of progress.
PAUSE = 20.0


class Kept(Struct, frozen=True, kw_only=True):
    """An answer as it is kept, one JSON object to a line."""

    key: str
    model: str
    draws: tuple[Draw, ...] = ()
    choice: tuple[tuple[str, float], ...] = ()
    exact: bool = True  # of what was kept before this was noted all came from the embedded model
    usage: Usage = Usage()


class Asker:
    """Puts queries to one model, and to the file at `path` first, if one is given."""

    def __init__(self, model: Model, path: Path | None = None, *, said: bool = True) -> None:
        self._model = model
        self._panel = Panel(dict.fromkeys(Role, model), timeout=TIMEOUT)
        self._path = path
        self._said = said
        self._kept: dict[str, Kept] = {}
        self.asked = 0
        self.failed: list[str] = []
        if path is not None and path.exists():
            self._kept = {one.key: one for one in _read(path)}

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    def ask_all(self, groups: Sequence[tuple[Query, ...]], what: str) -> list[tuple[Reply | Failure, ...]]:
        """Ask groups of queries, each group whole or not at all, and return their answers in the same order."""
        return anyio.run(self._ask_all, groups, what)

    def drive(self, dialogue: Generator[tuple[Query, ...], tuple[Reply | Failure, ...], _T], what: str) -> _T:
        """Put what a dialogue asks, one query at a time, and return what it comes to."""
        try:
            queries = next(dialogue)
            while True:
                answers = self.ask_all([(query,) for query in queries], what)
                queries = dialogue.send(tuple([answer for group in answers for answer in group]))
        except StopIteration as stop:
            result: _T = stop.value
            return result

    async def _ask_all(self, groups: Sequence[tuple[Query, ...]], what: str) -> list[tuple[Reply | Failure, ...]]:
        answers: list[tuple[Reply | Failure, ...]] = [() for _ in groups]
        places = iter(range(len(groups)))
        progress = _Progress(len(groups), what, said=self._said)

        async def some() -> None:
            for place in places:
                before = self.asked
                answers[place] = await self._group(groups[place])
                progress.step(fresh=self.asked > before)

        async with anyio.create_task_group() as tasks:
            for _ in range(max(1, self._model.max_concurrency)):
                tasks.start_soon(some)
        await self._panel.release()
        return answers

    async def _group(self, queries: tuple[Query, ...]) -> tuple[Reply | Failure, ...]:
        keys = [self._key(query) for query in queries]
        if all(key in self._kept for key in keys):
            return tuple([_reply(self._kept[key], query) for key, query in zip(keys, queries, strict=True)])
        answers: tuple[Reply | Failure, ...] = ()
        for _ in range(ATTEMPTS):
            answers = await self._panel.ask_all(queries)
            self.asked += len(queries)
            if not any(isinstance(answer, Failure) for answer in answers):
                break
        for key, answer in zip(keys, answers, strict=True):
            if isinstance(answer, Reply):
                self._keep(key, answer)
            else:
                self.failed.append(answer.detail)
        return answers

    def _key(self, query: Query) -> str:
        return hashlib.sha256(self.name.encode() + b"\n" + msgspec.json.encode(query)).hexdigest()[:32]

    def _keep(self, key: str, reply: Reply) -> None:
        kept = Kept(
            key=key, model=reply.model, draws=reply.draws, choice=reply.choice, exact=reply.exact, usage=reply.usage
        )
        self._kept[key] = kept
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(kept) + b"\n")


def _read(path: Path) -> Iterator[Kept]:
    """Yield what is kept; of a line that an interruption cut nothing is taken."""
    decoder = msgspec.json.Decoder(Kept)
    for line in path.read_bytes().split(b"\n"):
        try:
            yield decoder.decode(line)
        except msgspec.DecodeError:
            continue


def _reply(kept: Kept, query: Query) -> Reply:
    return Reply(
        query=query, model=kept.model, draws=kept.draws, choice=kept.choice, exact=kept.exact, usage=kept.usage
    )


class _Progress:
    """Says now and then how far it is, and how long the rest takes if it goes on like what was asked so far."""

    def __init__(self, total: int, what: str, *, said: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._what, self._said, self._clock = total, what, said, clock
        self._done = self._fresh = 0
        self._began = self._last = clock()

    def step(self, *, fresh: bool) -> None:
        """Count one more; `fresh` ones were asked and not found."""
        self._done += 1
        self._fresh += fresh
        now = self._clock()
        if not self._said or now - self._last < PAUSE or not self._fresh:
            return
        self._last = now
        left = (self._total - self._done) * (now - self._began) / self._fresh / 60
        print(f"{self._what}: {self._done} of {self._total}, about {left:.0f} min to go", file=sys.stderr, flush=True)
