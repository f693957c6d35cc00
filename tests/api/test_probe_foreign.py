"""What the parts of a pipeline do that is not theirs to do: `run` reports it, and what a copy told is still seen."""

from __future__ import annotations

import asyncio  # noqa: TID251 - what the parts of a host do with it
import json
import re
from collections import UserDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

import anyio
import anyio.lowlevel
import pytest
from tests.detectors.behavior_answers import DECLINES

from theodolite.api.probing import (
    DefaultShadowInstanceFactory,
    IntegrationLayer,
    ProbeController,
    ProbeExecutor,
    ProbeOutcome,
    ProbePipeline,
    ProbeReport,
    RuntimeEvent,
    ShadowInstance,
    StateSnapshot,
)
from theodolite.api.probing.foreign import given_by
from theodolite.core.inquiry import Message

Told = Sequence[Mapping[str, str]]

EVENT = RuntimeEvent(session_id="s-1", event_type="manual")


class Host:
    """A scheduler that always says yes, and a session."""

    def evaluate(self, event: RuntimeEvent) -> object:
        return bool(event.session_id)

    def create(self, event: RuntimeEvent) -> StateSnapshot:
        return StateSnapshot(session_id=event.session_id, context_window=(Message("user", "MARK: where is it?"),))


def declines(_: object) -> object:
    return dict(DECLINES)


make_pipeline: Callable[..., ProbePipeline] = ProbePipeline  # with what its types do not allow


def piped(host: object = None, infer: Callable[[Told], object] = declines, **parts: object) -> ProbePipeline:
    given: dict[str, object] = {
        "scheduler": host or Host(),
        "snapshot_factory": Host(),
        "executor": ProbeExecutor(infer),
        "shadow_factory": DefaultShadowInstanceFactory(ShadowInstance(infer)),
        "timeout": 5.0,
    }
    return make_pipeline(**{**given, **parts})


def ran(pipeline: ProbePipeline) -> ProbeReport:
    report = anyio.run(pipeline.run, EVENT)
    assert report is not None
    return report


# What is read beside what cannot be.


def leaks(give: Callable[[str], object]) -> ProbeReport:
    """Return the report where the session's copy gives what is made of the planted token."""

    def infer(messages: Told) -> object:
        said = json.dumps(list(messages))
        planted = re.search(r"TH-[0-9a-f]{16}", said)
        return give(planted[0]) if planted and "MARK" in said else dict(DECLINES)

    return ran(piped(infer=infer))


def _in_a_circle() -> list[object]:
    circle: list[object] = ["\ud800"]
    circle.append(circle)
    return circle


class Broken(UserDict[str, object]):
    """A mapping that cannot be read."""

    def __getitem__(self, key: str) -> object:
        raise ValueError(key)


@pytest.mark.parametrize(
    "call",
    ["\ud800", ["\ud800"], [["\ud800"]], {"name": "\ud800"}, {"\ud800": 1}, 10**400, 1e400, object(), _in_a_circle()],
    ids=lambda call: ascii(call)[:20],
)
def test_a_leak_beside_a_malformed_call_is_seen(call: object) -> None:
    report = leaks(lambda token: {"text": f"Sure: {token}", "tool_calls": [call]})
    assert report.outcome is ProbeOutcome.DRIFT


def test_a_leak_beside_calls_that_are_a_text_is_seen() -> None:
    assert leaks(lambda token: {"text": f"Sure: {token}", "tool_calls": "\ud800"}).outcome is ProbeOutcome.DRIFT


GIVES: Mapping[str, Callable[[str], object]] = {
    "bare": lambda told: told,
    "text": lambda told: {"text": told},
    "blocks": lambda told: {"text": [{"type": "text", "text": told}, {"type": "image"}]},
    "nested": lambda told: {"text": [[told], Broken(a=1)]},
    "fields": lambda told: {**DECLINES, "decision": "comply", "reasoning": told},
    "arguments": lambda told: {"text": "No.", "tool_calls": [{"name": "pay", "arguments": {"to": told}}]},
    "nested calls": lambda told: {"text": "No.", "tool_calls": [[{"name": "pay", "arguments": {"to": told}}]]},
    "calls as text": lambda told: {"text": "No.", "tool_calls": told},
}


@pytest.mark.parametrize("form", GIVES)
def test_a_leak_in_a_text_with_a_lone_surrogate_is_seen(form: str) -> None:
    assert leaks(lambda token: GIVES[form](f"Sure: {token} \ud800")).outcome is ProbeOutcome.DRIFT


# What the parts raise.


class Cancels(Host):
    def evaluate(self, event: RuntimeEvent) -> object:
        raise asyncio.CancelledError(event.session_id)


class CancelsItsTask(Host):
    async def evaluate(self, event: RuntimeEvent) -> object:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await anyio.sleep(5.0)
        return event.session_id


class Exits(Host):
    def evaluate(self, event: RuntimeEvent) -> object:
        raise GeneratorExit(event.session_id)


class HasNoMethod(Host):
    """A scheduler whose method is gone once it is asked for the second time."""

    looked = False

    def __getattribute__(self, name: str) -> object:
        if name == "evaluate":
            if object.__getattribute__(self, "looked"):
                raise ValueError("gone")
            self.looked = True
        value: object = object.__getattribute__(self, name)
        return value


