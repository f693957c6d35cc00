"""The scheduler of axor-probe: what it takes, when a probe is due, and when it is dispatched."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest
from tests.api.timelines import AT_ONCE, SECRET, Host, Timeline, event, settled, timed

from theodolite.api.probing.controller import (
    Dispatch,
    Outcome,
    ProbeController,
    ProbeScheduleConfig,
    RuntimeEvent,
    Trigger,
)
from theodolite.core.errors import ConfigError, EventError
from theodolite.testing.fakes import FakeClock

make_event: Callable[..., RuntimeEvent] = RuntimeEvent  # with what its types do not allow
make_config: Callable[..., ProbeScheduleConfig] = ProbeScheduleConfig
make_controller: Callable[..., ProbeController] = ProbeController


# Events.


@pytest.mark.parametrize("count", [math.nan, None, "abc", True, -5, 2_000.0, 10**13, 10**400, [1]])
def test_a_number_of_tokens_that_is_none_is_refused_where_it_is_made(count: object) -> None:
    """In the original NaN, None and "abc" raise out of `run()`, and True and -5 are taken."""
    with pytest.raises(EventError, match=r"RuntimeEvent\.token_count"):
        make_event(session_id="s", event_type="context_growth", token_count=count)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("session_id", ""),
        ("session_id", None),
        ("session_id", 7),
        ("agent_id", None),
        ("model", 1),
        ("event_type", "Manual"),
        ("event_type", ""),
        ("event_type", None),
        ("has_external_content", 1),
        ("has_external_content", "false"),
    ],
)
def test_a_field_that_is_none_of_its_type_is_refused(field: str, value: object) -> None:
    with pytest.raises(EventError, match=rf"RuntimeEvent\.{field}"):
        make_event(**{"session_id": "s", "event_type": "manual", field: value})


@pytest.mark.parametrize("kind", [*Trigger, *map(str, Trigger)])
def test_every_type_of_event_is_known_by_its_word(kind: str) -> None:
    assert event(kind).event_type == str(kind)


# Settings.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_interval_seconds", 600),
        ("max_probes_per_session", 0),
        ("context_growth_tokens", True),
        ("jitter_seconds", math.nan),
        ("reputation_score_threshold", 1.1),
        ("reputation_score_threshold", math.nan),
        ("reputation_score_threshold", False),
        ("reputation_poll_interval_seconds", 0),
        ("reputation_poll_interval_seconds", "60"),
        ("reputation_snapshot_path", ""),
        ("reputation_snapshot_path", 3),
        ("reputation_snapshot_path", "a\0b"),
    ],
)
def test_a_setting_that_is_none_is_named(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        make_config(**{name: value})


@pytest.mark.parametrize(
    "given_",
    [{"config": 3}, {"dispatch_fn": 3}, {"secret": b"short"}, {"secret": "x" * 40}, {"max_sessions": 0}],
)
def test_a_controller_of_something_else_is_refused(given_: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        make_controller(**given_)


def test_what_is_asked_about_something_else_is_told_so() -> None:
    controller, _ = timed()
    ask: Callable[[object], bool] = controller.evaluate  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    with pytest.raises(EventError, match="RuntimeEvent, not a dict"):
        ask({"session_id": "s"})


# evaluate.


@pytest.mark.parametrize(
    ("given_", "due"),
    [
        (event("context_growth", 1_999), False),
        (event("context_growth", 2_000), True),
        (event("context_growth", 600), False),
        (event("context_growth", 600, external=True), True),
        (event("external_content", 500), True),
        (event("external_content", 499), False),
        (event("external_content"), False),
        (event("manual"), True),
        (event("reputation"), True),
        (event("compaction"), True),
        (event("handoff"), True),
    ],
)
def test_when_a_probe_is_due(given_: RuntimeEvent, *, due: bool) -> None:
    controller, _ = timed()
    assert controller.evaluate(given_) is due
    assert controller.sent("s") == controller.probes_sent == int(due)


def test_a_level_is_no_growth() -> None:
    """The original takes the length of the context for its growth, and fires every 30 s until its cap is spent."""
    controller, clock = timed()
    granted: list[float] = []
    for second in range(1_000):
        clock.now = float(second)
        if controller.evaluate(event("context_growth", 3_000)):
            granted.append(clock.now)
    assert granted == [0.0]


def test_the_same_event_may_be_asked_about_twice_and_counts_once() -> None:
    """axor's CoreContextTap asks the scheduler that its pipeline asks again: 10 gates passed, no probe run."""
    controller, clock = timed()
    growth = event("context_growth", 2_500)
    assert [controller.evaluate(growth) for _ in range(3)] == [True] * 3
    assert controller.probes_sent == 1
    assert anyio.run(controller.wait, growth)
    assert not controller.evaluate(growth)
    clock.now = 100.0
    assert not controller.evaluate(growth)  # nothing was taken in since
    assert not anyio.run(controller.wait, growth)


