"""Keeps inquiries within their budget: what was used, and what may still be asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import UNSET, Struct

from theodolite.core.budget import Budget, Limit
from theodolite.core.event import InquirySettled
from theodolite.core.inquiry import Query, Reply
from theodolite.core.reading import Cause, Failure
from theodolite.runtime.consult import Consultation

__all__ = ("Purse",)

DAY = 86_400  # seconds


class _Spent(Struct):
    """What was used within one scope. `unknown` names a model whose answers had no known cost."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    unknown: str = ""

    def pay(self, reply: Reply) -> None:
        self.tokens += reply.usage.input_tokens + reply.usage.output_tokens
        if reply.usage.cost is UNSET:
            self.unknown = reply.model
        else:
            self.cost += reply.usage.cost

    def refusal(self, limit: Limit, calls: int) -> str:
        """Return why `calls` more answers may not be asked for, or nothing."""
        if limit.calls is not None and self.calls + calls > limit.calls:
            return f"{self.calls} of {limit.calls} calls are used, and {calls} more are wanted"
        if limit.tokens is not None and self.tokens >= limit.tokens:
            return f"{self.tokens} of {limit.tokens} tokens are used"
        if limit.cost is not None and self.unknown:
            return f"it counts cost, and the model {self.unknown} has no price: name one"
        if limit.cost is not None and self.cost >= limit.cost:
            return f"{self.cost:g} of a cost of {limit.cost:g} is used"
        return ""


class Purse:
    """What the sessions of a Monitor have used of models. Safe for several threads.

    Calls are counted before they are made, so that no limit on them is ever passed. Tokens and cost are known when an
    answer has come: queries that are under way together may go over a limit by what they use. A query that fails counts
    as calls alone. State: a few numbers for each open session, the fleet and the day; a new process counts anew.
    """

    def __init__(self, budget: Budget, clock: Callable[[], float]) -> None:
        self._budget = budget
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: dict[str, _Spent] = {}
        self._fleet = _Spent()
        self._day = _Spent()
        self._date = -1

    def within(self, consultation: Consultation, session: str) -> Consultation:
        """Return a consultation of that session whose queries are put only while the budget lasts.

        One too many is answered by a Failure, NO_EVIDENCE, which says which limit was reached.
        """
        answers: Sequence[Reply | Failure] | None = None
        try:
            while True:
                queries = next(consultation) if answers is None else consultation.send(tuple(answers))
                refused = self._take(session, queries)
                if refused is None:
                    answers = yield queries
                    self._pay(session, answers)
                else:
                    answers = [refused] * len(queries)
        except StopIteration as stop:
            settled: InquirySettled = stop.value
            return settled
        finally:
            consultation.close()

    def forget(self, session: str) -> None:
        """Drop the count of a session that is closed."""
        with self._lock:
            self._sessions.pop(session, None)

    def _scopes(self, session: str) -> Iterator[tuple[str, Limit, _Spent]]:
        today = int(self._clock() // DAY)
        if today != self._date:
            self._date, self._day = today, _Spent()
        yield "of this session", self._budget.session, self._sessions.setdefault(session, _Spent())
        yield "of the fleet", self._budget.fleet, self._fleet
        yield "of this day", self._budget.day, self._day

    def _take(self, session: str, queries: Iterable[Query]) -> Failure | None:
        calls = sum(query.samples for query in queries)
        with self._lock:
            scopes = list(self._scopes(session))
            for name, limit, spent in scopes:
                why = spent.refusal(limit, calls)
                if why:
                    detail = f"the budget {name} is reached: {why}"
                    return Failure(detector="budget", version="1", cause=Cause.NO_EVIDENCE, detail=detail)
            for _, _, spent in scopes:
                spent.calls += calls
        return None

    def _pay(self, session: str, answers: Iterable[Reply | Failure]) -> None:
        with self._lock:
            for _, _, spent in self._scopes(session):
                for answer in answers:
                    if isinstance(answer, Reply):
                        spent.pay(answer)
