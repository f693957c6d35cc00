"""A provider that dies or hangs in any phase of a call: nothing hangs, nothing is lost, siblings are let go at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio
import pytest

from theodolite.core.event import ToolCallProposed, TurnEnded
from theodolite.core.inquiry import Query, Reply, Role
from theodolite.core.model import Model
from theodolite.core.reading import Cause, Failure
from theodolite.core.store import verify
from theodolite.models.anthropic import AnthropicModel
from theodolite.models.hosted.retry import Retry
from theodolite.models.openai import OpenAIModel
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import AskingDetector, ScriptedDetector
from theodolite.testing.provider import Breaks, FakeProvider, Phase, Scripted

# Seconds: what a sibling may still take when the other side of its comparison has failed, and what a panel waits here.
SIBLING = 0.05
PATIENCE = 0.25
# What a loaded machine may add to a wait: a hang is longer than this by far.
MARGIN = 2.0
QUICK = Retry(attempts=2, first=0.001, longest=0.001, jitter=0.0)
SIDES = tuple([Query(role=role, prompt="May a refund be paid?") for role in (Role.SUBJECT, Role.SHADOW)])

Make: TypeAlias = Callable[[FakeProvider], Model]


def chat(provider: FakeProvider) -> Model:
    return OpenAIModel("m-1", base_url=provider.base_url, api_key="sk-1", retry=QUICK)


def responses(provider: FakeProvider) -> Model:
    return OpenAIModel("m-1", base_url=provider.base_url, api_key="sk-1", retry=QUICK, api="responses")


def messages(provider: FakeProvider) -> Model:
    return AnthropicModel("m-1", base_url=provider.url, api_key="sk-1", retry=QUICK)


def refusing() -> FakeProvider:
    provider = FakeProvider("yes")
    provider.close()
    return provider


def breaking(said: Scripted) -> Callable[[], FakeProvider]:
    return lambda: FakeProvider(said)


DEATHS: dict[str, Callable[[], FakeProvider]] = {
    "refused": refusing,
    "closed before headers": breaking(Breaks(Phase.REQUEST, "close")),
    "reset before headers": breaking(Breaks(Phase.REQUEST, "reset")),
    "closed in headers": breaking(Breaks(Phase.HEADERS, "close")),
    "reset in headers": breaking(Breaks(Phase.HEADERS, "reset")),
    "closed in the body": breaking(Breaks(Phase.BODY, "close")),
    "reset in the body": breaking(Breaks(Phase.BODY, "reset")),
    "closed in the stream": breaking(Breaks(Phase.STREAM, "close")),
    "reset in the stream": breaking(Breaks(Phase.STREAM, "reset")),
    "reset after the body": breaking(Breaks(Phase.DONE, "reset")),
}
HANGS: dict[str, Callable[[], FakeProvider]] = {
    "before it accepts": lambda: FakeProvider("yes", deaf=True),
    "before headers": breaking(Breaks(Phase.REQUEST, "hang")),
    "in headers": breaking(Breaks(Phase.HEADERS, "hang")),
    "in the body": breaking(Breaks(Phase.BODY, "hang")),
    "in the stream": breaking(Breaks(Phase.STREAM, "hang")),
    "after the body": breaking(Breaks(Phase.DONE, "hang")),
}
every = pytest.mark.parametrize("make", [chat, responses, messages])
every_death = pytest.mark.parametrize("death", DEATHS)
every_hang = pytest.mark.parametrize("hang", HANGS)


@dataclass
class Watched:
    """A model, and when the last query to it came to an end of whatever kind."""

    model: Model
    ended: list[float] = field(default_factory=list[float])

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def max_concurrency(self) -> int:
        return self.model.max_concurrency

    async def ask(self, query: Query) -> Reply:
        try:
            return await self.model.ask(query)
        finally:
            self.ended.append(time.monotonic())


def compared(subject: Model, shadow: Model, timeout: float) -> tuple[tuple[Reply | Failure, ...], float]:
    """Return what a comparison comes to, and the seconds that it took."""
    panel = Panel({Role.SUBJECT: subject, Role.SHADOW: shadow}, timeout=timeout)
    started = time.monotonic()
    answers = anyio.run(panel.ask_all, SIDES)
    return answers, time.monotonic() - started


@every
@every_death
def test_when_one_side_dies_the_other_is_let_go_within_50_ms(make: Make, death: str) -> None:
    """Tried once more where it takes longer: another process may hold the machine for as long."""
    late = 0.0
    for _ in range(2):
        with DEATHS[death]() as dying, FakeProvider(Breaks(Phase.REQUEST, "hang")) as hanging:
            subject, shadow = Watched(make(dying)), Watched(make(hanging))
            answers, _ = compared(subject, shadow, timeout=20.0)
        first, second = answers
        assert isinstance(first, Failure)
        assert isinstance(second, Failure)
        assert (first.cause, second.cause) == (Cause.ERROR, Cause.ABANDONED), first
        late = shadow.ended[0] - subject.ended[0]
        if late <= SIBLING:
            return
    pytest.fail(f"the sibling was let go {late * 1000:.0f} ms after the failure")


@every
@every_hang
def test_one_that_hangs_is_given_up_when_the_panel_s_patience_ends(make: Make, hang: str) -> None:
    with HANGS[hang]() as hanging, FakeProvider("yes") as well:
        (first, second), took = compared(make(hanging), make(well), timeout=PATIENCE)
    assert isinstance(first, Failure)
    assert (first.cause, first.detail) == (
        Cause.TIMEOUT,
        f"subject: no answer within {PATIENCE} s, the timeout of the panel",
    )
    assert isinstance(second, Reply)
    assert took < PATIENCE + MARGIN


@every
@every_hang
def test_one_that_hangs_does_not_keep_a_sibling_that_failed(make: Make, hang: str) -> None:
    with HANGS[hang]() as hanging, refusing() as refused:
        answers, took = compared(make(hanging), make(refused), timeout=20.0)
    assert [answer.cause for answer in answers if isinstance(answer, Failure)] == [Cause.ABANDONED, Cause.ERROR]
    assert took < MARGIN


@every
def test_an_answer_that_ends_with_its_connection_is_an_answer(make: Make) -> None:
    with FakeProvider(Breaks(Phase.DONE, "close")) as provider:
        answers, _ = compared(make(provider), make(provider), timeout=20.0)
    assert all(isinstance(answer, Reply) for answer in answers)


@every
@pytest.mark.parametrize("phase", [Phase.BODY, Phase.STREAM])
def test_an_answer_that_was_cut_is_not_asked_for_again(make: Make, phase: Phase) -> None:
    with FakeProvider([Breaks(phase), "yes"]) as provider, FakeProvider("yes") as well:
        (first, _), _ = compared(make(provider), make(well), timeout=20.0)
    assert isinstance(first, Failure)
    assert "broke off in the midst of an answer, after " in first.detail
    assert len(provider.asked) == 1


@every
@pytest.mark.parametrize("phase", [Phase.REQUEST, Phase.HEADERS])
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_connection_that_ended_before_an_answer_is_made_anew(make: Make, phase: Phase, how: str) -> None:
    said = Breaks(phase, "close" if how == "close" else "reset")
    with FakeProvider([said, "yes"]) as provider, FakeProvider("yes") as well:
        answers, _ = compared(make(provider), make(well), timeout=20.0)
    assert all(isinstance(answer, Reply) for answer in answers)


@every
def test_connections_that_are_given_up_leave_room_for_the_next(make: Make) -> None:
    hanging = [True]

    async def one(model: Model) -> None:
        await model.ask(SIDES[0])

    async def work(model: Model) -> Reply:
        for _ in range(4):
            async with anyio.create_task_group() as group:
                for _ in range(model.max_concurrency):
                    group.start_soon(one, model)
                await anyio.sleep(0.05)
                group.cancel_scope.cancel()
        hanging.clear()
        with anyio.fail_after(10.0):
            return await model.ask(SIDES[0])

    with FakeProvider(lambda _: Breaks(Phase.BODY, "hang") if hanging else "yes") as provider:
        assert anyio.run(work, make(provider)).draws[0].text == "yes"
    assert len(provider.asked) > 8


# -- a session --------------------------------------------------------------------------------------------------------

CALL = ToolCallProposed(tool="send_money", arguments={"to": "ES-77"})


def watched(panel: Panel) -> tuple[Monitor, MemoryStore]:
    store = MemoryStore()
    passive = ScriptedDetector(script={ToolCallProposed: 0.95}, name="passive")
    return Monitor([passive, AskingDetector()], panel=panel, store=store), store


@pytest.mark.parametrize("make", [chat, messages])
@pytest.mark.parametrize("broken", [*DEATHS, *HANGS])
def test_a_session_keeps_its_passive_results_and_says_what_failed(make: Make, broken: str) -> None:
    with {**DEATHS, **HANGS}[broken]() as provider, FakeProvider("yes") as well:
        panel = Panel({Role.SUBJECT: make(provider), Role.SHADOW: make(well)}, timeout=PATIENCE)
        monitor, store = watched(panel)
        with monitor, monitor.session("s-1") as session:
            before = session.observe(CALL)
            session.request_probe("because")
            started = time.monotonic()
            [settled] = anyio.run(session.drain)
            took = time.monotonic() - started
            after = session.observe(CALL)
            session.observe(TurnEnded())
    assert [signal.code for signal in before.signals] == ["passive.scripted"]
    assert [signal.code for signal in after.signals] == ["passive.scripted"]
    [failure] = settled.signals
    assert failure.code == "asking.failure"
    assert took < PATIENCE + MARGIN
    assert session.waiting == 0
    assert verify(store).intact


@pytest.mark.parametrize("make", [chat, messages])
def test_a_session_without_a_loop_of_its_own_asks_again_and_again(make: Make) -> None:
    with FakeProvider("yes") as provider:
        model = make(provider)
        monitor, _ = watched(Panel(dict.fromkeys(Role, model)))
        with monitor, monitor.session("s-1") as session:
            for _ in range(3):
                session.request_probe("because")
                [settled] = session.drain_sync()
                assert [signal.code for signal in settled.signals] == ["asking.differs"]