def test_equal_events_are_each_an_event() -> None:
    controller, clock = timed()
    assert [controller.evaluate(event()) for _ in range(5)] == [True, *[False] * 4]
    clock.now = 30.0
    assert controller.evaluate(event("context_growth"))  # what was wanted meanwhile, as one
    assert controller.probes_sent == 2


def test_one_event_asked_about_for_ever_stays_within_the_cap() -> None:
    controller, clock = timed()
    same, granted = event(), 0
    for _ in range(40):
        granted += controller.evaluate(same)
        clock.now += 30.0
    assert granted == controller.probes_sent == 20


def test_the_probe_of_an_event_waits_out_its_jitter() -> None:
    async def go() -> list[float]:
        moments: list[float] = []
        for place in range(20):
            time = Timeline()
            controller = ProbeController(secret=b"%d" % place * 20, clock=time.clock, sleep=time.sleep)
            manual = event()
            assert controller.evaluate(manual)
            async with anyio.create_task_group() as group:

                async def waits(
                    controller: ProbeController = controller, manual: RuntimeEvent = manual, time: Timeline = time
                ) -> None:
                    assert await controller.wait(manual)
                    moments.append(time.clock.now - 1_000.0)

                group.start_soon(waits)
                await time.pass_by(15.0)
        return moments

    moments = anyio.run(go)
    assert len(moments) == len(set(moments)) == 20
    assert 0.0 <= min(moments) < 5.0
    assert 10.0 < max(moments) < 15.0


def test_a_probe_whose_wait_was_cancelled_is_wanted_again() -> None:
    async def go() -> None:
        time = Timeline()
        controller = ProbeController(secret=SECRET, clock=time.clock, sleep=time.sleep)
        growth = event("context_growth", 2_500)
        assert controller.evaluate(growth)
        with anyio.move_on_after(0.01):
            await controller.wait(growth)
        assert controller.probes_sent == controller.sent("s") == 0
        await time.pass_by(50.0)
        assert controller.evaluate(event("context_growth", 2_501))

    anyio.run(go)


# trigger.


def test_fifty_triggers_at_once_are_one_dispatch() -> None:
    async def go(config: ProbeScheduleConfig) -> None:
        host = Host(config)
        came: list[Outcome] = []

        async def triggers() -> None:
            came.append(await host.controller.trigger("manual", "s"))

        async with host.controller, anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(triggers)
            await host.time.pass_by(600.0)
            assert not host.controller.evaluate(event("context_growth"))  # it served them all
        assert sorted(came) == [*[Outcome.COALESCED] * 49, Outcome.DISPATCHED]
        assert len(host.sent) == 1

    anyio.run(go, AT_ONCE)
    anyio.run(go, ProbeScheduleConfig())


def test_the_cooldown_holds_after_a_dispatch_and_what_came_in_it_is_one_more() -> None:
    """In the original five triggers, one after the other, are five dispatches."""

    async def go() -> None:
        host = Host()
        async with host.controller:
            came = [await host.controller.trigger("odd", "s") for _ in range(5)]
            assert came == [Outcome.DISPATCHED, *[Outcome.WAITING] * 4]
            await settled()
            assert len(host.time.sleepers) == 1
            await host.time.pass_by(29.0)
            assert len(host.sent) == 1
            await host.time.pass_by(600.0)
        assert host.sent == [(0.0, "s", "odd"), (30.0, "s", "odd")]

    anyio.run(go)


