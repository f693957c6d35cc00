"""However questions are interleaved, no more calls are made than a budget allows, and none is refused without need."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator

from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.core.budget import Budget, Limit
from theodolite.core.errors import ModelError
from theodolite.core.event import InquirySettled
from theodolite.core.inquiry import Query, Reply, Role, Usage
from theodolite.core.reading import Cause, Failure
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.purse import Purse, Spent
from theodolite.testing.fakes import AskingDetector, FakeClock, ScriptedModel

DAY = 86_400.0

limits = st.one_of(st.none(), st.integers(0, 20))
budgets = st.builds(
    lambda *most: Budget(session=Limit(calls=most[0]), fleet=Limit(calls=most[1]), day=Limit(calls=most[2])),
    limits,
    limits,
    limits,
)
# What is asked at once, by the samples of each query.
asked = st.lists(st.integers(1, 4), min_size=1, max_size=3)

Answers = tuple[Reply | Failure, ...]


def dialogue(plan: list[list[int]]) -> Generator[tuple[Query, ...], Answers, InquirySettled]:
    """Ask what is planned, and tell at the end what was refused."""
    refused: list[Reply | Failure] = []
    for samples in plan:
        answers = yield tuple([Query(role=Role.SUBJECT, prompt="?", samples=count) for count in samples])
        assert len(answers) == len(samples)
        refused.extend(answer for answer in answers if isinstance(answer, Failure))
    return InquirySettled(asker="a", about=0, said=tuple([one for one in refused if isinstance(one, Failure)]))


FAILED = Failure(detector="panel", version="1", cause=Cause.ERROR)


def replied(query: Query) -> Reply:
    return Reply(query=query, model="m", usage=Usage(input_tokens=1))


class Ledger:
    """What was really asked, counted from outside."""

    def __init__(self, budget: Budget, clock: FakeClock) -> None:
        self.budget = budget
        self.clock = clock
        self.calls: Counter[tuple[str, object]] = Counter()

    def scopes(self, session: int) -> list[tuple[tuple[str, object], int | None]]:
        budget = self.budget
        return [
            (("session", session), budget.session.calls),
            (("fleet", None), budget.fleet.calls),
            (("day", self.clock.now // DAY), budget.day.calls),
        ]

    def ask(self, session: int, calls: int) -> None:
        for scope, most in self.scopes(session):
            self.calls[scope] += calls
            assert most is None or self.calls[scope] <= most

    def fits(self, session: int, calls: int) -> bool:
        return all(most is None or self.calls[scope] + calls <= most for scope, most in self.scopes(session))


@settings(max_examples=150)
@given(
    budgets,
    st.lists(st.tuples(st.integers(0, 2), st.lists(asked, max_size=4)), min_size=1, max_size=6),
    st.lists(st.one_of(st.integers(0, 5), st.just("midnight"), st.just("back"))),
    st.data(),
)
def test_no_interleaving_of_dialogues_goes_over_a_limit_or_stops_short_of_it(
    budget: Budget, plans: list[tuple[int, list[list[int]]]], schedule: list[int | str], data: st.DataObject
) -> None:
    clock = FakeClock(10 * DAY)
    purse, ledger = Purse(budget, clock), Ledger(budget, clock)
    spent = [Spent() for _ in range(3)]
    roads = [purse.within(dialogue(plan), spent[session]) for session, plan in plans]
    left: list[list[list[int]]] = [list(plan) for _, plan in plans]
    under_way: dict[int, tuple[Query, ...]] = {}
    over: set[int] = set()

    def step(place: int) -> None:
        session = plans[place][0]
        before = under_way.pop(place, None)
        try:
            if before is None:
                queries = next(roads[place])
            else:
                fails = data.draw(st.booleans())
                queries = roads[place].send(tuple([FAILED if fails else replied(query) for query in before]))
        except StopIteration:
            over.add(place)
            queries = ()
        while left[place]:  # what was planned and did not come was refused
            samples = left[place].pop(0)
            if samples == [query.samples for query in queries] and ledger.fits(session, sum(samples)):
                ledger.ask(session, sum(samples))
                under_way[place] = queries
                return
            assert not ledger.fits(session, sum(samples))
        assert not queries

    for move in [*schedule, *[place for place in range(len(roads)) for _ in range(6)]]:
        if isinstance(move, str):
            clock.now += DAY if move == "midnight" else -DAY
        elif move < len(roads) and move not in over:
            step(move)
    assert over == set(range(len(roads)))
    for session, one in enumerate(spent):
        assert one.calls == ledger.calls["session", session]


@settings(max_examples=25)
@given(st.integers(0, 40), st.integers(0, 12), st.integers(1, 3), st.sampled_from([["no"], ["no", ModelError("down")]]))
def test_threads_that_drain_beside_each_other_make_no_call_too_many(
    fleet: int, session: int, samples: int, answers: list[str | ModelError]
) -> None:
    model = ScriptedModel(lambda query: answers[len(query.prompt) % len(answers)], max_concurrency=8, delay=0.0005)
    budget = Budget(fleet=Limit(calls=fleet), session=Limit(calls=session))
    detectors = [AskingDetector(samples=samples, name=f"asking_{n}", prompt="?" * n) for n in range(3)]
    monitor = Monitor(detectors, panel=Panel(dict.fromkeys(Role, model)), budget=budget)
    sessions = [monitor.session(f"s-{n}") for n in range(3)]
    for one in sessions:
        one.request_probe("r")
    # Two threads a session, so that inquiries of one session are under way together as well.
    threads = [threading.Thread(target=one.drain_sync) for one in sessions for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(query.samples for query in model.asked) <= min(fleet, 3 * session)
    assert [one.waiting for one in sessions] == [0, 0, 0]
    settled = [one.coverage().events["InquirySettled"] for one in sessions]
    assert settled == [3, 3, 3]
