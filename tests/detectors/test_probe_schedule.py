"""When a session is probed: the laws over generated sessions, and each way to a probe by itself."""

from __future__ import annotations

import hmac
import math
import tomllib
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from theodolite.core.event import (
    AnyEvent,
    ContextCompacted,
    Event,
    HandedOff,
    MessageObserved,
    ModelCalled,
    ProbeRequested,
    SessionEnded,
    Source,
    ToolResultObserved,
    TurnEnded,
)
from theodolite.core.snapshot import StateSnapshot
from theodolite.detectors.behavior.schedule import (
    READS,
    Due,
    Held,
    Hold,
    Schedule,
    ScheduleSettings,
    Secrets,
    Trigger,
)
from theodolite.testing.strategies import events

_E = TypeVar("_E", bound=Event)

GROWTH, CONTENT, COMPACTION, HANDOFF, REPUTATION, MANUAL = Trigger
SETTINGS = ScheduleSettings()
PROMPT = ScheduleSettings(jitter_seconds=0.0)
TAKEN_IN = {GROWTH, CONTENT}


made: Callable[..., ScheduleSettings] = ScheduleSettings  # with what its types do not allow


def drawing(secret: int) -> Secrets:
    return lambda label: hmac.digest(b"%d" % secret, label.encode(), "sha256")


draw = drawing(7)
patient = settings(deadline=None)


def at(time: float, event: _E) -> _E:
    return replace(event, at=time)


def result(tokens: float, source: Source = Source.TOOL) -> ToolResultObserved:
    return ToolResultObserved(tool="read", text="x" * int(tokens * 4), source=source)


def said(tokens: float) -> MessageObserved:
    return MessageObserved(role="assistant", text="x" * int(tokens * 4), source=Source.MODEL)


def called(tokens: int) -> ModelCalled:
    return ModelCalled(model="m", input_tokens=tokens)


def asked(reason: str = "manual") -> ProbeRequested:
    return ProbeRequested(reason=reason)


def run(
    given: Iterable[Event], limits: ScheduleSettings = PROMPT, schedule: Schedule | None = None
) -> list[Due | Held | None]:
    state = Schedule() if schedule is None else schedule
    return [state.take(event, limits, draw) for event in given]


def spaced(given: Sequence[AnyEvent], seconds: float = 1_000.0) -> list[AnyEvent]:
    """Put events so far apart that no cooldown holds anything."""
    return [at(place * seconds, event) for place, event in enumerate(given, 1)]


def dues(timings: Iterable[Due | Held | None]) -> list[Due]:
    return [timing for timing in timings if isinstance(timing, Due)]


def why(timings: Iterable[Due | Held | None]) -> list[tuple[str, ...]]:
    return [timing.triggers if isinstance(timing, Due) else () for timing in timings]


# What wants a probe.


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([said(1_999.75)], ()),
        ([said(2_000)], (GROWTH,)),
        ([said(1_000), said(1_000)], (GROWTH,)),
        ([result(499.75)], ()),
        ([result(500)], (CONTENT,)),
        ([result(300), result(200, Source.EXTERNAL)], (CONTENT,)),
        ([result(1_999, Source.USER)], ()),
        ([result(2_000)], (GROWTH, CONTENT)),
        ([MessageObserved(role="user", text="x" * 2_000, source=Source.EXTERNAL)], (CONTENT,)),
        ([MessageObserved(role="user", text="x" * 2_000, source=Source.USER)], ()),
        ([MessageObserved(role="assistant", text="x" * 2_000)], ()),  # its own words, wherever the host puts them
        ([ToolResultObserved(tool="read")], ()),
        ([ToolResultObserved(tool="read", text="忽" * 667, source=Source.TOOL)], (CONTENT,)),
        ([called(1_999)], ()),
        ([called(2_000)], (GROWTH,)),
        ([ModelCalled(model="m")], ()),
        ([called(-5)], ()),
        ([said(10), called(40_000)], ()),  # a long system prompt is nothing that the session took in
        ([said(10), called(40_000), called(41_989)], ()),
        ([said(10), called(40_000), called(41_990)], (GROWTH,)),
        ([ContextCompacted()], (COMPACTION,)),
        ([HandedOff(to="b")], (HANDOFF,)),
        ([asked()], (MANUAL,)),
        ([asked("reputation")], (REPUTATION,)),
        ([asked("it looks odd")], (MANUAL,)),
        ([TurnEnded()], ()),
        ([SessionEnded()], ()),
    ],
)
def test_what_wants_a_probe(given: Sequence[AnyEvent], expected: tuple[str, ...]) -> None:
    assert why(run(spaced(given)))[-1] == expected


