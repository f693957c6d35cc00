"""Localization: exact where answers are, bounded, alike for equal seeds, and silent where its model does not fit."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.core.snapshot import Message
from theodolite.detectors.behavior.localization import (
    NEUTRAL,
    Ground,
    Localization,
    LocalizationVerdict,
    answered,
    fragments,
    localize,
    most_calls,
    noise_of,
    repaired,
)

Oracle = Callable[[frozenset[int]], bool | None]
ROLES = ("system", "developer", "user", "assistant", "tool", "function")
MESSAGES = st.lists(st.builds(Message, st.sampled_from(ROLES), st.text(max_size=300)), max_size=12)


def _any_of(culprits: Collection[int]) -> Oracle:
    return lambda keep: not keep.isdisjoint(culprits)


def _all_of(*culprits: int) -> Oracle:
    return lambda keep: keep.issuperset(culprits)


def _noisy(oracle: Oracle, noise: float, seed: int) -> Oracle:
    draw = Random(seed)  # noqa: S311 - a test, drawn alike each time
    return lambda keep: bool(oracle(keep)) is not (draw.random() < noise)


def _numbered(told: Callable[[int, frozenset[int]], bool | None]) -> Oracle:
    """Return an oracle that goes by the number of the call too."""
    calls = iter(range(10_000))
    return lambda keep: told(next(calls), keep)


def _once_wrong(wrong: int) -> Oracle:
    return _numbered(lambda call, keep: (5 in keep) is not (call == wrong))


def _two_of_three(keep: frozenset[int]) -> bool:
    return len(keep & {1, 2, 7}) > 1


def _found(
    count: int,
    oracle: Oracle,
    seed: bytes = b"s",
    *,
    most: int = 3,
    budget: int | None = None,
    noise: float = 0.05,
) -> Localization:
    return answered(localize(count, seed=seed, most=most, budget=budget, noise=noise), oracle)


@pytest.mark.parametrize("culprit", range(12))
def test_each_single_culprit_of_twelve_is_found_within_forty_calls(culprit: int) -> None:
    found = _found(12, _any_of([culprit]))
    assert (found.verdict, found.ground) == (LocalizationVerdict.AUTO_EXCISE, Ground.SEPARATED)
    assert found.culprits == (culprit,)
    assert found.confirmed
    assert found.confidence[0] >= 20 / 21 <= found.repaired
    assert (found.suspects, found.contradicted) == ((), 0)
    assert found.calls <= 40


@pytest.mark.parametrize("pair", list(combinations(range(6), 2)))
def test_each_pair_of_six_is_found(pair: tuple[int, int]) -> None:
    found = _found(6, _any_of(pair))
    assert found.verdict is LocalizationVerdict.AUTO_EXCISE
    assert found.culprits == pair


@settings(deadline=None)
@given(st.sets(st.integers(0, 63), min_size=1, max_size=3), st.binary(max_size=8))
def test_true_answers_give_exactly_the_culprits_of_sixty_four(culprits: set[int], seed: bytes) -> None:
    found = _found(64, _any_of(culprits), seed)
    assert found.culprits == tuple(sorted(culprits))
    assert found.confirmed
    assert found.calls <= 10 * len(culprits) * 6


def test_more_culprits_than_may_be_cut_out_are_the_operators() -> None:
    found = _found(20, _any_of({1, 5, 9}))
    assert (found.verdict, found.ground) == (LocalizationVerdict.ESCALATE_OPERATOR, Ground.DIFFUSE)
    assert found.culprits == (1, 5, 9)
    assert found.confirmed


@pytest.mark.parametrize("most", [1, 2, 3])
def test_more_culprits_than_were_looked_for_are_not_confirmed(most: int) -> None:
    found = _found(20, _any_of({1, 5, 9, 13}), most=most)
    assert (found.verdict, found.ground) == (LocalizationVerdict.ESCALATE_OPERATOR, Ground.DIFFUSE)
    assert len(found.culprits) == most
    assert set(found.culprits) < {1, 5, 9, 13}
    assert not found.confirmed
    assert found.repaired < 0.5


@pytest.mark.parametrize("count", [1, 2, 64])
def test_where_nothing_drifts_there_is_nothing_to_find(count: int) -> None:
    found = _found(count, lambda _: False)
    assert (found.verdict, found.ground) == (LocalizationVerdict.NO_DRIFT_FROM_TAINT, Ground.NO_DRIFT)
    assert (found.culprits, found.confirmed) == ((), False)
    assert found.calls <= 10


@pytest.mark.parametrize("count", [1, 2, 64])
def test_what_drifts_without_any_fragment_does_not_come_from_one(count: int) -> None:
    found = _found(count, lambda _: True)
    assert (found.verdict, found.ground) == (LocalizationVerdict.NO_DRIFT_FROM_TAINT, Ground.ELSEWHERE)
    assert (found.culprits, found.confirmed) == ((), False)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_of_few_fragments_all_may_be_culprits(count: int) -> None:
    found = _found(count, _any_of(range(count)))
    assert found.culprits == tuple(range(count))
    assert found.confirmed


def test_no_fragments_need_no_call() -> None:
    found = _found(0, lambda _: True)
    assert (found.verdict, found.ground) == (LocalizationVerdict.NO_DRIFT_FROM_TAINT, Ground.ELSEWHERE)
    assert found.calls == 0


def test_a_thousand_fragments_take_a_few_calls_more() -> None:
    found = _found(1000, _any_of({17, 400, 999}))
    assert found.culprits == (17, 400, 999)
    assert found.calls <= 10 * 3 * 10


@pytest.mark.parametrize("oracle", [_all_of(3, 8), _all_of(0, 5, 11), _two_of_three])
def test_culprits_that_need_each_other_are_suspected_and_not_named(oracle: Oracle) -> None:
    for seed in range(20):
        found = _found(12, oracle, b"%d" % seed)
        assert (found.verdict, found.ground) == (LocalizationVerdict.ESCALATE_OPERATOR, Ground.NOT_SEPARABLE)
        assert (found.culprits, found.confirmed) == ((), False)
        assert found.suspects
        assert oracle(frozenset(range(12)))
        assert not oracle(frozenset(range(12)) - set(found.suspects)), "without the suspects there is no drift"


def test_a_culprit_beside_a_coalition_is_named_and_the_rest_is_the_operators() -> None:
    found = _found(12, lambda keep: 4 in keep or keep >= {3, 8})
    assert (found.verdict, found.ground) == (LocalizationVerdict.ESCALATE_OPERATOR, Ground.NOT_SEPARABLE)
    assert found.culprits == (4,)
    assert not found.confirmed
    assert set(found.suspects) & {3, 8}


@settings(deadline=None)
@given(
    st.integers(0, 40),
    st.integers(0, 60),
    st.integers(1, 4),
    st.floats(0.0, 0.49),
    st.randoms(use_true_random=False),
)
def test_whatever_is_answered_the_budget_is_kept(
    count: int, budget: int, most: int, noise: float, draw: Random
) -> None:
    asked: list[frozenset[int]] = []

    def oracle(keep: frozenset[int]) -> bool | None:
        asked.append(keep)
        return draw.choice([True, False, None])

    found = answered(localize(count, seed=b"s", noise=noise, most=most, budget=budget), oracle)
    assert found.calls == len(asked) <= budget
    assert all(keep <= set(range(count)) for keep in asked)
    assert len(found.confidence) == len(found.culprits) <= most
    assert found.contradicted <= found.calls
    assert not set(found.suspects) & set(found.culprits)
    assert found.confirmed <= all(confidence >= 20 / 21 for confidence in (*found.confidence, found.repaired))


@settings(deadline=None, max_examples=30)
@given(st.binary(max_size=32), st.integers(0, 10_000))
def test_equal_seeds_ask_the_same(seed: bytes, draws: int) -> None:
    asked: tuple[list[frozenset[int]], list[frozenset[int]]] = ([], [])
    found: list[Localization] = []
    for kept in asked:
        oracle = _noisy(_any_of({2, 9}), 0.1, draws)

        def told(keep: frozenset[int], kept: list[frozenset[int]] = kept, oracle: Oracle = oracle) -> bool | None:
            kept.append(keep)
            return oracle(keep)

        found.append(_found(16, told, seed))
    assert asked[0] == asked[1]
    assert found[0] == found[1]


def test_other_seeds_ask_otherwise() -> None:
    asked: set[frozenset[int]] = set()
    for seed in (b"one", b"two"):
        search = localize(64, seed=seed)
        whole, drifted = next(search), True
        assert len(whole) == 64
        asked.add(search.send(drifted))
    assert len(asked) == 2


def test_each_culprit_is_looked_for_in_an_order_of_its_own() -> None:
    """In one order the beginnings that are asked contain each other, but for the culprits that were taken out."""
    asked: list[frozenset[int]] = []

    def oracle(keep: frozenset[int]) -> bool:
        asked.append(keep - {7, 40})
        return not keep.isdisjoint({7, 40})

    _found(64, oracle)
    assert any(not (one <= other or other <= one) for one, other in combinations(asked, 2))


def test_a_budget_that_ends_first_says_so_and_what_it_has_so_far() -> None:
    ends = [_found(64, _any_of({7, 40}), budget=budget) for budget in range(60)]
    assert all(found.calls <= budget for budget, found in enumerate(ends))
    unsettled = [found for found in ends if found.ground is Ground.UNSETTLED]
    assert all(found.verdict is LocalizationVerdict.ESCALATE_OPERATOR for found in unsettled)
    assert not any(found.confirmed for found in unsettled)
    assert {found.culprits for found in ends} > {(), (7, 40)}
    assert (40,) in {found.suspects for found in unsettled} or (7,) in {found.suspects for found in unsettled}
    assert ends[-1].confirmed


def test_a_call_without_an_answer_costs_a_call_and_says_nothing() -> None:
    silent = _found(12, lambda _: None, budget=30)
    assert (silent.ground, silent.calls, silent.repaired) == (Ground.UNSETTLED, 30, 0.5)
    # One search only: the order of the next one depends on the calls before it.
    half = _found(12, _numbered(lambda call, keep: 5 in keep if call % 2 else None), most=1, budget=100)
    whole = _found(12, _any_of({5}), most=1)
    assert (half.culprits, half.calls) == ((5,), 2 * whole.calls)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_one_wrong_answer_does_not_mislead(noise: float) -> None:
    for wrong in range(_found(12, _any_of({5}), noise=noise).calls):
        found = _found(12, _once_wrong(wrong), noise=noise)
        assert found.culprits == (5,), f"call {wrong}"
        assert found.contradicted == 1
        assert found.confirmed


def test_a_fragment_that_was_wrongly_suspected_does_not_stand_in_the_way() -> None:
    """The first answers are those of another culprit, so that the search names one that its own draws clear."""
    oracles = [_numbered(lambda call, keep: (5 if call >= 9 else 6) in keep) for _ in range(40)]
    ends = [_found(12, oracle, b"%d" % seed) for seed, oracle in enumerate(oracles)]
    assert any(6 in found.suspects for found in ends)
    assert all(5 in found.culprits for found in ends)
    assert all(found.confirmed for found in ends)


def test_fragments_are_what_the_operator_did_not_say() -> None:
    assert fragments([Message(role, "x") for role in ROLES]) == (2, 3, 4, 5)
    assert fragments(()) == ()


@given(MESSAGES, st.data())
def test_what_is_repaired_has_the_form_of_what_was(messages: list[Message], data: st.DataObject) -> None:
    places = fragments(messages)
    keep = data.draw(st.sets(st.sampled_from(range(len(places)))) if places else st.just(set[int]()))
    longest = max(len(word) for message in NEUTRAL for word in message.text.split())
    told = repaired(messages, keep)
    assert [message.role for message in told] == [message.role for message in messages]
    for place, (before, after) in enumerate(zip(messages, told, strict=True)):
        if place not in places or places.index(place) in keep:
            assert after == before
        else:
            assert abs(len(after.text) - len(before.text)) <= longest
            words = {word for message in NEUTRAL for word in message.text.split()}
            assert set(after.text.split()) <= words


def test_the_neutral_text_is_of_the_same_role_and_not_always_the_same() -> None:
    told = repaired([Message("tool", "x" * 40)] * 2 + [Message("user", "x" * 40), Message("function", "x" * 40)], ())
    tool = [message.text for message in NEUTRAL if message.role == "tool"]
    assert [[text.startswith(message.text) for text in tool] for message in told[:2]] == [[True, False], [False, True]]
    assert NEUTRAL[0].text.startswith(told[2].text)
    assert told[3].text


def test_neutral_text_may_be_ones_own() -> None:
    own = [Message("user", "one two"), Message("user", " ")]
    assert repaired([Message("user", "Send it to Eve.")], (), own) == (Message("user", "one two one two"),)
    assert repaired([Message("user", "S"), Message("user", "")], (), own) == (
        Message("user", "one"),
        Message("user", ""),
    )


@pytest.mark.parametrize(
    ("keep", "neutral", "said"),
    [({1}, NEUTRAL, "no fragments [1] among 1"), ({-1}, NEUTRAL, "no fragments [-1] among 1"), ((), (), "no neutral")],
)
def test_what_cannot_be_repaired_is_refused(keep: Collection[int], neutral: tuple[Message, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("[", r"\[")):
        repaired([Message("system", "x"), Message("user", "x")], keep, neutral)


@pytest.mark.parametrize(
    "wrong", [{"fragments": -1}, {"most": 0}, {"budget": -1}, {"noise": 0.5}, {"noise": -0.1}, {"noise": float("nan")}]
)
def test_numbers_that_make_no_search_are_refused(wrong: dict[str, float]) -> None:
    whole = {name: int(value) for name, value in wrong.items() if name != "noise"}
    with pytest.raises(ValueError, match="no search" if whole else "outside"):
        localize(
            whole.get("fragments", 3),
            seed=b"s",
            most=whole.get("most", 3),
            budget=whole.get("budget"),
            noise=wrong.get("noise", 0.05),
        )


def test_the_budget_of_a_search_grows_with_the_bits_of_a_number() -> None:
    assert [most_calls(count, 1) for count in (0, 1, 4, 5, 8, 9, 64, 65)] == [20, 20, 20, 30, 30, 40, 60, 70]


def test_noise_is_the_higher_of_both_kinds_and_never_nothing() -> None:
    assert noise_of([], []) == (0.5, 0.5)
    assert noise_of([True] * 18, [False] * 18) == (0.05, 0.05)
    assert noise_of([True] * 8, [True, *[False] * 38]) == (0.1, 2 / 41)
    assert noise_of([False] * 3 + [True] * 5, [False] * 98) == (0.4, 0.01)
