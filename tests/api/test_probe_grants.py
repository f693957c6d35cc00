"""A granted probe is dispatched once and counted once, however its caller goes about it.

Some ask with `evaluate` and dispatch at once; some wait out the jitter with `wait`, soon or late; some only wait. A tap
may ask before the pipeline asks, and other events of the session come in between.
"""

from __future__ import annotations

from itertools import pairwise

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.api.timelines import AT_ONCE, SECRET, Timeline, settled

from theodolite.api.probing import (
    DefaultShadowInstanceFactory,
    ProbeController,
    ProbeExecutor,
    ProbeOutcome,
    ProbePipeline,
    ProbeReport,
    ProbeScheduleConfig,
    RuntimeEvent,
    ShadowInstance,
    StateSnapshot,
)
from theodolite.core.inquiry import Message


def made(kind: str = "manual", tokens: int = 0) -> RuntimeEvent:
    return RuntimeEvent(session_id="s", event_type=kind, token_count=tokens)


def controlled(config: ProbeScheduleConfig = AT_ONCE) -> tuple[ProbeController, Timeline]:
    time = Timeline()
    return ProbeController(config, secret=SECRET, clock=time.clock, sleep=time.sleep), time


# Who waits.


@pytest.mark.parametrize("config", [AT_ONCE, ProbeScheduleConfig()], ids=["at once", "with jitter"])
def test_another_event_takes_no_grant_away(config: ProbeScheduleConfig) -> None:
    """A tap asked about the first event; before its pipeline went on, a second event came in."""

    async def go() -> None:
        controller, time = controlled(config)
        first, second = made(), made("context_growth", 2_500)
        assert controller.evaluate(first)
        assert not controller.evaluate(second)
        assert controller.evaluate(first)  # now the pipeline asks
        waited: list[bool] = []

        async def waits() -> None:
            waited.append(await controller.wait(first))

        async with anyio.create_task_group() as group:
            group.start_soon(waits)
            await time.pass_by(15.0)
        assert waited == [True]
        assert controller.probes_sent == controller.sent("s") == 1
        await time.pass_by(600.0)
        assert not controller.evaluate(made("context_growth", 2_500))  # the probe served the second, too

    anyio.run(go)


def test_each_of_two_grants_is_waited_for_by_its_own_event() -> None:
    async def go() -> None:
        controller, _ = controlled(ProbeScheduleConfig(jitter_seconds=0.0, cooldown_window_seconds=0.0))
        first, second = made(), made()
        assert [controller.evaluate(first), controller.evaluate(second)] == [True, True]
        assert [await controller.wait(second), await controller.wait(first)] == [True, True]
        assert controller.probes_sent == 2

    anyio.run(go)


def test_without_a_cooldown_a_tap_and_its_pipeline_still_ask_about_one_probe() -> None:
    controller, _ = controlled(ProbeScheduleConfig(jitter_seconds=0.0, cooldown_window_seconds=0.0))
    manual = made()
    assert [controller.evaluate(manual) for _ in range(3)] == [True] * 3
    assert controller.probes_sent == 1


def test_who_waits_late_gets_the_probe_and_no_two_come_within_the_cooldown() -> None:
    async def go() -> None:
        controller, time = controlled()
        late, newer = made(), made()
        assert controller.evaluate(late)
        await time.pass_by(40.0)
        assert controller.evaluate(newer)
        moments: dict[str, float] = {}

        async def waits(name: str, happened: RuntimeEvent) -> None:
            assert await controller.wait(happened)
            moments[name] = time.clock.now

        async with anyio.create_task_group() as group:
            group.start_soon(waits, "late", late)
            await settled()
            group.start_soon(waits, "newer", newer)
            await time.pass_by(100.0)
        assert moments == {"late": 1_040.0, "newer": 1_070.0}
        assert controller.probes_sent == controller.sent("s") == 2

    anyio.run(go)


def test_what_is_always_waited_for_late_is_the_whole_cap() -> None:
    async def go() -> None:
        controller, time = controlled(ProbeScheduleConfig(jitter_seconds=0.0, max_probes_per_session=3))
        dispatched, held = 0, made()
        assert controller.evaluate(held)
        for _ in range(20):
            await time.pass_by(40.0)
            newer = made()
            controller.evaluate(newer)
            dispatched += await controller.wait(held)
            held = newer
        assert dispatched == controller.probes_sent == controller.sent("s") == 3

    anyio.run(go)


def test_a_probe_whose_late_wait_is_cancelled_is_wanted_again_and_counts_no_more() -> None:
    async def go() -> None:
        controller, time = controlled(ProbeScheduleConfig())
        first, second = made(), made()
        assert controller.evaluate(first)
        await time.pass_by(60.0)
        assert controller.evaluate(second)
        with anyio.move_on_after(0.01):
            await controller.wait(second)
        with anyio.fail_after(5.0):
            assert await controller.wait(first)  # at once: its moment is long over
        assert controller.probes_sent == controller.sent("s") == 1

    anyio.run(go)


# Who never waits.