@pytest.mark.parametrize("moment", [0.0, 1e-9, 1.0, 29.0, -5.0, 1.8e9, 1e308, -1e308])
def test_no_clock_suppresses_the_first_probe(moment: float) -> None:
    """The original compares a monotonic clock with 0, and is blind for 30 s after a host has started."""
    [due] = run([at(moment, asked())])
    assert isinstance(due, Due)
    assert due.not_before == moment


def test_a_context_that_stays_long_is_probed_once() -> None:
    """The original fires at 0, 30, 60 ... 270 s, and is blind for the rest of the session."""
    found = run([at(second, called(6_000)) for second in range(3_600)], SETTINGS)
    assert [due.triggers for due in dues(found)] == [(GROWTH,)]


# How growth is counted.


def test_what_a_length_tells_replaces_the_guess_from_texts() -> None:
    talk: list[AnyEvent] = [said(10), called(5_000)]
    assert why(run(spaced([*talk, said(1_900), called(5_100), said(1_889)])))[-1] == ()
    assert why(run(spaced([*talk, said(1_900), called(5_100), said(1_890)])))[-1] == (GROWTH,)
    assert why(run(spaced([*talk, said(1), called(7_000)])))[-1] == (GROWTH,)


def test_texts_before_a_probe_are_not_counted_again_by_the_next_length() -> None:
    found = run(spaced([said(10), called(5_000), said(2_000), called(7_000), called(9_600)]))
    assert why(found) == [(), (), (GROWTH,), (), ()]


def test_a_call_on_the_side_is_no_growth() -> None:
    found = run(spaced([called(50_000), *[called(tokens) for _ in range(50) for tokens in (200, 50_000)]]))
    assert len(dues(found)) == 1


def test_a_context_that_shrank_unannounced_grows_from_where_it_is() -> None:
    found = run(spaced([called(50_000), called(8_000), called(8_500), called(14_000)]))
    assert why(found) == [(GROWTH,), (), (), (GROWTH,)]
    found = run(spaced([said(10), called(5_000), called(1_000), said(1_500), called(2_980), called(2_990)]))
    assert why(found) == [*[()] * 5, (GROWTH,)]


def test_a_context_of_which_nobody_said_how_much_was_left_grows_from_what_is_told_next() -> None:
    found = run(spaced([said(10), called(50_000), ContextCompacted(), called(56_000)]))
    assert why(found) == [(), (), (COMPACTION,), ()]


@pytest.mark.parametrize("after", [msgspec.UNSET, 10_000])
def test_after_compaction_growth_is_counted_from_the_shorter_context(after: int | msgspec.UnsetType) -> None:
    compacted = ContextCompacted(before=50_000, after=after)
    found = run(spaced([called(50_000), compacted, called(10_000), called(10_100), called(18_000)]))
    assert why(found) == [(GROWTH,), (COMPACTION,), (), (), (GROWTH,)]


def test_growth_counts_from_the_last_probe_whatever_brought_it() -> None:
    found = run(spaced([said(1_900), asked(), said(1_900)]))
    assert why(found) == [(), (MANUAL,), ()]


@pytest.mark.parametrize("tokens", [2**53, 2**63 - 1])
def test_absurd_numbers_of_tokens_leave_a_state_that_can_be_kept(tokens: int) -> None:
    schedule = Schedule()
    run(spaced([called(tokens), called(0), called(0)] * 1_000), schedule=schedule)
    assert schedule.grown < 2**63
    assert msgspec.json.decode(msgspec.json.encode(schedule), type=Schedule) == schedule


# The cooldown.


def test_what_is_wanted_within_the_cooldown_becomes_one_probe_at_the_next_event_after_it() -> None:
    given = [
        at(0, asked()),
        at(1, asked()),
        at(2, HandedOff(to="b")),
        at(29.9, said(1)),
        at(30, said(1)),
        at(99, said(1)),
    ]
    found = run(given)
    held = Held(triggers=(MANUAL,), hold=Hold.COOLDOWN, until=30.0)
    both = replace(held, triggers=(HANDOFF, MANUAL))
    due = Due(triggers=(HANDOFF, MANUAL), not_before=30.0, number=1)
    assert found == [Due(triggers=(MANUAL,), not_before=0.0, number=0), held, both, both, due, None]


def test_when_the_turn_ends_what_waits_is_set_for_the_end_of_the_cooldown() -> None:
    found = run([at(0, asked()), at(1, asked()), at(2, TurnEnded())])
    assert found[-1] == Due(triggers=(MANUAL,), not_before=30.0, number=1)


