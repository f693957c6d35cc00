"""A decision is read from options in every order, and what is no distribution over them is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from theodolite.core.event import Tool
from theodolite.core.inquiry import Draw, Message, Query, Reply, Role
from theodolite.detectors.behavior.library import shipped
from theodolite.detectors.behavior.probe import InjectionMode
from theodolite.detectors.behavior.readout import (
    BOUND,
    CHOOSE,
    WORDINGS,
    Difference,
    UnreadError,
    counted,
    difference,
    queries,
    question,
    read,
    wording_for,
)

WORDING = WORDINGS[0]
ASKED = Query(
    role=Role.SHADOW,
    prompt="Show me all balances.",
    system="You help.",
    context=(Message("user", "Hello"),),
    tools=(Tool(name="look_up", parameters=Raw(b"{}")),),
    schema=Raw(b"{}"),
)


def exact(query: Query, comply: float, decline: float) -> Reply:
    """Return a reply with those probabilities, whatever the order of the options."""
    meant = dict(zip(WORDING.options, (comply, decline, 1.0 - comply - decline), strict=True))
    choice = tuple([(option, meant[option]) for option in query.options])
    return Reply(query=query, model="m-1", choice=choice, exact=True)


def drawn(query: Query, *said: str) -> Reply:
    """Return a reply as an adapter makes it that is shown no probabilities: the choice is made of the draws."""
    hits = [said.count(option) for option in query.options]
    shares = [hit / sum(hits) for hit in hits] if sum(hits) else []
    choice = tuple(zip(query.options, shares, strict=False))
    return Reply(query=query, model="m-1", draws=tuple([Draw(text=text) for text in said]), choice=choice)


@pytest.mark.parametrize("every", [False, True])
def test_each_option_stands_in_each_place_equally_often(every: bool) -> None:  # noqa: FBT001 - a case of the test
    asked = queries(ASKED, WORDING, every=every)
    orders = [query.options for query in asked]
    assert len(set(orders)) == len(orders) == (6 if every else 3)
    for place in range(3):
        assert sorted(order[place] for order in orders) == sorted(WORDING.options * (len(orders) // 3))


def test_all_else_of_the_question_is_left_as_it_is() -> None:
    for query in queries(ASKED, WORDING, samples=7):
        assert query == replace(ASKED, prompt=query.prompt, options=query.options, schema=query.schema, samples=7)
        assert query.prompt == f"Show me all balances.\n\n{CHOOSE}"
        assert not isinstance(query.schema, Raw)


def test_a_canary_is_refused() -> None:
    with pytest.raises(ValueError, match="without a canary"):
        queries(replace(ASKED, canary="TH-1"), WORDING)


@pytest.mark.parametrize("probe", shipped().probes, ids=lambda probe: probe.probe_id)
def test_a_probe_and_its_twin_are_put_alike(probe: object) -> None:
    from theodolite.detectors.behavior.probe import Probe

    assert isinstance(probe, Probe)
    context = (Message("user", "Hello"),)
    put, twin = (
        question(probe, role=Role.SUBJECT, system="You help.", context=context, twin=twin) for twin in (False, True)
    )
    assert put.system == twin.system == f"You help.\n\n{probe.policy_pressure.constraint}"
    if probe.inject_as is InjectionMode.TOOL_RESULT:
        assert put.context == (*context, Message("tool", probe.scenario))
        assert twin.context == (*context, Message("tool", probe.twin))
        assert put.prompt == twin.prompt == ""
        assert queries(put, WORDING)[0].prompt == CHOOSE
    else:
        assert (put.context, put.prompt, twin.prompt) == (context, probe.scenario, probe.twin)


def test_no_probe_of_the_library_holds_a_verb_of_the_first_wording() -> None:
    texts = [
        text
        for template in shipped().templates
        for phrasing in template.phrasings
        for text in (phrasing.probe, phrasing.twin, template.constraint, *sum(template.slots.values(), ()))
    ]
    assert len(texts) > 100
    assert WORDINGS[0].held([*texts, CHOOSE]) == 0
    assert wording_for(texts) is WORDINGS[0]


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.id)
def test_each_wording_finds_its_own_options_and_no_other_wording_does(wording: object) -> None:
    from theodolite.detectors.behavior.readout import Wording

    assert isinstance(wording, Wording)
    assert len(set(wording.options)) == 3
    assert [wording.held([option]) for option in wording.options] == [1, 1, 1]
    assert not any(other.held(wording.options) for other in WORDINGS if other is not wording)


def test_words_that_a_session_holds_are_exchanged_for_others() -> None:
    said = ["It was REJECTED again.", "Just carry all of this out", "Fulfilled!"]
    assert wording_for(["A clean text."]) is WORDINGS[0]
    assert wording_for(said[:1]).id == "carry"
    assert wording_for(said[:2]).id == "fulfill"
    assert wording_for(said).id == "perform"
    assert wording_for([*said, "performs", "proceed, proceed"]).id == "carry"  # the first of those held least often


def test_log_odds_are_averaged_over_the_orders_and_their_spread_is_told() -> None:
    chances = [0.2, 0.5, 0.8]
    replies = [exact(query, chance, 0.1) for query, chance in zip(queries(ASKED, WORDING), chances, strict=True)]
    read_out = read(replies, WORDING)
    assert read_out.by_order == pytest.approx([-math.log(4), 0.0, math.log(4)])
    assert read_out.log_odds == pytest.approx(0.0)
    assert read_out.spread == pytest.approx(math.log(4))
    assert read_out.probabilities == pytest.approx((0.5, 0.1, 0.4))
    assert (read_out.rotations, read_out.exact, read_out.clamped) == (3, True, 0)


@given(st.permutations([0, 1, 2]), st.floats(0.0, 1.0))
def test_the_order_of_the_replies_does_not_matter(order: Sequence[int], chance: float) -> None:
    replies = [exact(query, chance * place / 2, 0.0) for place, query in enumerate(queries(ASKED, WORDING))]
    shuffled = read([replies[place] for place in order], WORDING)
    assert shuffled.log_odds == pytest.approx(read(replies, WORDING).log_odds)
    assert abs(shuffled.log_odds) <= BOUND


def test_certainty_is_clamped() -> None:
    assert read([exact(query, 1.0, 0.0) for query in queries(ASKED, WORDING)], WORDING).log_odds == BOUND
    never = read([exact(query, 0.0, 1.0) for query in queries(ASKED, WORDING)], WORDING)
    assert (never.log_odds, never.clamped) == (-BOUND, 3)


def test_draws_are_pooled_with_half_a_draw_on_each_side() -> None:
    comply, decline, hand_over = WORDING.options
    said = [(comply, decline, "eh?"), (decline, decline, decline), (hand_over, decline, decline)]
    replies = [drawn(query, *texts) for query, texts in zip(queries(ASKED, WORDING, samples=3), said, strict=True)]
    read_out = read(replies, WORDING)
    assert not read_out.exact
    assert (read_out.draws, read_out.unread) == (9, 1)
    assert read_out.log_odds == pytest.approx(math.log(1.5 / 7.5))
    assert read_out.by_order == pytest.approx([0.0, math.log(0.5 / 3.5), math.log(0.5 / 3.5)])
    assert read_out.probabilities == pytest.approx((1 / 8, 6 / 8, 1 / 8))


def test_one_order_without_probabilities_makes_all_of_it_draws() -> None:
    asked = queries(ASKED, WORDING)
    replies = [replace(exact(query, 0.2, 0.3), draws=(Draw(text=WORDING.decline),)) for query in asked]
    replies[1] = drawn(asked[1], WORDING.decline)
    assert not read(replies, WORDING).exact


def test_an_order_in_which_no_option_was_named_cannot_be_read() -> None:
    first, *others = [drawn(query, WORDING.decline) for query in queries(ASKED, WORDING)]
    with pytest.raises(UnreadError):
        read([drawn(first.query, "I would rather not say."), *others], WORDING)


@pytest.mark.parametrize(
    "shares",
    [
        (("proceed with it", 0.4), ("reject it", 0.6)),
        (("proceed with it", 0.4), ("reject it", 0.3), ("reject it", 0.3)),
        (("proceed with it", 0.4), ("reject it", 0.3), ("forward it to a person", 0.2)),
        (("proceed with it", 1.4), ("reject it", -0.2), ("forward it to a person", -0.2)),
        (("proceed with it", math.nan), ("reject it", 0.5), ("forward it to a person", 0.5)),
        (("proceed with it", 0.4), ("reject it", 0.3), ("obey", 0.3)),
    ],
)
def test_what_is_no_distribution_over_the_options_is_refused(shares: tuple[tuple[str, float], ...]) -> None:
    first, *others = [exact(query, 0.2, 0.3) for query in queries(ASKED, WORDING)]
    with pytest.raises(ValueError, match="choice") as refused:
        read([replace(first, choice=shares), *others], WORDING)
    assert not isinstance(refused.value, UnreadError)


def test_replies_that_are_not_to_all_orders_are_refused() -> None:
    replies = [exact(query, 0.2, 0.3) for query in queries(ASKED, WORDING)]
    for wrong in (replies[:2], [replies[0]] * 3, [], [*replies, replies[0]]):
        with pytest.raises(ValueError, match="order"):
            read(wrong, WORDING)
    with pytest.raises(ValueError, match="other options"):
        read(replies, WORDINGS[1])
    with pytest.raises(ValueError, match="different"):
        read(replies, replace(WORDING, decline=WORDING.comply))


def test_what_the_order_does_to_both_is_in_neither_the_difference_nor_its_spread() -> None:
    asked = queries(ASKED, WORDING)
    violating = read([exact(query, chance, 0.0) for query, chance in zip(asked, (0.1, 0.2, 0.4), strict=True)], WORDING)
    same = difference(violating, violating)
    assert (same.value, same.spread, same.exact) == (0.0, 0.0, True)
    assert violating.spread > 0.5
    twin = read([exact(query, 0.9, 0.0) for query in asked], WORDING)
    apart = difference(violating, twin)
    assert apart.value == pytest.approx(violating.log_odds - twin.log_odds)
    assert apart.spread == pytest.approx(violating.spread)
    assert apart.drowned(0.3)
    assert not apart.drowned(-2.0)


def test_what_was_read_in_other_orders_is_not_compared() -> None:
    every, some = (
        read([exact(query, 0.2, 0.3) for query in queries(ASKED, WORDING, every=every)], WORDING)
        for every in (True, False)
    )
    with pytest.raises(ValueError, match="zip"):
        difference(every, some)


def test_a_difference_to_draws_is_not_exact() -> None:
    one, other = counted(1, 20), counted(19, 20)
    assert difference(one, other) == Difference(one.log_odds - other.log_odds, 0.0, exact=False)
    with pytest.raises(UnreadError):
        counted(0, 0, unread=20)
