"""Keeps inquiries within their budget: what was used, and what may still be asked."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from theodolite.core.budget import Budget, Limit
from theodolite.core.event import InquirySettled
from theodolite.core.inquiry import Query, Reply
from theodolite.core.reading import Cause, Failure
from theodolite.runtime.consult import Consultation

__all__ = ("Purse", "Spent")

DAY = 86_400  # seconds


class Spent(Struct, kw_only=True):
    """What a session, a fleet or a day has used. `unpriced` names a model whose answers had no known cost."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: str = ""

    def pay(self, reply: Reply) -> None:
        """Count what an answer used. A model that tells numbers below 0 gives nothing back."""
        usage = reply.usage
        self.tokens += max(0, usage.input_tokens) + max(0, usage.output_tokens)
        if usage.cost is UNSET:
            self.unpriced = reply.model
        else:
            self.cost += max(0.0, usage.cost)

    def refusal(self, limit: Limit, calls: int) -> str:
        """Return why `calls` more answers may not be asked for, or nothing."""
        if limit.calls is not None and self.calls + calls > limit.calls:
            return f"{self.calls} of {limit.calls} calls are used, and {calls} more are wanted"
        if limit.tokens is not None and self.tokens >= limit.tokens:
            return f"{self.tokens} of {limit.tokens} tokens are used"
        if limit.cost is not None and self.unpriced:
            return f"it limits cost, and the model {self.unpriced} has no price: give it one"
        # Ten answers for 0.1 each come to a little less than 1.0.
        if limit.cost is not None and (self.cost >= limit.cost or math.isclose(self.cost, limit.cost)):
            return f"{self.cost:g} of a cost of {limit.cost:g} is used"
        return ""


class Purse:
    """What the sessions of a Monitor have used of models. Safe for several threads.

    Calls are counted before they are made, so that no limit on them is ever passed. Tokens and cost are known when an
    answer has come: queries that are under way together may go over a limit by what they use. A query that fails counts
    as calls alone, and all count for the day on which they were put. State: a few numbers for the fleet, for this day
    and for the one before it, should the clock be set back; a new process counts all anew. What a session has used
    belongs to the session, and is saved with it.
    """

    def __init__(self, budget: Budget, clock: Callable[[], float]) -> None:
        self._budget = budget
        self._clock = clock
        self._lock = threading.Lock()
        self._fleet = Spent()
        self._days: dict[int, Spent] = {}

    def within(self, consultation: Consultation, session: Spent) -> Consultation:
        """Return a consultation of a session that has used so much, whose queries are put while the budget lasts.

        One too many is answered by a Failure, NO_EVIDENCE, which says which limit was reached.
        """
        answers: Sequence[Reply | Failure] | None = None
        try:
            while True:
                queries = next(consultation) if answers is None else consultation.send(tuple(answers))
                taken = self._take(session, queries)
                if isinstance(taken, Failure):
                    answers = [taken] * len(queries)
                else:
                    answers = yield queries
                    self._pay(taken, answers)
        except StopIteration as stop:
            settled: InquirySettled = stop.value
            return settled
        finally:
            consultation.close()

    @property
    def spent(self) -> Spent:
        """What all sessions together have used so far: a copy."""
        with self._lock:
            return replace(self._fleet)

    def _scopes(self, session: Spent) -> Iterator[tuple[str, Limit, Spent]]:
        yield "of this session", self._budget.session, session
        yield "of the fleet", self._budget.fleet, self._fleet
        yield "of this day", self._budget.day, self._today()

    def _today(self) -> Spent:
        today = int(self._clock() // DAY)
        # Who still waits for an answer to a question of an earlier day holds what is to pay for it.
        self._days = {day: spent for day, spent in self._days.items() if day >= today - 1}
        return self._days.setdefault(today, Spent())

    def _take(self, session: Spent, queries: Iterable[Query]) -> tuple[Spent, ...] | Failure:
        """Count some queries, and return what is to pay for their answers; or refuse all of them."""
        calls = sum(query.samples for query in queries)
        with self._lock:
            scopes = tuple(self._scopes(session))
            for name, limit, spent in scopes:
                why = spent.refusal(limit, calls)
                if why:
                    detail = f"the budget {name} allows no more: {why}"
                    return Failure(detector="budget", version="1", cause=Cause.NO_EVIDENCE, detail=detail)
            for _, _, spent in scopes:
                spent.calls += calls
        return tuple([spent for _, _, spent in scopes])

    def _pay(self, taken: Iterable[Spent], answers: Iterable[Reply | Failure]) -> None:
        with self._lock:
            for spent in taken:
                for answer in answers:
                    if isinstance(answer, Reply):
                        spent.pay(answer)