def test_turns_in_the_cooldown_do_not_queue_up_probes() -> None:
    given = [at(place / 10, event) for place, event in enumerate([asked(), TurnEnded()] * 100)]
    assert [due.not_before for due in dues(run(given))] == [0.0, 30.0]


def test_when_the_session_ends_nothing_waits_any_longer() -> None:
    given = [at(0, asked()), at(1, asked()), at(2, TurnEnded()), at(3, asked()), at(4, SessionEnded())]
    assert [due.not_before for due in dues(run(given))] == [0.0, 30.0, 60.0]


def test_a_request_that_brings_its_snapshot_was_scheduled_by_who_took_it() -> None:
    """axor's tap asks the scheduler that its pipeline asks again: 10 gates passed, no probe run."""
    snapshot = StateSnapshot(session_id="s", timestamp=0.0)
    brought = ProbeRequested(reason="external_content", snapshot=snapshot)
    found = run([at(second / 10, brought) for second in range(25)], SETTINGS)
    assert [due.not_before for due in dues(found)] == [second / 10 for second in range(20)]
    assert found[-1] == Held(triggers=(CONTENT,), hold=Hold.CAP)


def test_a_snapshot_that_is_brought_serves_what_waits_and_moves_no_probe_nearer() -> None:
    brought = ProbeRequested(reason="manual", snapshot=StateSnapshot(session_id="s", timestamp=0.0))
    given = [at(0, asked()), at(1, HandedOff(to="b")), at(2, TurnEnded()), at(3, HandedOff(to="b")), at(4, brought)]
    found = run([*given, at(5, asked())])
    assert found[-2] == Due(triggers=(HANDOFF, MANUAL), not_before=4.0, number=2)
    assert found[-1] == Held(triggers=(MANUAL,), hold=Hold.COOLDOWN, until=60.0)


def test_a_clock_that_is_set_back_does_not_blind() -> None:
    found = run([at(1e6, asked()), at(100, asked()), at(131, said(1))])
    assert isinstance(found[1], Held)
    assert isinstance(found[2], Due)


# Jitter.


@pytest.mark.parametrize(
    "event",
    [asked(), asked("reputation"), said(2_000), result(500), called(2_000), HandedOff(to="b"), ContextCompacted()],
)
def test_there_is_jitter_on_every_path(event: AnyEvent) -> None:
    moments: list[float] = []
    for secret in range(200):
        drawn = Schedule().take(at(50.0, event), SETTINGS, drawing(secret))
        assert isinstance(drawn, Due)
        moments.append(drawn.not_before)
    assert 50.0 <= min(moments) < 51.0
    assert 64.0 < max(moments) < 65.0
    assert len(set(moments)) == 200


def test_the_step_to_the_next_probe_is_drawn_and_never_shorter_than_the_law_says() -> None:
    steps: set[int] = set()
    for secret in range(50):
        schedule, taken = Schedule(), 0
        schedule.take(at(0, said(2_000)), PROMPT, drawing(secret))
        while schedule.spent == 1:
            taken += 10
            schedule.take(at(1_000, said(10)), PROMPT, draw)
        steps.add(taken)
    least = 2_000 * SETTINGS.stretch(GROWTH, 1)
    assert least <= min(steps) < 1.1 * least
    assert 1.4 * least < max(steps) <= 1.5 * least + 10


# The cap, and how it is spent.


@pytest.mark.parametrize(
    ("cap", "allowed"), [(1, (1, 1, 1)), (2, (1, 1, 2)), (3, (2, 2, 3)), (10, (7, 9, 10)), (20, (14, 18, 20))]
)
def test_some_probes_are_kept_for_who_asks(cap: int, allowed: tuple[int, ...]) -> None:
    limits = ScheduleSettings(max_probes_per_session=cap)
    assert tuple([limits.allowance(trigger) for trigger in (GROWTH, COMPACTION, MANUAL)]) == allowed


def test_a_flood_of_content_leaves_the_others_their_probes() -> None:
    flood = [result(10**6) for _ in range(200)]
    schedule = Schedule()
    assert len(dues(run(spaced(flood), schedule=schedule))) == 14
    assert len(dues(run(spaced([HandedOff(to="b")] * 50), schedule=schedule))) == 1  # more when more was taken in
    assert len(dues(run(spaced([asked()] * 50), schedule=schedule))) == 5


def test_a_request_over_the_cap_is_told_so_each_time() -> None:
    found = run(spaced([*[asked()] * 23, said(1)]))
    assert len(dues(found)) == 20
    assert found[20:] == [*[Held(triggers=(MANUAL,), hold=Hold.CAP)] * 3, None]


