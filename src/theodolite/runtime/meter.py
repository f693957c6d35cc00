"""Questions that belong to no session's inquiry, put to a panel within a budget and counted one by one."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

import anyio
from msgspec.structs import replace

from theodolite.core.budget import Budget
from theodolite.core.inquiry import Query, Reply
from theodolite.core.reading import Cause, Failure
from theodolite.runtime.drive import Panel
from theodolite.runtime.purse import Spent

__all__ = ("Meter",)

_T = TypeVar("_T")


class Meter:
    """Asks a panel, and counts while it does: `spent` is what was used, `answered` the calls that came back.

    A query beyond a limit of `budget` is answered by a Failure; that of a session holds `of_session` alone. `spent` is
    what was used before. For one event loop.
    """

    def __init__(self, panel: Panel, budget: Budget, *, spent: Spent | None = None, of_session: bool = False) -> None:
        self.spent = Spent() if spent is None else spent
        self.answered = 0
        self._panel = panel
        self._limits = {"of the fleet": budget.fleet, "of this day": budget.day}
        if of_session:
            self._limits["of this session"] = budget.session

    async def driven(self, road: Generator[tuple[Query, ...], tuple[Reply | Failure, ...], _T]) -> _T:
        """Answer all that is yielded, and return what it comes to."""
        try:
            asked = next(road)
            while True:
                asked = road.send(await self.ask_all(asked))
        except StopIteration as stop:
            came: _T = stop.value
            return came
        finally:
            road.close()

    async def ask_all(self, queries: tuple[Query, ...]) -> tuple[Reply | Failure, ...]:
        """Put queries side by side; return their answers in the same order.

        Where one fails the others are cancelled, and say why that one did.
        """
        answers: dict[int, Reply | Failure] = {}
        async with anyio.create_task_group() as group:

            async def one(place: int) -> None:
                answers[place] = answer = await self.ask(queries[place])
                if isinstance(answer, Failure):
                    group.cancel_scope.cancel()

            for place in range(len(queries)):
                group.start_soon(one, place)
        failed = next((answer for answer in answers.values() if isinstance(answer, Failure)), None)
        if failed is not None:
            lost = replace(failed, cause=Cause.ABANDONED, detail=f"not asked, since another failed: {failed.detail}")
            answers = {place: answers.get(place, lost) for place in range(len(queries))}
        return tuple([answers[place] for place in range(len(queries))])

    async def ask(self, query: Query) -> Reply | Failure:
        """Put one query."""
        for name, limit in self._limits.items():
            why = self.spent.refusal(limit, query.samples)
            if why:
                detail = f"the budget {name} allows no more: {why}"
                return Failure(detector="budget", version="1", cause=Cause.NO_EVIDENCE, detail=detail)
        self.spent.calls += query.samples
        (answer,) = await self._panel.ask_all((query,))
        if isinstance(answer, Reply):
            self.spent.pay(answer)
            self.answered += query.samples
        return answer