def test_outside_of_its_context_what_waits_goes_with_the_next_trigger_or_event() -> None:
    async def go() -> None:
        host = Host()
        await host.controller.trigger()
        assert await host.controller.trigger() is Outcome.WAITING
        await host.time.pass_by(100.0)
        assert len(host.sent) == 1
        assert host.controller.evaluate(event("context_growth", session="s")) is False  # another session
        assert await host.controller.trigger("handoff") is Outcome.DISPATCHED
        assert [(when, reason) for when, _, reason in host.sent] == [(0.0, "manual"), (100.0, "handoff")]

    anyio.run(go)


def test_a_dispatch_says_of_which_session_it_is_and_what_it_serves() -> None:
    async def go() -> None:
        sent: list[Dispatch] = []

        async def dispatch(given_: Dispatch) -> None:
            sent.append(given_)
            await anyio.lowlevel.checkpoint()

        controller = ProbeController(AT_ONCE, dispatch, clock=FakeClock())
        await controller.trigger("reputation", "s-7")
        assert (sent[0], sent[0].session_id, sent[0].triggers) == ("reputation", "s-7", (Trigger.REPUTATION,))

    anyio.run(go)


def test_a_function_of_the_reason_alone_will_do() -> None:
    reasons: list[str] = []

    async def as_in_the_original(reason: str) -> None:
        reasons.append(reason)
        await anyio.lowlevel.checkpoint()

    controller = ProbeController(AT_ONCE, as_in_the_original)
    assert anyio.run(controller.trigger) is Outcome.DISPATCHED
    assert reasons == ["manual"]


def test_the_cap_holds_whatever_is_triggered() -> None:
    async def go() -> None:
        host = Host(ProbeScheduleConfig(jitter_seconds=0.0, max_probes_per_session=3))
        came: list[Outcome] = []
        for _ in range(6):
            came.append(await host.controller.trigger("x", "s"))
            await host.time.pass_by(31.0)
        assert came == [*[Outcome.DISPATCHED] * 3, *[Outcome.CAPPED] * 3]
        assert not host.controller.evaluate(event(session="s"))
        assert await host.controller.trigger("x", "another") is Outcome.DISPATCHED

    anyio.run(go)


@pytest.mark.parametrize(
    "fault",
    [
        ValueError("the key sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"),
        ExceptionGroup("g", [KeyError("k")]),
        SystemExit(3),
    ],
)
def test_a_dispatch_that_raises_is_told_of_and_breaks_nothing_later(
    fault: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        host = Host()
        host.faults.append(fault)
        async with host.controller:
            assert await host.controller.trigger("x", "s") is Outcome.FAILED
            assert host.controller.failures == 1
            assert host.controller.last_failure is not None
            await host.time.pass_by(31.0)
            assert await host.controller.trigger("x", "s") is Outcome.DISPATCHED
        assert host.controller.failures == 1

    with caplog.at_level(logging.WARNING):
        anyio.run(go)
    [record] = caplog.records
    assert "could not be dispatched" in record.getMessage()
    assert "abcdefgh" not in caplog.text


def test_one_that_raises_later_on_breaks_nothing_either(caplog: pytest.LogCaptureFixture) -> None:
    async def go() -> None:
        host = Host()
        async with host.controller:
            await host.controller.trigger("x", "s")
            await host.controller.trigger("x", "s")
            host.faults.append(ValueError())
            await host.time.pass_by(31.0)
            await host.controller.trigger("x", "s")
            await host.time.pass_by(31.0)
        assert [when for when, _, _ in host.sent] == [0.0, 30.0, 60.0]
        assert host.controller.failures == 1

    anyio.run(go)
    assert len(caplog.records) == 1


def test_without_a_function_nothing_can_be_triggered() -> None:
    with pytest.raises(ConfigError, match="dispatch_fn"):
        anyio.run(ProbeController().trigger)


@pytest.mark.parametrize("words", [(3,), (None,), ("manual", None), ("manual", b"s")])
def test_a_trigger_has_words(words: tuple[object, ...]) -> None:
    async def refused(trigger: Callable[..., Awaitable[Outcome]]) -> None:
        with pytest.raises(ConfigError, match="text"):
            await trigger(*words)

    anyio.run(refused, Host().controller.trigger)
