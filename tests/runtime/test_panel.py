"""The panel and the two drivers."""

from __future__ import annotations

import math
import threading
from collections.abc import Awaitable, Callable, Generator

import anyio
import pytest

from theodolite.core.errors import ModelError
from theodolite.core.event import InquirySettled
from theodolite.core.inquiry import Query, Reply, Role
from theodolite.core.reading import Cause, Failure
from theodolite.runtime.drive import Panel, drive, drive_sync, run, wait
from theodolite.testing.fakes import ScriptedModel

SUBJECT, SHADOW, JUDGE = (Query(role=role, prompt="May I?") for role in (Role.SUBJECT, Role.SHADOW, Role.JUDGE))


def ask(panel: Panel, *queries: Query) -> tuple[Reply | Failure, ...]:
    async def work() -> tuple[Reply | Failure, ...]:
        return await panel.ask_all(queries)

    return anyio.run(work)


def causes(answers: tuple[Reply | Failure, ...]) -> list[Cause | None]:
    return [answer.cause if isinstance(answer, Failure) else None for answer in answers]


def test_answers_come_in_the_order_of_the_queries_each_from_the_model_of_its_role() -> None:
    slow, fast = ScriptedModel("slow", name="slow", delay=0.02), ScriptedModel("fast", name="fast")
    answers = ask(Panel({Role.SUBJECT: slow, Role.SHADOW: fast}), SUBJECT, SHADOW, SUBJECT)
    assert [answer.model for answer in answers if isinstance(answer, Reply)] == ["slow", "fast", "slow"]


def test_queries_side_by_side_are_asked_at_once() -> None:
    model = ScriptedModel("yes", max_concurrency=3, delay=0.02)
    ask(Panel({Role.SUBJECT: model}), *[SUBJECT] * 3)
    assert model.most_at_once == 3


def test_a_role_that_nobody_plays_is_a_failure() -> None:
    [failure] = ask(Panel(), JUDGE)
    assert isinstance(failure, Failure)
    assert (failure.detector, failure.cause, failure.detail) == ("panel", Cause.ERROR, "no model plays the role judge")


@pytest.mark.parametrize(
    ("error", "cause", "detail"),
    [
        (ModelError("refused by the provider"), Cause.ERROR, "subject: refused by the provider"),
        (RuntimeError("bug in an adapter"), Cause.ERROR, "subject: RuntimeError: bug in an adapter"),
        (ValueError("junk"), Cause.MALFORMED, "subject: ValueError: junk"),
        (TimeoutError("socket"), Cause.TIMEOUT, "subject: TimeoutError: socket"),
        (ModelError("slow", cause=Cause.TIMEOUT), Cause.TIMEOUT, "subject: slow"),
        (ModelError("not JSON", cause=Cause.MALFORMED), Cause.MALFORMED, "subject: not JSON"),
        (ExceptionGroup("x", [ExceptionGroup("y", [ModelError("refused")])]), Cause.ERROR, "subject: refused"),
    ],
)
def test_a_model_that_raises_is_a_failure(error: Exception, cause: Cause, detail: str) -> None:
    [failure] = ask(Panel({Role.SUBJECT: ScriptedModel(error)}), SUBJECT)
    assert isinstance(failure, Failure)
    assert (failure.cause, failure.detail) == (cause, detail)


def test_a_model_that_hangs_is_a_timeout_and_is_cancelled() -> None:
    model = ScriptedModel("never", delay=math.inf)
    with anyio.from_thread.start_blocking_portal() as portal:
        panel = Panel({Role.SUBJECT: model}, timeout=0.02)
        [failure] = portal.call(panel.ask_all, (SUBJECT,))
    assert isinstance(failure, Failure)
    assert (failure.cause, failure.detail) == (
        Cause.TIMEOUT,
        "subject: no answer within 0.02 s, the timeout of the panel",
    )
    assert model.asked == (SUBJECT,)


# Python code that ignores types, as plug-ins may.
any_reply: Callable[..., Reply] = Reply


