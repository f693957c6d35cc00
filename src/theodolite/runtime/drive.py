"""The two drivers of a consultation, and the panel that they ask. Here sync and async differ, nowhere else."""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeGuard, TypeVar

import anyio
import anyio.from_thread
import msgspec
from anyio.lowlevel import RunVar, current_token
from msgspec.structs import replace

from theodolite.core.event import InquirySettled
from theodolite.core.inquiry import Draw, Query, Reply, Role, Usage
from theodolite.core.model import Model, releases
from theodolite.core.reading import Cause, Failure
from theodolite.runtime.answers import failure_of
from theodolite.runtime.confidential import Confidential
from theodolite.runtime.consult import Consultation

__all__ = ("Panel", "asking", "attempt", "drive", "drive_sync", "run", "wait")

_T = TypeVar("_T")

# Seconds for one answer. Our choice: the default of the OpenAI and Anthropic SDKs is 600, which is longer than a
# session may want to wait for an opinion that is out of band anyway.
TIMEOUT = 30.0
# Seconds between two looks for a place at a model that another event loop is asking.
INTERVAL = 0.02
# Seconds that models have to close their connections: enough for a TLS goodbye, and nobody waits long for it.
GOODBYE = 1.0

_Answered = tuple[str, tuple[Draw, ...], tuple[tuple[str, float], ...], Usage]

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[_Answered] = msgspec.json.Decoder(_Answered)


class Panel:
    """Which model plays which role. Shared by all sessions of a Monitor; keeps each model's limit on concurrency.

    A query to a role that nobody plays, a model that raises, one that answers another query or with what is no Reply,
    one that takes longer than `timeout` seconds, and one that ends as cancelled where nobody cancelled it, all give a
    Failure; the time that a query waits for its turn does not count. When one of the queries put side by side fails,
    the others are cancelled: half a comparison is none. The limit holds over all event loops and threads.
    """

    name = "panel"
    version = "1"

    def __init__(self, models: Mapping[Role, Model] | None = None, *, timeout: float = TIMEOUT) -> None:
        self._models = dict(models or {})
        self._timeout = timeout
        self._limits: RunVar[dict[int, anyio.CapacityLimiter]] = RunVar("limits")
        self._places = {
            id(model): threading.Semaphore(max(1, model.max_concurrency)) for model in self._models.values()
        }

    @property
    def plays(self) -> Mapping[Role, str]:
        """The name of the model that plays each role."""
        return {role: model.name for role, model in self._models.items()}

    def _failed(self, cause: Cause, detail: str) -> Failure:
        return Failure(detector=self.name, version=self.version, cause=cause, detail=detail)

    async def ask_all(self, queries: tuple[Query, ...]) -> tuple[Reply | Failure, ...]:
        """Put queries side by side and return their answers in the same order."""
        answers: list[Reply | Failure] = [
            self._failed(Cause.ABANDONED, "another query of this comparison failed") for _ in queries
        ]
        async with anyio.create_task_group() as group:

            async def one(place: int) -> None:
                try:
                    answers[place] = answer = await self._ask(queries[place])
                except anyio.get_cancelled_exc_class():
                    if anyio.current_effective_deadline() > -math.inf:  # no scope around it was cancelled
                        role = queries[place].role.value
                        answers[place] = self._failed(Cause.ERROR, f"{role}: the model cancelled itself")
                    raise
                if isinstance(answer, Failure):
                    group.cancel_scope.cancel()

            for place in range(len(queries)):
                group.start_soon(one, place)
        return tuple(answers)

    async def release(self) -> None:
        """Give back what the models hold for the running event loop: all at once, in a second at most, uncancelled."""
        with anyio.move_on_after(GOODBYE, shield=True):
            async with anyio.create_task_group() as group:
                for model in {id(model): model for model in self._models.values()}.values():
                    if releases(model):
                        group.start_soon(attempt, model.release, self.name, self.version)

    async def _ask(self, query: Query) -> Reply | Failure:
        model = self._models.get(query.role)
        if model is None:
            return self._failed(Cause.ERROR, f"no model plays the role {query.role.value}")
        async with self._turn(model):
            answer = await self._in_time(model, query)
        if isinstance(answer, Reply):
            return answer
        # A provider may quote the question, and what it says is told where no session redacts it, too.
        told = Confidential([query.system]).hidden(answer.detail)
        return replace(answer, detail=f"{query.role.value}: {told}")

    async def _in_time(self, model: Model, query: Query) -> Reply | Failure:
        late = self._failed(Cause.TIMEOUT, f"no answer within {self._timeout} s, the timeout of the panel")
        answer: Reply | Failure = late
        with anyio.move_on_after(self._timeout) as scope:
            answer = await attempt(partial(_answer, model, query), self.name, self.version)
        # A model may make an error of its own of being cancelled.
        return late if scope.cancel_called and isinstance(answer, Failure) else answer

    @asynccontextmanager
    async def _turn(self, model: Model) -> AsyncGenerator[None, None]:
        """Wait for a turn at a model: in order within this event loop, and then for a place beside other loops."""
        place = self._places[id(model)]
        async with self._limit(model):
            while not place.acquire(blocking=False):  # noqa: ASYNC110 - an anyio.Event cannot be set from another loop
                await anyio.sleep(INTERVAL)
            try:
                yield
            finally:
                place.release()

    def _limit(self, model: Model) -> anyio.CapacityLimiter:
        # A limiter belongs to the event loop that it was made in, and hosts may use several.
        none: dict[int, anyio.CapacityLimiter] = {}
        limits = self._limits.get(none)
        self._limits.set(limits)
        return limits.setdefault(id(model), anyio.CapacityLimiter(max(1, model.max_concurrency)))


