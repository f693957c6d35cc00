"""One client for each event loop, left in time, and never held for longer than it is of use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar
from weakref import ref

import anyio
import pytest
from anyio.lowlevel import checkpoint

from theodolite.core.errors import ConfigError, ModelError
from theodolite.core.inquiry import Query, Role
from theodolite.models.anthropic import AnthropicModel
from theodolite.models.hosted.breaker import Breaker
from theodolite.models.hosted.desk import Desk
from theodolite.models.hosted.retry import Retry
from theodolite.models.hosted.transport import Fault, Transport
from theodolite.models.openai import OpenAIModel
from theodolite.testing.provider import FakeProvider

T = TypeVar("T")


class Client:
    """Notes when it is entered and left, and takes its time."""

    def __init__(self, steps: list[str], *, entering: float = 0.0, leaving: Exception | None = None) -> None:
        self.steps = steps
        self.entering = entering
        self.leaving = leaving
        self.left = False

    async def __aenter__(self) -> Self:
        await anyio.sleep(self.entering)
        self.steps.append("entered")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await checkpoint()
        self.left = True
        self.steps.append("left")
        if self.leaving is not None:
            raise self.leaving

    async def ask(self) -> str:
        await checkpoint()
        if self.left:
            raise RuntimeError("the client has been closed")
        return "answer"


def fault_of(error: Exception) -> Fault:
    return Fault(f"{type(error).__name__} of the client")


def desk(enter: Callable[[], Client], *, concurrency: int = 8) -> Desk[Client]:
    transport = Transport(retry=Retry(attempts=1), breaker=Breaker(), timeout=5.0, fault_of=fault_of)
    return Desk(enter, transport=transport, concurrency=concurrency)


def run(work: Callable[[], Awaitable[T]]) -> T:
    return anyio.run(work)


def test_a_client_is_entered_once_for_each_loop_and_left_with_it() -> None:
    steps: list[str] = []
    asked = desk(lambda: Client(steps))

    async def twice() -> None:
        for _ in range(2):
            assert await asked.call(Client.ask) == "answer"

    for loops in (1, 2):
        run(twice)
        assert steps == ["entered", "left"] * loops


def test_two_that_ask_first_share_a_client() -> None:
    steps: list[str] = []
    asked = desk(lambda: Client(steps, entering=0.01))

    async def both() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(asked.call, Client.ask)

    run(both)
    assert steps == ["entered", "left"]


def test_released_it_is_left_and_the_next_call_enters_another() -> None:
    steps: list[str] = []
    asked = desk(lambda: Client(steps))

    async def work() -> None:
        for _ in range(2):
            await asked.call(Client.ask)
            await asked.release()
            await asked.release()

    run(work)
    assert steps == ["entered", "left"] * 2


def test_released_while_a_client_is_entered_that_one_is_left_and_another_answers() -> None:
    steps: list[str] = []
    asked = desk(lambda: Client(steps, entering=0.02))

    async def work() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(asked.call, Client.ask)
            await anyio.sleep(0.01)
            await asked.release()
            assert await asked.call(Client.ask) == "answer"

    run(work)
    assert steps.count("entered") == steps.count("left") == 2


def test_released_under_a_caller_it_fails_with_a_model_error() -> None:
    asked = desk(lambda: Client([]))

    async def slowly(client: Client) -> str:
        await anyio.sleep(0.02)
        return await client.ask()

    async def work() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(late)
            await anyio.sleep(0.01)
            await asked.release()

    async def late() -> None:
        with pytest.raises(ModelError, match="RuntimeError of the client"):
            await asked.call(slowly)

    run(work)


def test_a_client_that_cannot_be_entered_is_a_model_error_and_is_tried_again_by_the_next() -> None:
    steps: list[str] = []
    made: list[int] = []

    def enter() -> Client:
        made.append(1)
        if len(made) == 1:
            raise LookupError("no such profile")
        return Client(steps)

    async def work() -> str:
        with pytest.raises(ModelError, match="LookupError of the client"):
            await asked.call(Client.ask)
        return await asked.call(Client.ask)

    asked = desk(enter)
    assert run(work) == "answer"


def test_one_that_cannot_be_left_in_order_is_gone_all_the_same() -> None:
    asked = desk(lambda: Client([], leaving=RuntimeError("the event loop is closed")))

    async def work() -> None:
        await asked.call(Client.ask)
        await asked.release()
        assert await asked.call(Client.ask) == "answer"

    run(work)


def test_a_caller_that_is_cancelled_while_a_client_is_entered_leaves_it_to_the_next() -> None:
    steps: list[str] = []
    asked = desk(lambda: Client(steps, entering=0.05))

    async def work() -> str:
        with anyio.move_on_after(0.01):
            await asked.call(Client.ask)
        assert not steps
        return await asked.call(Client.ask)

    assert run(work) == "answer"
    assert steps == ["entered", "left"]


def test_a_concurrency_that_lets_nobody_ask_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_concurrency=0"):
        desk(lambda: Client([]), concurrency=0)


def test_desks_that_come_and_go_leave_nothing_in_a_loop_that_stays() -> None:
    steps: list[str] = []

    async def one() -> None:
        await desk(lambda: Client(steps)).call(Client.ask)

    async def work() -> None:
        for _ in range(3):
            await one()
        await anyio.sleep(0.01)  # the loop leaves what it is told of in a turn of its own
        assert sorted(steps) == ["entered"] * 3 + ["left"] * 3

    run(work)


@pytest.mark.parametrize("made", [OpenAIModel, AnthropicModel])
def test_a_model_that_nobody_holds_is_gone_at_once(made: type[OpenAIModel | AnthropicModel]) -> None:
    async def asked() -> ref[OpenAIModel | AnthropicModel]:
        model = made("m-1", base_url=provider.url, api_key="sk-1")
        await model.ask(Query(role=Role.SUBJECT, prompt="?"))
        return ref(model)

    async def work() -> None:
        gone = await asked()
        assert gone() is None
        await anyio.sleep(0.01)  # as above

    with FakeProvider("yes") as provider:
        anyio.run(work)