class Counting:
    """A model that counts who is asking it, over all threads."""

    name = "counting"
    max_concurrency = 2

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.under_way = 0
        self.most = 0
        self.answered = 0

    async def ask(self, query: Query) -> Reply:
        with self._lock:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        await anyio.sleep(0.01)
        with self._lock:
            self.under_way -= 1
            self.answered += 1
        return Reply(query=query, model=self.name)


class Junk:
    """A model that does not keep the law."""

    name = "junk"
    max_concurrency = 1

    def __init__(self, answer: Callable[[Query], object]) -> None:
        self._answer = answer

    def ask(self, query: Query) -> Awaitable[Reply]:
        answer: Awaitable[Reply] = self._answer(query)  # type: ignore[assignment] # pyright: ignore[reportAssignmentType] - junk
        return answer


async def answered(junk: object) -> object:
    await anyio.lowlevel.checkpoint()
    return junk


JUNK: list[tuple[Callable[[Query], object], str]] = [
    (lambda _: answered(None), "TypeError: NoneType is not a Reply"),
    (lambda _: answered("yes"), "TypeError: str is not a Reply"),
    (lambda _: "not awaitable", "TypeError: object str can't be used in 'await' expression"),
    (lambda _: None, "TypeError: object NoneType can't be used in 'await' expression"),
    (lambda _: answered(Reply(query=SHADOW, model="m-1")), "ValueError: m-1 answered another query than the one that"),
    (lambda query: answered(any_reply(query=query, model=5)), "Expected `str`, got `int`"),
    (lambda query: answered(any_reply(query=query, model="m-1", usage=None)), "Expected `object`, got `null`"),
    (lambda query: answered(any_reply(query=query, model="m-1", choice=(("yes", math.nan),))), "Expected `float`"),
]


@pytest.mark.parametrize(("answer", "detail"), JUNK)
def test_a_model_that_answers_with_junk_is_a_failure(answer: Callable[[Query], object], detail: str) -> None:
    [failure] = ask(Panel({Role.SUBJECT: Junk(answer)}), SUBJECT)
    assert isinstance(failure, Failure)
    assert failure.cause is Cause.MALFORMED
    assert failure.detail.startswith("subject: ")
    assert detail in failure.detail


def test_an_error_that_a_model_makes_of_being_cancelled_is_a_timeout() -> None:
    class Sulking(Counting):
        async def ask(self, query: Query) -> Reply:
            try:
                await anyio.sleep_forever()
            finally:
                raise LookupError(query.prompt)

    [failure] = ask(Panel({Role.SUBJECT: Sulking()}, timeout=0.01), SUBJECT)
    assert isinstance(failure, Failure)
    assert (failure.cause, failure.detail) == (
        Cause.TIMEOUT,
        "subject: no answer within 0.01 s, the timeout of the panel",
    )


def test_when_one_query_fails_the_others_of_its_comparison_are_cancelled() -> None:
    hanging = ScriptedModel("never", delay=math.inf)
    panel = Panel({Role.SUBJECT: hanging, Role.SHADOW: ScriptedModel(ModelError("refused"))})
    answers = ask(panel, SUBJECT, SHADOW, SUBJECT)
    assert causes(answers) == [Cause.ABANDONED, Cause.ERROR, Cause.ABANDONED]
    [first, *_] = answers
    assert isinstance(first, Failure)
    assert first.detail == "another query of this comparison failed"


class Leaking(Counting):
    """Ends as cancelled, as one does that lets a cancellation of its own out."""

    async def ask(self, query: Query) -> Reply:
        await anyio.lowlevel.checkpoint()
        raise anyio.get_cancelled_exc_class()(query.prompt)


def test_a_model_that_cancels_itself_is_told_as_that_and_the_others_as_cancelled_for_it() -> None:
    panel = Panel({Role.SUBJECT: Leaking(), Role.SHADOW: ScriptedModel("never", delay=math.inf)})
    answers = ask(panel, SUBJECT, SHADOW)
    assert [(answer.cause, answer.detail) for answer in answers if isinstance(answer, Failure)] == [
        (Cause.ERROR, "subject: the model cancelled itself"),
        (Cause.ABANDONED, "another query of this comparison failed"),
    ]
    [alone] = ask(panel, SUBJECT)
    assert isinstance(alone, Failure)
    assert alone.cause is Cause.ERROR


