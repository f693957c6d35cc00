"""What is asked of models stays within the budget, and what is refused says which limit was reached."""

from __future__ import annotations

import gc
import math
import threading
import time
import weakref
from collections.abc import Callable

import anyio
import pytest
from msgspec import UNSET, UnsetType

from theodolite.core.budget import Budget, Limit
from theodolite.core.calibration import Band
from theodolite.core.errors import ModelError
from theodolite.core.event import ToolCallProposed
from theodolite.core.inquiry import Draw, Query, Reply, Role, Usage
from theodolite.core.policy import Decision, Mode, Policy
from theodolite.core.reading import Cause, Failure, Reading
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.session import Session
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import AskingDetector, FakeClock, ScriptedModel, ScriptedVerifier

DAY = 86_400.0
PRICED = Usage(input_tokens=7, output_tokens=3, cost=0.25)


def monitor(budget: Budget, clock: FakeClock | None = None, *, samples: int = 1, panel: Panel | None = None) -> Monitor:
    asking = AskingDetector(samples=samples)
    return Monitor([asking], budget=budget, clock=clock or FakeClock(), redactor=RuleRedactor(), panel=panel)


def answer(query: Query, usage: Usage = PRICED) -> Reply:
    return Reply(query=query, model="m-1", draws=(Draw(text="no"),) * query.samples, usage=usage)


def probed(session: Session, usage: Usage = PRICED) -> str:
    """Probe a session; return why nothing was asked, or nothing where it was."""
    session.request_probe("r")
    [decision] = session.drain_sync(lambda query: answer(query, usage))
    return refusal(decision)


def refusal(decision: Decision) -> str:
    [signal] = decision.signals
    if isinstance(signal.said, Reading):
        return ""
    assert (signal.said.detector, signal.said.cause) == ("asking", Cause.NO_EVIDENCE)
    return signal.said.detail


SCOPES: dict[str, Callable[[Limit], Budget]] = {
    "of this session": lambda limit: Budget(session=limit),
    "of the fleet": lambda limit: Budget(fleet=limit),
    "of this day": lambda limit: Budget(day=limit),
}


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(
    ("limit", "probes", "why"),
    [
        (Limit(calls=5), 2, "4 of 5 calls are used, and 2 more are wanted"),
        (Limit(calls=4), 2, "4 of 4 calls are used, and 2 more are wanted"),
        (Limit(calls=1), 0, "0 of 1 calls are used, and 2 more are wanted"),
        (Limit(calls=0), 0, "0 of 0 calls are used, and 2 more are wanted"),
        (Limit(tokens=40), 2, "40 of 40 tokens are used"),
        (Limit(tokens=41), 3, "60 of 41 tokens are used"),
        (Limit(tokens=0), 0, "0 of 0 tokens are used"),
        (Limit(cost=1.0), 2, "1 of a cost of 1 is used"),
        (Limit(cost=1.25), 3, "1.5 of a cost of 1.25 is used"),
        (Limit(cost=0.0), 0, "0 of a cost of 0 is used"),
    ],
)
def test_what_is_beyond_a_limit_is_not_asked_and_says_which_limit(
    scope: str, limit: Limit, probes: int, why: str
) -> None:
    session = monitor(SCOPES[scope](limit)).session("s-1")
    assert [probed(session) for _ in range(probes)] == [""] * probes
    for _ in range(2):
        assert probed(session) == f"the budget {scope} allows no more: {why}"


def test_each_sample_of_a_query_is_a_call() -> None:
    session = monitor(Budget(session=Limit(calls=9)), samples=4).session("s-1")
    assert probed(session) == ""
    assert probed(session).endswith("8 of 9 calls are used, and 8 more are wanted")


def test_a_session_does_not_pay_for_another_and_the_fleet_pays_for_all() -> None:
    both = monitor(Budget(session=Limit(calls=2), fleet=Limit(calls=4)))
    assert [probed(both.session(f"s-{n}")) for n in range(2)] == ["", ""]
    assert "of this session" in probed(both.session("s-0"))
    assert "of the fleet" in probed(both.session("s-9"))


def test_the_narrowest_limit_is_the_one_that_is_named() -> None:
    limit = Limit(calls=2)
    session = monitor(Budget(session=limit, fleet=limit, day=limit)).session("s-1")
    assert probed(session) == ""
    assert "of this session" in probed(session)


def test_a_new_day_has_a_budget_of_its_own_and_an_old_one_keeps_its_count() -> None:
    clock = FakeClock(10 * DAY - 1.0)
    session = monitor(Budget(day=Limit(calls=2)), clock).session("s-1")
    assert probed(session) == ""
    assert "of this day" in probed(session)
    clock.now += 1.0
    assert probed(session) == ""
    assert "of this day" in probed(session)
    clock.now -= 1.0  # somebody set the clock
    assert "of this day" in probed(session)
    clock.now += 5 * DAY
    assert probed(session) == ""


