"""The policy, cell by cell: what is written in these tables is what the operator's page promises."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.intent import Effect
from theodolite.core.policy import (
    STARTING_MODES,
    Action,
    Decision,
    Mode,
    Outcome,
    Policy,
    highest,
    outcome,
)
from theodolite.core.reading import Cause, Failure, Level, Reading, Signal, Status

# What a signal asks for: - log_only, E elevated_review, R restricted_mode.
# And what it does to the call that it is about: . runs, x refused in any case, h refused where the operator holds.
CELLS = """
mode     acts  level    EXACT  CALIBRATED  REFERENCE  UNCALIBRATED  STALE
enforce  yes   strong   E x    R h         E h        E h           E h
enforce  yes   notable  E x    E h         E h        E h           E h
enforce  yes   clear    - .    - .         - .        - .           - .
enforce  no    strong   - .    - .         - .        - .           - .
enforce  no    notable  - .    - .         - .        - .           - .
enforce  no    clear    - .    - .         - .        - .           - .
warn     yes   strong   E h    R h         E h        E h           E h
warn     yes   notable  E h    E h         E h        E h           E h
warn     yes   clear    - .    - .         - .        - .           - .
warn     no    strong   - .    - .         - .        - .           - .
warn     no    notable  - .    - .         - .        - .           - .
warn     no    clear    - .    - .         - .        - .           - .
observe  yes   strong   - .    - .         - .        - .           - .
observe  yes   notable  - .    - .         - .        - .           - .
observe  yes   clear    - .    - .         - .        - .           - .
observe  no    strong   - .    - .         - .        - .           - .
observe  no    notable  - .    - .         - .        - .           - .
observe  no    clear    - .    - .         - .        - .           - .
"""

# Whether a call runs in a session that a detector of that mode has restricted.
RESTRICTED = """
restricting  read  write  unknown
nobody       .     .      .
enforce      .     x      x
warn         .     .      .
observe      .     .      .
"""

# Whether a failure about a call refuses it: x only where the operator fails closed.
FAILURES = """
mode     error  timeout  malformed  no_evidence  abandoned
enforce  x      x        x          .            x
warn     .      .        .          .            .
observe  .      .        .          .            .
"""

ACTIONS = {"-": Action.LOG_ONLY, "E": Action.ELEVATED_REVIEW, "R": Action.RESTRICTED_MODE}
RESTRICTING = "restricting"


def signal(level: Level, status: Status, *, acts: bool = True, finds: bool = True, detector: str = "d") -> Signal:
    said = Reading(detector=detector, version="1", code=f"{detector}.x", score=0.5)
    return Signal(said=said, level=level, status=status, acts=acts, finds=finds)


def failure(cause: Cause, detector: str = "d") -> Signal:
    return Signal(said=Failure(detector=detector, version="1", cause=cause))


def decide(policy: Policy, *signals: Signal, call: Effect | None = None, restricted: tuple[str, ...] = ()) -> Decision:
    return policy.decide(session="s", seq=4, about=4, signals=signals, call=call, restricted=restricted)


def cells() -> dict[tuple[Mode, bool, Level, Status], tuple[str, str]]:
    head, *rows = [line.split() for line in CELLS.strip().splitlines()]
    table: dict[tuple[Mode, bool, Level, Status], tuple[str, str]] = {}
    for mode, acts, level, *found in rows:
        for place, status in enumerate(head[3:]):
            key = (Mode(mode), acts == "yes", Level(level), Status(status))
            table[key] = (found[2 * place], found[2 * place + 1])
    return table


def test_the_table_has_every_cell() -> None:
    assert cells().keys() == set(product(Mode, (True, False), Level, Status))


@pytest.mark.parametrize(("cell", "expected"), cells().items())
def test_action_and_refusal_of_one_signal(cell: tuple[Mode, bool, Level, Status], expected: tuple[str, str]) -> None:
    mode, acts, level, status = cell
    action, refusal = expected
    said = signal(level, status, acts=acts)
    for hold, fail_closed in product((False, True), repeat=2):
        policy = Policy(modes={"d": mode}, hold=hold, fail_closed=fail_closed)
        refused = refusal == "x" or (refusal == "h" and hold)
        assert policy.action(said) is ACTIONS[action]
        assert policy.refuses(said) is refused
        for effect in Effect:
            decision = decide(policy, said, call=effect)
            assert (decision.action, decision.allowed) == (ACTIONS[action], not refused)
        without_a_call = decide(policy, said)
        assert (without_a_call.action, without_a_call.allowed) == (ACTIONS[action], True)


@pytest.mark.parametrize("row", RESTRICTED.strip().splitlines()[1:])
def test_a_restriction_refuses_what_is_not_known_to_read_and_only_in_enforce(row: str) -> None:
    who, *found = row.split()
    modes = {} if who == "nobody" else {RESTRICTING: Mode(who)}
    restricted = (RESTRICTING,) if modes else ()
    for (cell, (action, refusal)), hold, fail_closed in product(cells().items(), (False, True), (False, True)):
        mode, acts, level, status = cell
        policy = Policy(modes={"d": mode, **modes}, hold=hold, fail_closed=fail_closed)
        said = signal(level, status, acts=acts)
        expected = Action.RESTRICTED_MODE if modes else ACTIONS[action]
        for effect, mark in zip((Effect.READ, Effect.WRITE, Effect.UNKNOWN), found, strict=True):
            refused = mark == "x" or refusal == "x" or (refusal == "h" and hold)
            decision = decide(policy, said, call=effect, restricted=restricted)
            assert (decision.allowed, decision.action) == (not refused, expected)
            quiet = decide(policy, call=effect, restricted=restricted)
            assert (quiet.allowed, quiet.action) == (mark != "x", highest([expected] if modes else []))
        without_a_call = decide(policy, said, restricted=restricted)
        assert (without_a_call.allowed, without_a_call.action) == (True, expected)


@pytest.mark.parametrize("row", FAILURES.strip().splitlines()[1:])
def test_a_failure_asks_for_nothing_and_refuses_only_where_the_operator_fails_closed(row: str) -> None:
    mode, *found = row.split()
    for (cause, mark), hold, fail_closed, effect in product(
        zip(Cause, found, strict=True), (False, True), (False, True), Effect
    ):
        policy = Policy(modes={"d": Mode(mode)}, hold=hold, fail_closed=fail_closed)
        assert policy.action(failure(cause)) is Action.LOG_ONLY
        decision = decide(policy, failure(cause), call=effect)
        assert (decision.action, decision.allowed) == (Action.LOG_ONLY, not (fail_closed and mark == "x"))
        assert decide(policy, failure(cause)).allowed


any_signal = st.builds(
    Signal,
    said=st.one_of(
        st.builds(
            Reading,
            detector=st.sampled_from(["a", "payload"]),
            version=st.just("1"),
            code=st.just("a.x"),
            score=st.floats(0, 1),
            surrogate=st.booleans(),
        ),
        st.builds(
            Failure, detector=st.sampled_from(["a", "payload"]), version=st.just("1"), cause=st.sampled_from(Cause)
        ),
    ),
    level=st.sampled_from(Level),
    status=st.sampled_from(Status),
    ambiguous=st.booleans(),
    acts=st.booleans(),
    finds=st.booleans(),
)
any_policy = st.builds(
    Policy,
    modes=st.dictionaries(st.sampled_from(["a", "payload"]), st.sampled_from(Mode)),
    default=st.sampled_from(Mode),
    hold=st.booleans(),
    fail_closed=st.booleans(),
)


@given(any_policy, any_signal)
def test_only_what_is_strong_and_calibrated_restricts(policy: Policy, said: Signal) -> None:
    if policy.action(said) is Action.RESTRICTED_MODE:
        assert (said.level, said.status, said.acts) == (Level.STRONG, Status.CALIBRATED, True)


@given(any_policy, st.lists(any_signal, max_size=5), st.sampled_from([None, *Effect]))
def test_a_decision_is_no_milder_than_any_of_its_signals(
    policy: Policy, signals: list[Signal], call: Effect | None
) -> None:
    decision = decide(policy, *signals, call=call)
    assert decision.action is highest(map(policy.action, signals))
    assert decision.allowed is not (call is not None and any(map(policy.refuses, signals)))
    assert decision.signals == tuple(signals)


@given(any_signal, st.booleans(), st.booleans(), st.sampled_from([None, *Effect]))
def test_observe_never_acts(said: Signal, hold: bool, fail_closed: bool, call: Effect | None) -> None:  # noqa: FBT001
    policy = Policy(modes={"payload": Mode.OBSERVE}, default=Mode.OBSERVE, hold=hold, fail_closed=fail_closed)
    decision = decide(policy, said, call=call)
    assert (decision.action, decision.allowed) == (Action.LOG_ONLY, True)


def test_payload_contracts_start_in_enforce_and_everything_else_in_the_default() -> None:
    assert dict(STARTING_MODES) == {"payload": Mode.ENFORCE}
    policy = Policy(default=Mode.OBSERVE)
    assert (policy.mode("payload"), policy.mode("margin")) == (Mode.ENFORCE, Mode.OBSERVE)
    assert Policy(modes={"payload": Mode.WARN}).mode("payload") is Mode.WARN
    assert Policy().mode("margin") is Mode.WARN


def test_a_verifier_speaks_in_the_mode_of_the_detector_whose_code_it_settles() -> None:
    said = Reading(detector="judge", version="1", code="d.x", score=1.0)
    settled = Signal(said=said, level=Level.STRONG, status=Status.EXACT, acts=True)
    observed = Policy(modes={"d": Mode.OBSERVE, "judge": Mode.ENFORCE})
    assert decide(observed, settled, call=Effect.WRITE) == Decision(session="s", seq=4, about=4, signals=(settled,))
    enforced = decide(Policy(modes={"d": Mode.ENFORCE, "judge": Mode.OBSERVE}), settled, call=Effect.WRITE)
    assert (enforced.allowed, enforced.action, enforced.mode) == (False, Action.ELEVATED_REVIEW, Mode.ENFORCE)


def test_a_mode_given_as_a_word_is_that_mode_and_no_word_is_a_mode_of_its_own() -> None:
    policy = Policy(modes={"d": "observe"}, default="enforce")  # type: ignore[dict-item, arg-type] # pyright: ignore[reportArgumentType] - as untyped callers do
    assert policy.mode("d") is Mode.OBSERVE
    assert policy.mode("other") is Mode.ENFORCE
    with pytest.raises(ValueError, match="'blcok' is not a valid Mode"):
        Policy(modes={"d": "blcok"})  # type: ignore[dict-item] # pyright: ignore[reportArgumentType] - as above


def test_a_policy_does_not_change_with_the_mapping_that_it_was_made_from() -> None:
    modes = {"d": Mode.ENFORCE}
    policy = Policy(modes=modes)
    modes["d"] = Mode.OBSERVE
    assert policy.mode("d") is Mode.ENFORCE


@pytest.mark.parametrize(
    ("alarmed", "expected"),
    [
        ((), Mode.OBSERVE),
        (("quiet",), Mode.OBSERVE),
        (("watched",), Mode.OBSERVE),
        (("watched", "warned"), Mode.WARN),
        (("warned", "enforced", "watched"), Mode.ENFORCE),
    ],
)
def test_the_mode_of_a_decision_is_the_furthest_of_those_that_alarmed(alarmed: tuple[str, ...], expected: Mode) -> None:
    policy = Policy(
        modes={"watched": Mode.OBSERVE, "warned": Mode.WARN, "enforced": Mode.ENFORCE, "quiet": Mode.ENFORCE}
    )
    said = [
        signal(Level.CLEAR if name == "quiet" else Level.NOTABLE, Status.REFERENCE, detector=name) for name in alarmed
    ]
    assert decide(policy, *said).mode is expected


def test_a_decision_says_where_it_belongs_and_how_much_is_open() -> None:
    decision = Policy().decide(session="s-1", seq=9, about=3, open_inquiries=2)
    assert (decision.session, decision.seq, decision.about, decision.open) == ("s-1", 9, 3, 2)


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ((), Action.LOG_ONLY),
        ((Action.LOG_ONLY,), Action.LOG_ONLY),
        ((Action.ELEVATED_REVIEW, Action.LOG_ONLY), Action.ELEVATED_REVIEW),
        ((Action.ELEVATED_REVIEW, Action.RESTRICTED_MODE, Action.LOG_ONLY), Action.RESTRICTED_MODE),
    ],
)
def test_the_highest_of_some_actions(actions: tuple[Action, ...], expected: Action) -> None:
    assert highest(actions) is expected


def decision(*signals: Signal, action: Action = Action.LOG_ONLY) -> Decision:
    return Decision(session="s", seq=0, about=0, action=action, signals=signals)


FOUND = decision(signal(Level.NOTABLE, Status.REFERENCE, acts=False))
NOT_COUNTED = decision(signal(Level.STRONG, Status.UNCALIBRATED, acts=False, finds=False))
CLEAR = decision(signal(Level.CLEAR, Status.REFERENCE))
ACTED = decision(action=Action.ELEVATED_REVIEW)
BROKEN = decision(failure(Cause.TIMEOUT))
UNSEEN = decision(failure(Cause.NO_EVIDENCE))


@pytest.mark.parametrize(
    ("decisions", "unreadable", "blind", "expected"),
    [
        ((), 0, (), Outcome.CLEAN),
        ((CLEAR, NOT_COUNTED), 0, (), Outcome.CLEAN),
        ((UNSEEN,), 0, (), Outcome.CLEAN),
        ((UNSEEN, CLEAR), 0, ("margin",), Outcome.NOT_ENOUGH_EVIDENCE),
        ((BROKEN,), 0, (), Outcome.FAILED),
        ((), 1, (), Outcome.FAILED),
        ((BROKEN, CLEAR), 2, ("margin",), Outcome.FAILED),
        ((FOUND,), 0, (), Outcome.FINDING),
        ((ACTED,), 0, (), Outcome.FINDING),
        ((BROKEN, UNSEEN, FOUND), 3, ("margin",), Outcome.FINDING),
        ((FOUND, BROKEN), 3, ("margin",), Outcome.FINDING),
    ],
)
def test_the_outcome_is_a_finding_before_a_failure_before_too_little_evidence(
    decisions: tuple[Decision, ...], unreadable: int, blind: tuple[str, ...], expected: Outcome
) -> None:
    assert outcome(decisions, unreadable=unreadable, blind=blind) is expected


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause is not Cause.NO_EVIDENCE])
def test_each_failure_but_missing_evidence_fails_a_session(cause: Cause) -> None:
    assert outcome([decision(failure(cause))]) is Outcome.FAILED


def test_the_words_of_actions_modes_and_outcomes_are_lower_case() -> None:
    assert [*Action] == ["log_only", "elevated_review", "restricted_mode"]
    assert [*Mode] == ["enforce", "warn", "observe"]
    assert [*Outcome] == ["finding", "failed", "not_enough_evidence", "clean"]
