"""The scheduler of axor-probe: many sessions under one controller, what is closed, and laws of both."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.api.timelines import AT_ONCE, Host, Timeline, event, settled, timed

from theodolite.api.probing.controller import (
    Dispatch,
    Outcome,
    ProbeController,
    ProbeScheduleConfig,
    RuntimeEvent,
    Trigger,
)
from theodolite.testing.fakes import FakeClock

# Closing.


def test_closing_ends_what_waits_and_nothing_comes_later() -> None:
    async def go() -> None:
        host = Host(ProbeScheduleConfig())
        came: list[Outcome] = []

        async def triggers(session: str) -> None:
            came.append(await host.controller.trigger("x", session))

        async with anyio.create_task_group() as group, host.controller:
            group.start_soon(triggers, "s")
            group.start_soon(triggers, "t")
            await settled()
        assert came == [Outcome.CLOSED] * 2
        assert await host.controller.trigger("x", "s") is Outcome.CLOSED
        assert not host.controller.evaluate(event())
        await host.time.pass_by(1_000.0)
        assert host.sent == []
        assert host.controller.probes_sent == 0

    anyio.run(go)


def test_closing_ends_the_timer_of_what_waits_for_a_cooldown() -> None:
    async def go() -> None:
        host = Host()
        async with host.controller:
            await host.controller.trigger("x", "s")
            assert await host.controller.trigger("x", "s") is Outcome.WAITING
            await settled()
        await host.time.pass_by(1_000.0)
        assert len(host.sent) == 1

    anyio.run(go)


def test_a_host_that_fails_inside_gets_its_own_exception() -> None:
    async def go() -> None:
        host = Host()
        async with host.controller:
            await host.controller.trigger("x", "s")
            await host.controller.trigger("x", "s")
            raise KeyError("the host's")

    with pytest.raises(KeyError, match="the host's"):
        anyio.run(go)


def test_a_scope_around_a_controller_may_be_cancelled() -> None:
    async def go() -> None:
        host = Host()
        with anyio.move_on_after(0.01) as scope:
            async with host.controller:
                await host.controller.trigger("x", "s")
                await host.controller.trigger("x", "s")
                await anyio.sleep_forever()
        assert scope.cancelled_caught
        assert len(host.sent) == 1

    anyio.run(go)


def test_a_trigger_that_was_cancelled_is_served_by_the_next() -> None:
    async def go() -> None:
        host = Host(ProbeScheduleConfig())
        with anyio.move_on_after(0.01):
            await host.controller.trigger("x", "s")
        assert host.controller.sent("s") == 0
        await host.time.pass_by(100.0)
        assert host.controller.evaluate(event("context_growth"))  # wanted still

    anyio.run(go)


# Sessions.


def _steps(session: int) -> list[tuple[float, RuntimeEvent]]:
    drawn = random.Random(session)  # noqa: S311 - test data, no secret
    time, level, found = 0.0, 0, list[tuple[float, RuntimeEvent]]()
    for _ in range(30):
        time += drawn.choice((0.1, 3.0, 40.0, 500.0))
        level = level + drawn.choice((0, 100, 700, 9_000)) if drawn.random() < 0.95 else 500
        kind = drawn.choice((*["context_growth", "external_content"] * 4, *Trigger))
        found.append((time, event(kind, level, f"s-{session}")))
    return found


def _granted(
    controller: ProbeController, clock: FakeClock, steps: Sequence[tuple[float, RuntimeEvent]]
) -> set[RuntimeEvent]:
    granted: set[RuntimeEvent] = set()
    for clock.now, given_ in steps:
        if controller.evaluate(given_):
            granted.add(given_)
    return granted


def test_two_hundred_interleaved_sessions_are_two_hundred_sessions() -> None:
    """The original counts for all sessions together: of A, A, B, B with a cap of 2, B is never probed."""
    sessions = [_steps(session) for session in range(200)]
    mixed = sorted([step for steps in sessions for step in steps], key=lambda step: step[0])
    together = _granted(*timed(ProbeScheduleConfig()), mixed)
    apart = [_granted(*timed(ProbeScheduleConfig()), steps) for steps in sessions]
    assert together == set().union(*apart)
    assert all(apart)
    assert all(len(granted) <= 20 for granted in apart)


def test_two_hundred_sessions_that_trigger_at_once_are_each_dispatched_at_a_moment_of_their_own() -> None:
    async def go() -> None:
        host = Host(ProbeScheduleConfig())
        async with host.controller, anyio.create_task_group() as group:
            for session in range(200):
                group.start_soon(host.controller.trigger, "x", f"s-{session}")
            await host.time.pass_by(15.0)
        assert sorted(session for _, session, _ in host.sent) == sorted(f"s-{session}" for session in range(200))
        assert len({when for when, _, _ in host.sent}) == 200

    anyio.run(go)


def test_what_is_remembered_is_bounded() -> None:
    controller = ProbeController(AT_ONCE, max_sessions=3, clock=FakeClock())
    for session in ("a", "b", "c", "a", "d"):
        controller.evaluate(event(session=session))
    assert [controller.sent(session) for session in "abcd"] == [1, 0, 1, 1]
    controller.forget("a")
    controller.forget("nobody")
    assert controller.sent("a") == 0


def test_a_session_with_a_dispatch_on_its_way_is_not_forgotten() -> None:
    async def go() -> None:
        time = Timeline()
        sent: list[str] = []

        async def dispatch(given_: Dispatch) -> None:
            sent.append(given_.session_id)
            await anyio.lowlevel.checkpoint()

        controller = ProbeController(
            ProbeScheduleConfig(), dispatch, max_sessions=1, clock=time.clock, sleep=time.sleep
        )
        async with anyio.create_task_group() as group:
            group.start_soon(controller.trigger, "x", "a")
            await settled()
            controller.forget("a")
            assert controller.sent("a") == 1
            group.start_soon(controller.trigger, "x", "b")
            await settled()
            assert await controller.trigger("x", "a") is Outcome.COALESCED
            await time.pass_by(15.0)
        assert sorted(sent) == ["a", "b"]

    anyio.run(go)


@pytest.mark.parametrize("session", ["\ud800", "a\0b", "é" * 10_000])
def test_any_id_is_an_id(session: str) -> None:
    controller, _ = timed()
    assert controller.evaluate(event(session=session))
    assert controller.sent(session) == 1


# The laws, over triggers in time.

_TRIGGERS = st.lists(
    st.tuples(
        st.sampled_from((0.0, 1.0, 20.0, 31.0, 300.0)), st.sampled_from(("a", "b")), st.sampled_from(("manual", "x"))
    ),
    max_size=30,
)


@settings(deadline=None)
@given(_TRIGGERS, st.sampled_from((0.0, 15.0)), st.integers(1, 25))
def test_no_trigger_is_lost_and_cap_and_cooldown_hold(
    triggers: list[tuple[float, str, str]], jitter: float, cap: int
) -> None:
    async def go() -> None:
        host = Host(ProbeScheduleConfig(jitter_seconds=jitter, max_probes_per_session=cap))
        wanted: dict[str, float] = {}
        async with host.controller, anyio.create_task_group() as group:
            for wait, session, reason in triggers:
                await host.time.pass_by(wait)
                group.start_soon(host.controller.trigger, reason, session)
                await settled()
                wanted[session] = host.time.clock.now - 1_000.0
            await host.time.pass_by(10_000.0)
        for session, last in wanted.items():
            moments = [when for when, whose, _ in host.sent if whose == session]
            assert 1 <= len(moments) <= cap
            assert all(later - earlier >= 30.0 for earlier, later in pairwise(moments))
            # The last that was wanted was served afterwards, unless the cap was reached.
            assert len(moments) == cap or last <= moments[-1] <= last + 60.0 + 2 * jitter

    anyio.run(go)


# The reputation.


def test_a_reputation_that_falls_triggers_a_probe_until_the_controller_is_closed(tmp_path: Path) -> None:
    async def go() -> None:
        file = tmp_path / "reputation.json"
        file.write_text('{"reputation_score": 0.2}')
        sent: list[str] = []
        dispatched = anyio.Event()

        async def dispatch(given_: Dispatch) -> None:
            sent.append(given_)
            dispatched.set()
            await anyio.lowlevel.checkpoint()

        async def sleep(seconds: float) -> None:
            del seconds
            await anyio.lowlevel.checkpoint()

        config = ProbeScheduleConfig(jitter_seconds=0.0, reputation_snapshot_path=file)
        controller = ProbeController(config, dispatch, sleep=sleep)
        async with anyio.create_task_group() as group:
            group.start_soon(controller.run_reputation_poll, "s")
            with anyio.fail_after(10):
                await dispatched.wait()
            controller.close()  # and the poll returns, or this block would not end
        assert sent == ["reputation"]

    anyio.run(go)


def test_without_a_file_no_reputation_is_looked_at() -> None:
    assert anyio.run(ProbeController().run_reputation_poll) is None