def test_of_a_monitor_that_runs_for_years_no_old_day_is_kept() -> None:
    clock = FakeClock(10 * DAY)
    instrument = monitor(Budget(session=Limit(calls=1_000)), clock)
    session = instrument.session("s-1")
    for _ in range(100):
        assert probed(session) == ""
        clock.now += DAY
    days = instrument.fleet.purse._days  # pyright: ignore[reportPrivateUsage] - nobody else can see that it grows
    assert sorted(days) == [108, 109]


def test_an_answer_counts_for_the_day_on_which_it_was_asked_for() -> None:
    clock = FakeClock(10 * DAY - 1.0)
    session = monitor(Budget(day=Limit(tokens=20)), clock).session("s-1")
    session.request_probe("r")

    def late(query: Query) -> Reply:
        clock.now = 10 * DAY
        return answer(query)

    assert refusal(session.drain_sync(late)[0]) == ""
    assert probed(session) == ""
    assert "20 of 20 tokens" in probed(session)


@pytest.mark.parametrize("other", [0.0, UNSET])
def test_where_cost_is_limited_a_model_without_a_price_is_asked_once(other: float | UnsetType) -> None:
    session = monitor(Budget(fleet=Limit(cost=100.0))).session("s-1")
    session.request_probe("r")
    costs = [UNSET, other]
    session.drain_sync(lambda query: answer(query, Usage(cost=costs.pop())))
    assert probed(session) == (
        "the budget of the fleet allows no more: it limits cost, and the model m-1 has no price: give it one"
    )


def test_where_cost_is_not_limited_a_model_needs_no_price() -> None:
    session = monitor(Budget(session=Limit(calls=100, tokens=1_000))).session("s-1")
    assert [probed(session, Usage(input_tokens=1)) for _ in range(3)] == [""] * 3


def test_ten_answers_for_a_tenth_come_to_one() -> None:
    session = monitor(Budget(session=Limit(cost=1.0))).session("s-1")
    assert [probed(session, Usage(cost=0.1)) for _ in range(5)] == [""] * 5
    assert "1 of a cost of 1 is used" in probed(session)


def test_a_model_that_tells_numbers_below_0_gives_nothing_back() -> None:
    session = monitor(Budget(session=Limit(tokens=21, cost=0.75))).session("s-1")
    assert probed(session) == ""
    assert probed(session, Usage(input_tokens=-1_000, output_tokens=1, cost=-1_000.0)) == ""
    assert "22 of 21 tokens" in probed(session)


@pytest.mark.parametrize("error", [ModelError("down"), TimeoutError("slow"), LookupError("a bug")])
def test_a_query_that_fails_counts_as_a_call_and_uses_nothing_else(error: Exception) -> None:
    panel = Panel(dict.fromkeys(Role, ScriptedModel(error)))
    budget = Budget(session=Limit(calls=3, tokens=1, cost=0.01))
    session = monitor(budget, panel=panel).session("s-1")
    session.request_probe("r")
    [failed] = session.drain_sync()
    assert [signal.code for signal in failed.signals] == ["asking.failure"]
    assert "2 of 3 calls are used" in probed(session)


def test_a_drive_that_is_cancelled_keeps_the_count() -> None:
    panel = Panel(dict.fromkeys(Role, ScriptedModel("never", delay=math.inf)))
    session = monitor(Budget(session=Limit(calls=2)), panel=panel).session("s-1")
    session.request_probe("r")

    async def give_up() -> None:
        with anyio.move_on_after(0.02):
            await session.drain()

    anyio.run(give_up)
    assert session.waiting == 1
    [decision] = session.drain_sync(answer)
    assert "2 of 2 calls are used" in refusal(decision)


def test_a_script_that_is_interrupted_keeps_the_count() -> None:
    session = monitor(Budget(session=Limit(calls=2))).session("s-1")
    session.request_probe("r")

    def stopped(query: Query) -> Reply:
        raise KeyboardInterrupt(query.prompt)

    with pytest.raises(KeyboardInterrupt):
        session.drain_sync(stopped)
    assert "2 of 2 calls are used" in refusal(session.drain_sync(answer)[0])