def test_what_was_answered_before_another_query_failed_stays() -> None:
    panel = Panel({Role.SUBJECT: ScriptedModel("yes"), Role.SHADOW: ScriptedModel(ModelError("no"), delay=0.02)})
    assert causes(ask(panel, SUBJECT, SHADOW)) == [None, Cause.ERROR]


def test_no_more_queries_are_under_way_than_the_model_takes() -> None:
    model = ScriptedModel("yes", max_concurrency=2, delay=0.005)
    panel = Panel({Role.SUBJECT: model, Role.SHADOW: model})
    ask(panel, *[SUBJECT, SHADOW] * 5)
    assert model.most_at_once == 2
    assert len(model.asked) == 10


def test_the_time_that_a_query_waits_for_its_turn_is_not_the_model_s() -> None:
    model = ScriptedModel("yes", max_concurrency=1, delay=0.05)
    answers = ask(Panel({Role.SUBJECT: model}, timeout=0.12), *[SUBJECT] * 5)
    assert causes(answers) == [None] * 5


def test_the_limit_holds_over_several_event_loops() -> None:
    model = Counting()
    panel = Panel({Role.SUBJECT: model})
    threads = [threading.Thread(target=ask, args=(panel, *[SUBJECT] * 4)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (model.most, model.answered) == (2, 12)
    ask(panel, SUBJECT)
    assert model.answered == 13


def test_a_place_is_given_back_when_a_query_is_cancelled() -> None:
    panel = Panel({Role.SUBJECT: ScriptedModel("never", delay=math.inf, max_concurrency=1)})

    async def give_up() -> bool:
        with anyio.move_on_after(0.01) as scope:
            await panel.ask_all((SUBJECT,))
        return scope.cancelled_caught

    assert anyio.run(give_up)
    assert anyio.run(give_up)


def test_a_limit_below_one_still_lets_one_query_through() -> None:
    assert causes(ask(Panel({Role.SUBJECT: ScriptedModel("yes", max_concurrency=0)}), SUBJECT)) == [None]


def consultation(log: list[object]) -> Generator[tuple[Query, ...], tuple[Reply | Failure, ...], InquirySettled]:
    try:
        log.append((yield (SUBJECT, SHADOW)))
        log.append((yield (JUDGE,)))
    finally:
        log.append("closed")
    return InquirySettled(asker="a", about=1, said=())


def test_both_drivers_carry_the_same_queries_to_the_same_end() -> None:
    model = ScriptedModel("yes")
    panel = Panel(dict.fromkeys(Role, model))
    by_panel: list[object] = []
    by_hand: list[object] = []
    end = anyio.run(drive, consultation(by_panel), panel)
    assert drive_sync(consultation(by_hand), lambda query: anyio.run(model.ask, query)) == end
    assert by_panel == by_hand
    assert by_hand[-1] == "closed"


def test_a_driver_that_is_given_up_closes_the_consultation() -> None:
    log: list[object] = []

    def out_of_order(_: Query) -> Reply:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive_sync(consultation(log), out_of_order)
    assert log == ["closed"]


def test_a_driver_that_is_cancelled_closes_the_consultation() -> None:
    log: list[object] = []
    panel = Panel(dict.fromkeys(Role, ScriptedModel("never", delay=math.inf)))

    async def give_up() -> None:
        with anyio.move_on_after(0.01):
            await drive(consultation(log), panel)

    anyio.run(give_up)
    assert log == ["closed"]


async def work() -> str:
    await anyio.lowlevel.checkpoint()
    return "done"


def test_async_work_runs_from_a_plain_function_with_and_without_a_loop_around_it() -> None:
    async def within() -> str:
        await anyio.lowlevel.checkpoint()
        return run(work, Panel())

    assert run(work, Panel()) == "done"
    assert anyio.run(within) == "done"


def test_to_wait_for_what_is_over_is_not_to_wait() -> None:
    with anyio.from_thread.start_blocking_portal() as portal:
        portal.call(wait, -5.0)
        portal.call(wait, 0.001)