def test_compactions_are_probed_at_once_while_they_are_few_and_never_forgotten() -> None:
    found = run(spaced([ContextCompacted(), ContextCompacted(), said(400), said(400)]))
    assert [type(timing) for timing in found] == [Due, Held, Held, Due]
    assert found[1] == Held(triggers=(COMPACTION,), hold=Hold.SPACING)


def test_what_was_taken_in_between_compactions_counts_for_them_whatever_was_probed_meanwhile() -> None:
    found = run(spaced([ContextCompacted(), said(4_500), ContextCompacted(), ContextCompacted()]))
    assert why(found) == [(COMPACTION,), (GROWTH,), (COMPACTION,), ()]


def test_at_the_end_of_the_session_spacing_saves_nothing() -> None:
    found = run(spaced([ContextCompacted(), ContextCompacted(), SessionEnded()]))
    assert [type(timing) for timing in found] == [Due, Held, Due]


def test_a_dispatch_that_was_withdrawn_is_wanted_again_after_the_cooldown() -> None:
    schedule = Schedule()
    [due] = dues(run([at(0, said(2_000))], schedule=schedule))
    schedule.withdraw(due)
    assert schedule.spent == 0
    found = run([at(1, said(1)), at(30, said(1))], schedule=schedule)
    assert isinstance(found[0], Held)
    assert found[1] == Due(triggers=(GROWTH,), not_before=30.0, number=0)


@pytest.mark.parametrize("cap", [1, 2, 3, 5, 10, 20, 100])
@pytest.mark.parametrize("trigger", Trigger)
def test_spacing_grows_at_least_geometrically(cap: int, trigger: Trigger) -> None:
    limits = ScheduleSettings(max_probes_per_session=cap)
    allowance = limits.allowance(trigger)
    steps = [limits.stretch(trigger, spent) for spent in range(allowance)]
    assert steps[0] == 1.0
    assert all(step >= math.exp(4 * spent / allowance) - 1e-9 for spent, step in enumerate(steps))
    assert limits.stretch(trigger, allowance) == math.inf


