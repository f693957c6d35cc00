from __future__ import annotations

import pytest

from theodolite.features.intents.deeds import Deed, asked, deeds_of, orders

NOTHING: frozenset[Deed] = frozenset()


@pytest.mark.parametrize(
    ("text", "deeds"),
    [
        ("reply to the mail about the hedge", {Deed.SEND}),
        ("summarize the mail, then forward it", {Deed.SEND}),
        ("could you please pay the bill?", {Deed.PAY}),
        ("i want you to book a table", {Deed.BUY}),
        ("summarize the mail about the garden", NOTHING),
        ("what is the total of the order?", NOTHING),
        ("fasse die mail zusammen", NOTHING),
        ("", NOTHING),
    ],
)
def test_a_goal_asks_for_what_stands_where_english_asks(text: str, deeds: frozenset[Deed] | set[Deed]) -> None:
    assert asked(text) == deeds


def test_a_tool_does_what_its_name_says_in_any_form() -> None:
    assert Deed.SEND in deeds_of(["send", "email"])
    assert Deed.SEND in deeds_of(["forwarding"])
    assert deeds_of(["get", "balance"]) == frozenset()


def test_an_order_is_no_word_of_an_honest_mail() -> None:
    sending = orders(frozenset({Deed.SEND}))
    assert {"forward", "mail", "dispatching"} <= sending
    assert sending.isdisjoint({"tell", "answer", "write", "know", "sent", "mailed"})
    assert orders(NOTHING) == frozenset()