def test_a_second_opinion_is_paid_for_too_and_where_there_is_no_more_the_first_one_stays() -> None:
    verifier = ScriptedVerifier(codes=frozenset({"asking.differs"}), verdict=0.0)
    unsure = AskingDetector(samples=1, band=Band(alert=0.5, width=0.5, source="a test: all is ambiguous"))
    instrument = Monitor([unsure], verifiers=[verifier], budget=Budget(session=Limit(calls=5)), redactor=RuleRedactor())
    session = instrument.session("s-1")
    session.request_probe("r")
    session.request_probe("r")
    first, second = session.drain_sync(answer)
    assert [signal.said.detector for signal in first.signals] == ["scripted_verifier"]
    [reading, refused] = [signal.said for signal in second.signals]
    assert isinstance(reading, Reading)
    assert isinstance(refused, Failure)
    assert (reading.detector, refused.detector, refused.cause) == ("asking", "scripted_verifier", Cause.NO_EVIDENCE)
    assert "5 of 5 calls are used" in refused.detail


def test_what_was_refused_is_in_the_record_and_the_detector_counts_as_blind() -> None:
    store = MemoryStore()
    instrument = Monitor(
        [AskingDetector()], budget=Budget(session=Limit(calls=0)), redactor=RuleRedactor(), store=store
    )
    session = instrument.session("s-1")
    assert probed(session)
    assert [record.codes for record in store.read()] == [("asking.failure",)]
    assert (session.coverage().blind, session.coverage().failures) == (("asking",), {})


def test_a_budget_that_is_used_up_refuses_no_tool_call() -> None:
    policy = Policy(default=Mode.ENFORCE, fail_closed=True)
    session = Monitor([AskingDetector()], budget=Budget(fleet=Limit(calls=0)), policy=policy).session("s-1")
    assert probed(session)
    assert session.observe(ToolCallProposed(tool="t")).allowed


# -- what a session has used ------------------------------------------------------------------------------------------


def test_a_session_that_is_moved_takes_along_what_it_has_used() -> None:
    budget = Budget(session=Limit(calls=2))
    session = monitor(budget).session("s-1")
    assert probed(session) == ""
    assert "2 of 2 calls" in probed(monitor(budget).restore(session.save()))


def test_a_session_that_is_opened_again_begins_anew_and_the_fleet_does_not() -> None:
    instrument = monitor(Budget(session=Limit(calls=2), fleet=Limit(calls=4)))
    for why in ("", "", "the budget of the fleet allows no more: 4 of 4 calls are used, and 2 more are wanted"):
        session = instrument.session("s-1")
        assert probed(session) == why
        session.close()


def test_nothing_is_left_of_a_session_that_was_closed_under_a_drain() -> None:
    """A slow answer may come after its session was closed: it is paid for, and remembered nowhere else."""

    async def closed_meanwhile(instrument: Monitor) -> weakref.ref[Session]:
        session = instrument.session("s-1")
        session.request_probe("r")
        async with anyio.create_task_group() as group:
            group.start_soon(session.drain)
            await anyio.sleep(0.01)
            session.close()
        return weakref.ref(session)

    panel = Panel(dict.fromkeys(Role, ScriptedModel("no", delay=0.03)))
    instrument = monitor(Budget(fleet=Limit(calls=2)), panel=panel)
    gone = anyio.run(closed_meanwhile, instrument)
    gc.collect()
    assert gone() is None
    assert "2 of 2 calls" in probed(instrument.session("s-2"))


class Slow(int):
    """A limit that takes its time to be compared, so that another thread comes in between."""

    def __lt__(self, other: float) -> bool:
        time.sleep(0.002)
        return int(self) < other


def test_nobody_comes_between_the_look_at_a_limit_and_the_count() -> None:
    model = ScriptedModel("no", max_concurrency=100)
    panel = Panel(dict.fromkeys(Role, model))
    instrument = monitor(Budget(fleet=Limit(calls=Slow(10))), panel=panel)
    sessions = [instrument.session(f"s-{n}") for n in range(12)]
    for session in sessions:
        session.request_probe("r")
    threads = [threading.Thread(target=session.drain_sync) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(model.asked) == 10


def test_two_threads_that_want_the_last_call_do_not_both_get_it() -> None:
    """Each waits in its first question until the other has come, or is refused."""
    instrument = monitor(Budget(fleet=Limit(calls=2)))
    together, said = threading.Barrier(2), list[str]()

    def slowly(query: Query) -> Reply:
        if query.role is Role.SUBJECT:
            together.wait(timeout=5.0)
        return answer(query)

    def work(name: str) -> None:
        session = instrument.session(name)
        session.request_probe("r")
        why = refusal(session.drain_sync(slowly)[0])
        if why:
            together.wait(timeout=5.0)
        said.append(why)

    threads = [threading.Thread(target=work, args=(f"s-{n}",)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(bool, said)) == [False, True]
