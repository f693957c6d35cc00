"""Deeds that change something, by kind: what a goal asks for, what a tool does, what a passage orders.

A goal that says "reply" asks for what the tool `send_email` does; an order that says "forward" asks for it too.

Limits. English alone: in other languages a goal asks for no deed, and no passage orders one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache

from theodolite.features.intents.names import forms

__all__ = ("Deed", "asked", "deeds_of", "orders")


class Deed(StrEnum):
    """The kinds of deed."""

    SEND = "send"
    PAY = "pay"
    BUY = "buy"
    PLAN = "plan"
    GIVE = "give"
    CHANGE = "change"
    REMOVE = "remove"


# First the words of an order to do it, then those that only ask for it: "let me know" stands in honest mails, too.
_WORDS: Mapping[Deed, tuple[str, str]] = {
    Deed.SEND: (
        "send mail email forward dispatch deliver transmit upload post publish share cc bcc dm",
        "reply answer respond write tell notify inform thank contact text remind message submit comment report",
    ),
    Deed.PAY: ("pay transfer wire remit send deposit withdraw reimburse", "settle refund move"),
    Deed.BUY: ("book reserve order buy purchase", "rent hire subscribe place cart checkout"),
    Deed.PLAN: ("invite schedule create", "reschedule plan add arrange set put organize"),
    Deed.GIVE: ("share grant give invite add allow", "permit enable approve let"),
    Deed.CHANGE: ("change update edit modify rename replace set reset", "fix correct write patch adjust move"),
    Deed.REMOVE: ("delete remove cancel revoke erase wipe", "drop close clear purge unsubscribe disable leave"),
}
_IRREGULAR = {"write": "written", "give": "given", "withdraw": "withdrawn", "reply": "replies"}
# Where English puts what is asked for: first in a sentence, or after one of these. "The mail" asks for nothing.
_ASKING = re.compile(r"(?:\A|[.!?;:,\n]\s*|\b(?:and|to|please|then|or|you|also|just|kindly)\s+)(?=([a-z]+))")


def _all_forms(words: str) -> frozenset[str]:
    found: list[str] = []
    for word in words.split():
        found += [*forms(word), f"{word}s", f"{word.removesuffix('e')}ing", _IRREGULAR.get(word, word)]
    return frozenset(found)


_NAMES = {deed: _all_forms(f"{orders} {requests}") for deed, (orders, requests) in _WORDS.items()}
# What is done orders nothing: "rent: paid".
_PAST = frozenset(["sent", "paid", "bought", *_IRREGULAR.values()])
_ORDERS = {
    deed: frozenset([form for form in _all_forms(orders) if form not in _PAST and not form.endswith("ed")])
    for deed, (orders, _) in _WORDS.items()
}


def deeds_of(words: Iterable[str]) -> frozenset[Deed]:
    """Return the kinds of deed that words, in lower case, may name.

    >>> sorted(deeds_of(["send", "email"])), sorted(deeds_of(["read", "file"]))
    ([<Deed.PAY: 'pay'>, <Deed.SEND: 'send'>], [])
    """
    said = frozenset(words)
    return frozenset([deed for deed, names in _NAMES.items() if not said.isdisjoint(names)])


def asked(text: str) -> frozenset[Deed]:
    """Return the kinds of deed that a text in lower case asks for. Linear in the text.

    >>> sorted(asked("reply to the mail")), sorted(asked("summarize the mail"))
    ([<Deed.SEND: 'send'>], [])
    """
    return deeds_of(_ASKING.findall(text))


@lru_cache(maxsize=256)
def orders(deeds: frozenset[Deed]) -> frozenset[str]:
    """Return the words of an order to do one of these.

    >>> "forward" in orders(frozenset({Deed.SEND})), "tell" in orders(frozenset({Deed.SEND}))
    (True, False)
    """
    return frozenset([word for deed in deeds for word in _ORDERS[deed]])