async def attempt(work: Callable[[], Awaitable[_T]], name: str, version: str) -> _T | Failure:
    """Return what async work comes to, or the Failure that its exception stands for. Being cancelled is no failure."""
    try:
        return await work()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the boundary to models, and to hosts' own panels
        return failure_of(error, name, version)


async def _answer(model: Model, query: Query) -> Reply:
    """Return what a model answers, in which every part is of its type. Raises what it raises, TypeError, ValueError."""
    reply = await model.ask(query)
    if not _is_reply(reply):
        raise TypeError(f"{type(reply).__name__} is not a Reply")
    if reply.query != query:
        raise ValueError(f"{reply.model} answered another query than the one that it was asked")
    parts = (reply.model, reply.draws, reply.choice, reply.usage)
    name, draws, choice, usage = _DECODER.decode(_ENCODER.encode(parts))
    return Reply(query=query, model=name, draws=draws, choice=choice, exact=reply.exact is True, usage=usage)


def _is_reply(value: object) -> TypeGuard[Reply]:
    return isinstance(value, Reply)


async def drive(consultation: Consultation, panel: Panel) -> InquirySettled:
    """Carry the queries of a consultation to the panel until it is settled."""
    try:
        queries = next(consultation)
        while True:
            queries = consultation.send(await panel.ask_all(queries))
    except StopIteration as stop:
        settled: InquirySettled = stop.value
        return settled
    finally:
        consultation.close()


def drive_sync(consultation: Consultation, ask: Callable[[Query], Reply | Failure]) -> InquirySettled:
    """Carry the queries of a consultation to a plain function, one after the other."""
    try:
        queries = next(consultation)
        while True:
            queries = consultation.send(tuple([ask(query) for query in queries]))
    except StopIteration as stop:
        settled: InquirySettled = stop.value
        return settled
    finally:
        consultation.close()


async def wait(seconds: float) -> None:
    """Sleep for some seconds, or not at all when they are over."""
    await anyio.sleep(max(0.0, seconds))


async def asking(work: Callable[[], Awaitable[_T]], panel: Panel) -> _T:
    """Do all that a panel is asked for on an event loop of ours; then its models give back what they hold for it."""
    try:
        return await work()
    finally:
        await panel.release()


def run(work: Callable[[], Awaitable[_T]], panel: Panel) -> _T:
    """Run async work that asks a panel from a plain function; beside a running loop, on a thread of its own."""
    try:
        current_token()
    except (RuntimeError, LookupError):
        return anyio.run(asking, work, panel)
    with anyio.from_thread.start_blocking_portal() as portal:
        return portal.call(asking, work, panel)