@pytest.mark.parametrize(("tokens", "least"), [(10_000, 2), (100_000, 7), (1_000_000, 10), (10_000_000, 12)])
def test_a_long_session_is_never_blind(tokens: int, least: int) -> None:
    """However long a session grows, what it took in since its last probe is less than ten times all before."""
    step = 500
    places = [
        place * step
        for place, timing in enumerate(run(spaced([said(step)] * (tokens // step))), 1)
        if isinstance(timing, Due)
    ]
    assert len(places) >= least
    assert tokens - places[-1] < 10 * places[-1]


# What cannot be a setting.


@pytest.mark.parametrize("name", ["context_growth_tokens", "external_content_threshold", "max_probes_per_session"])
@pytest.mark.parametrize("value", [0, -1, True, None, "20", 2.0, math.nan, 2**60])
def test_a_count_is_a_whole_number_from_1(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} is a whole number from 1, not "):
        made(**{name: value})


@pytest.mark.parametrize("name", ["jitter_seconds", "cooldown_window_seconds"])
@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, True, None, "15"])
def test_a_time_is_a_number_of_seconds(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} is a number of seconds from 0, not "):
        made(**{name: value})


def test_settings_of_a_file_are_as_strict_and_know_no_interval() -> None:
    kept = msgspec.convert(tomllib.loads("max_probes_per_session = 5\njitter_seconds = 0"), ScheduleSettings)
    assert kept == ScheduleSettings(max_probes_per_session=5, jitter_seconds=0.0)
    for text in ("max_probes_per_session = true", "max_probes_per_session = 0", "max_interval_seconds = 600"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(tomllib.loads(text), ScheduleSettings)


# The laws, over generated sessions.


def _streams(kinds: st.SearchStrategy[AnyEvent]) -> st.SearchStrategy[list[AnyEvent]]:
    """Return events in the order of their times, close together and far apart."""
    steps = st.lists(st.tuples(st.sampled_from((0.0, 0.5, 7.0, 31.0, 400.0)), kinds), max_size=60)

    def placed(found: list[tuple[float, AnyEvent]]) -> list[AnyEvent]:
        time, placed = 0.0, list[AnyEvent]()
        for wait, event in found:
            time += wait
            placed.append(at(time, event))
        return placed

    return steps.map(placed)


_AMOUNTS = st.sampled_from((0, 1, 300, 700, 2_500, 30_000, 10**6))
_KINDS: st.SearchStrategy[AnyEvent] = st.one_of(
    _AMOUNTS.map(said),
    _AMOUNTS.map(result),
    _AMOUNTS.map(called),
    st.builds(ContextCompacted, after=st.one_of(st.just(msgspec.UNSET), _AMOUNTS)),
    st.just(HandedOff(to="b")),
    st.sampled_from([*Trigger, "any"]).map(asked),
    st.just(TurnEnded()),
)
_LIMITS = st.builds(
    ScheduleSettings,
    max_probes_per_session=st.integers(1, 25),
    jitter_seconds=st.sampled_from((0.0, 15.0)),
    cooldown_window_seconds=st.sampled_from((0.0, 30.0)),
)


@patient
@given(_streams(_KINDS), _LIMITS)
def test_the_cap_and_the_cooldown_hold(given_: list[AnyEvent], limits: ScheduleSettings) -> None:
    found = dues(run(given_, limits))
    assert [due.number for due in found] == list(range(len(found)))
    assert len(found) <= limits.max_probes_per_session
    moments = [due.not_before for due in found]
    assert all(later - earlier >= limits.cooldown_window_seconds - 1e-9 for earlier, later in pairwise(moments))


@patient
@given(_streams(_KINDS), _LIMITS)
def test_a_probe_comes_when_it_is_wanted_or_soon_after(given_: list[AnyEvent], limits: ScheduleSettings) -> None:
    schedule = Schedule()
    most = 2 * (limits.cooldown_window_seconds + limits.jitter_seconds)
    for event in given_:
        timing = schedule.take(event, limits, draw)
        if isinstance(timing, Due):
            assert event.at <= timing.not_before <= event.at + most


@patient
@given(_streams(_KINDS), _LIMITS)
def test_what_is_wanted_is_never_lost(given_: list[AnyEvent], limits: ScheduleSettings) -> None:
    schedule, waiting = Schedule(), set[Trigger]()
    ended = at(given_[-1].at if given_ else 0.0, SessionEnded())
    for event in [*given_, ended]:
        if isinstance(event, ProbeRequested):
            waiting.add(Trigger.of(event.reason))
        if isinstance(event, ContextCompacted):
            waiting.add(COMPACTION)
        if isinstance(event, HandedOff):
            waiting.add(HANDOFF)
        timing = schedule.take(event, limits, draw)
        if isinstance(timing, Due):
            assert waiting - TAKEN_IN <= set(timing.triggers)
            waiting.clear()
        elif isinstance(timing, Held) and timing.hold is Hold.COOLDOWN:
            assert timing.until is not None
            assert event.at < timing.until
        waiting = {trigger for trigger in waiting if schedule.spent < limits.allowance(trigger)}
        assert waiting <= set(schedule.pending)
    assert not waiting


@patient
@given(_streams(_KINDS), _LIMITS)
def test_what_is_taken_in_spends_no_probes_faster_than_the_law_says(
    given_: list[AnyEvent], limits: ScheduleSettings
) -> None:
    taken, spent = 0.0, 0
    schedule = Schedule()
    for event in given_:
        if isinstance(event, MessageObserved | ToolResultObserved):
            taken += len(str(event.text)) / 4
            timing = schedule.take(event, limits, draw)
            if isinstance(timing, Due):
                assert set(timing.triggers) <= TAKEN_IN
                spent += 1
                assert taken >= sum(limits.external_content_threshold * limits.stretch(GROWTH, k) for k in range(spent))
    assert spent <= limits.allowance(GROWTH)


@patient
@given(st.one_of(_streams(_KINDS), _streams(events())), _LIMITS, st.data())
def test_saved_and_restored_at_any_point_it_goes_on_alike(
    given_: list[AnyEvent], limits: ScheduleSettings, data: st.DataObject
) -> None:
    whole = run(given_, limits)
    cut = data.draw(st.integers(0, len(given_)))
    first = Schedule()
    said_first = run(given_[:cut], limits, first)
    second = msgspec.json.decode(msgspec.json.encode(first), type=Schedule)
    assert second == first
    assert said_first + run(given_[cut:], limits, second) == whole


@patient
@given(_streams(events()), _LIMITS)
def test_events_that_it_does_not_read_change_nothing(given_: list[AnyEvent], limits: ScheduleSettings) -> None:
    read = [event for event in given_ if type(event) in READS]
    assert dues(run(read, limits)) == dues(run(given_, limits))


def test_its_state_does_not_grow() -> None:
    schedule = Schedule()
    kinds: list[Callable[[], AnyEvent]] = [lambda: result(700), lambda: called(9_000), asked, ContextCompacted]
    run([at(place, kinds[place % 4]()) for place in range(4_000)], schedule=schedule)
    assert len(msgspec.json.encode(schedule)) < 400