def test_who_never_waits_has_dispatched_what_was_granted() -> None:
    async def go() -> None:
        controller, time = controlled()
        granted = 0
        for _ in range(40):
            granted += controller.evaluate(made())
            await time.pass_by(30.0)
        assert granted == controller.probes_sent == controller.sent("s") == 20

    anyio.run(go)


# Who only waits.


def test_who_only_waits_asks_by_that() -> None:
    async def go() -> None:
        controller, time = controlled()
        dispatched = 0
        for _ in range(40):
            dispatched += await controller.wait(made())
            await time.pass_by(30.0)
        assert dispatched == controller.probes_sent == controller.sent("s") == 20

    anyio.run(go)


def test_who_only_waits_may_do_so_with_one_object() -> None:
    async def go() -> None:
        controller, time = controlled()
        same, dispatched = made(), 0
        for _ in range(40):
            dispatched += await controller.wait(same)
            await time.pass_by(30.0)
        assert dispatched == controller.probes_sent == 20

    anyio.run(go)


def test_what_was_refused_is_refused_when_it_is_waited_for_and_counts_once() -> None:
    async def go() -> None:
        controller, time = controlled()
        assert await controller.wait(made())
        refused = made()
        assert not controller.evaluate(refused)
        assert not await controller.wait(refused)
        await time.pass_by(31.0)
        assert await controller.wait(made("context_growth"))  # what was wanted meanwhile, as one
        await time.pass_by(31.0)
        assert not await controller.wait(made("context_growth"))
        assert controller.probes_sent == 2

    anyio.run(go)


def test_two_that_wait_for_one_event_are_one_probe() -> None:
    async def go() -> None:
        controller, time = controlled(ProbeScheduleConfig())
        manual, waited = made(), list[bool]()

        async def waits() -> None:
            waited.append(await controller.wait(manual))

        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(waits)
            await time.pass_by(15.0)
        assert sorted(waited) == [False, True]
        assert controller.probes_sent == 1

    anyio.run(go)


# The laws, for any mixture of callers.

_CALLERS = st.lists(
    st.tuples(
        st.sampled_from((0.0, 1.0, 20.0, 31.0, 90.0)),  # since the caller before
        st.sampled_from(("asks", "asks and waits", "waits")),
        st.sampled_from((0.0, 5.0, 35.0, 100.0)),  # between asking and waiting
    ),
    max_size=25,
)


@settings(deadline=None)
@given(_CALLERS, st.sampled_from((0.0, 15.0)), st.sampled_from((0.0, 30.0)), st.integers(1, 8))
def test_what_was_granted_goes_out_once_and_counts_once(
    callers: list[tuple[float, str, float]], jitter: float, cooldown: float, cap: int
) -> None:
    config = ProbeScheduleConfig(jitter_seconds=jitter, cooldown_window_seconds=cooldown, max_probes_per_session=cap)

    async def go() -> None:
        controller, time = controlled(config)
        asked: list[float] = []  # dispatched without waiting
        waited: list[float] = []

        async def call(how: str, delay: float) -> None:
            one = made()
            if how != "waits" and not controller.evaluate(one):
                return
            if how == "asks":
                asked.append(time.clock.now)
                return
            await time.sleep(delay if how == "asks and waits" else 0.0)
            due = await controller.wait(one)
            assert due or how == "waits"  # what was granted is never refused
            if due:
                waited.append(time.clock.now)

        async with anyio.create_task_group() as group:
            for since, how, delay in callers:
                await time.pass_by(since)
                group.start_soon(call, how, delay)
                await settled()
            await time.pass_by(1_000.0)
        assert len(asked) + len(waited) == controller.probes_sent == controller.sent("s") <= cap
        if "asks" not in {how for _, how, _ in callers}:
            assert all(later - earlier >= cooldown for earlier, later in pairwise(sorted(waited)))

    anyio.run(go)


# The pipeline.


class Copies:
    def create(self, event: RuntimeEvent) -> StateSnapshot:
        return StateSnapshot(session_id=event.session_id, context_window=(Message("user", "Hello"),))


async def declines(_: object) -> object:
    await anyio.lowlevel.checkpoint()
    return "I cannot do that, the policy forbids it."


def test_a_tap_that_asks_before_its_pipeline_loses_no_probe() -> None:
    """The documented tap of axor-probe asks the scheduler that its pipeline asks again, while more events come in."""

    async def go() -> None:
        controller, time = controlled()
        pipeline = ProbePipeline(
            scheduler=controller,
            snapshot_factory=Copies(),
            executor=ProbeExecutor(declines),
            shadow_factory=DefaultShadowInstanceFactory(ShadowInstance(declines)),
        )
        reports: list[ProbeReport | None] = []

        async def run(happened: RuntimeEvent) -> None:
            reports.append(await pipeline.run(happened))

        for _ in range(5):
            events = [made() for _ in range(3)]
            async with anyio.create_task_group() as group:
                for happened in events:
                    if controller.evaluate(happened):
                        group.start_soon(run, happened)
            await time.pass_by(60.0)
        assert [report.outcome if report else None for report in reports] == [ProbeOutcome.CLEAN] * 5
        assert controller.probes_sent == 5

    anyio.run(go)