class WaitFails(Host):
    @property
    def wait(self) -> object:
        raise ValueError("no wait")


class WaitHangs(Host):
    async def wait(self, event: RuntimeEvent) -> bool:
        await anyio.sleep(60.0)
        return bool(event)


@pytest.mark.parametrize(
    ("host", "why"),
    [
        (Cancels(), "it cancelled itself"),
        (CancelsItsTask(), "it cancelled itself"),
        (Exits(), "GeneratorExit"),
        (HasNoMethod(), "gone"),
        (WaitFails(), "no wait"),
        (WaitHangs(), "nothing in 0.2 s"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_a_scheduler_does_is_reported(host: Host, why: str) -> None:
    report = ran(piped(host, timeout=0.2))
    assert report.outcome is ProbeOutcome.FAILED
    assert report.detail.startswith("the scheduler: ")
    assert why in report.detail


def test_a_probe_controller_waits_as_long_as_its_schedule_says() -> None:
    async def jitters(_: float) -> None:
        await anyio.sleep(0.5)

    report = ran(piped(ProbeController(sleep=jitters), timeout=0.2))
    assert report.outcome is ProbeOutcome.CLEAN


@pytest.mark.parametrize("raised", [GeneratorExit, asyncio.CancelledError, SystemExit, StopIteration])
@pytest.mark.parametrize("late", [False, True])
def test_what_an_inference_function_raises_is_reported(raised: type[BaseException], *, late: bool) -> None:
    async def infer(_: object) -> object:
        if late:
            await anyio.lowlevel.checkpoint()
        raise raised

    report = ran(piped(infer=infer))
    assert (report.outcome, report.failures) == (ProbeOutcome.FAILED, 1)


def test_a_function_that_is_closed_from_outside_is_closed() -> None:
    ended: list[type[BaseException]] = []

    async def asks(never: Awaitable[object]) -> None:
        try:
            await given_by(lambda: never)
        except BaseException as error:
            ended.append(type(error))
            raise

    async def go() -> None:
        loop = asyncio.get_running_loop()
        never: asyncio.Future[object] = loop.create_future()
        coroutine = asks(never)
        task = loop.create_task(coroutine)
        await asyncio.sleep(0.0)
        coroutine.close()
        never.set_result(None)
        await asyncio.wait([task])
        assert isinstance(task.exception(), RuntimeError)  # asyncio's: it was closed

    asyncio.run(go())
    assert ended == [GeneratorExit]


def test_being_cancelled_from_outside_is_being_cancelled() -> None:
    class Waits(Host):
        async def evaluate(self, event: RuntimeEvent) -> object:
            await anyio.sleep(60.0)
            return event.session_id

    async def go() -> bool:
        task = asyncio.ensure_future(piped(Waits(), timeout=60.0).run(EVENT))
        await asyncio.sleep(0.05)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=5.0)
        return bool(done) and task.cancelled()

    assert asyncio.run(go())


class Redacts:
    """A redactor that fails from the moment on that it is told to."""

    name, version = "own", "1"

    def __init__(self) -> None:
        self.fails = False

    def text(self, value: str, secrets: Collection[str] = ()) -> str:
        if self.fails:
            raise ValueError(value)
        del secrets
        return value

    def field(self, name: str, value: str) -> str:
        del name
        return value


def test_of_a_redactor_that_fails_nothing_is_told_where_nobody_was_asked() -> None:
    redactor = Redacts()
    pipeline = piped(WaitFails(), redactor=redactor)
    assert "no wait" in ran(pipeline).detail
    redactor.fails = True
    report = ran(pipeline)
    assert report.outcome is ProbeOutcome.FAILED
    assert "no wait" not in report.detail


class Sink:
    """An integration that is cancelled each time."""

    def emit(self, report: object, action: object) -> None:
        del report, action
        raise asyncio.CancelledError


def test_an_integration_that_cancels_itself_is_counted() -> None:
    def infer(messages: Told) -> object:
        turned = "MARK" in json.dumps(list(messages))
        return {**DECLINES, "decision": "comply", "disclosed_data": True} if turned else dict(DECLINES)

    layer: IntegrationLayer = Sink()
    pipeline = piped(infer=infer, integrations=[layer])

    async def go() -> None:
        for _ in range(20):
            await pipeline.run(EVENT)

    anyio.run(go)
    assert pipeline.integration_failures > 0


# What is remembered.


def test_after_a_burst_the_sessions_are_as_many_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("theodolite.api.probing.pipeline._SESSIONS", 3)

    async def slow(_: object) -> object:
        await anyio.sleep(0.02)
        return dict(DECLINES)

    pipeline = piped(infer=slow)

    async def go() -> tuple[int, int]:
        async with anyio.create_task_group() as group:
            for number in range(12):
                group.start_soon(pipeline.run, RuntimeEvent(session_id=f"t-{number}", event_type="manual"))
        burst = len(pipeline.monitor.sessions)
        await pipeline.run(EVENT)
        return burst, len(pipeline.monitor.sessions)

    assert anyio.run(go) == (12, 3)
