"""What a hosted model said, and the Reply that it makes: draws, a choice over the options, usage.

Pure, and the same for every provider.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import anyio
import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from theodolite.core.errors import ModelError
from theodolite.core.faults import place_of
from theodolite.core.inquiry import Draw, Query, Reply, Usage
from theodolite.core.model import Price
from theodolite.core.reading import Cause
from theodolite.core.text import printable
from theodolite.models.hosted.question import LETTERS

__all__ = ("Alternative", "Answer", "Said", "call_of", "decoded", "drawn", "mended", "reply_to", "usage_of")

_T = TypeVar("_T")

# A letter alone, or with what ends a list mark, so that "A refund is paid" names no option.
_LETTER = re.compile(r"[\s*_(\[\"']*([A-Z])[\s.,:;)\]*_\"']*")
_MARKED = re.compile(r"[\s*_(\[\"']*([A-Z])[.:)\]*]")


# An escape of JSON: a pair of surrogates, one alone, or any other.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)

# The share of the first token that the letters must have for them to be the answer. Our choice: where they have less,
# they stand for words that the model would rather have said.
_ANSWERED = 0.9


class Alternative(Struct, frozen=True, gc=False):
    """A token that the model might have begun with, and the logarithm of its probability."""

    token: str
    logprob: float


class Said(Struct, frozen=True, gc=False):
    """One draw, with the alternatives to its first token where the provider shows them."""

    draw: Draw
    alternatives: tuple[Alternative, ...] = ()


class Answer(Struct, frozen=True, gc=False):
    """What one request brought."""

    said: tuple[Said, ...]
    usage: Usage


def decoded(data: bytes, kind: type[_T]) -> _T:
    """Return the body of an answer as its type. Raises ModelError with MALFORMED, which quotes nothing of it.

    A lone surrogate is spelled out and bytes that are no UTF-8 are replaced, for a model may write either: what else it
    said still counts.

    >>> decoded(b"<html>", dict)
    Traceback (most recent call last):
    theodolite.core.errors.ModelError: the answer is a web page, not JSON: base_url is hardly the address of an API
    """
    try:
        return mended(data, kind)
    except (msgspec.DecodeError, RecursionError) as error:
        fault = f"the answer cannot be read: {place_of(error)}"
    if not data.strip():
        fault = "the answer is empty"
    elif data.lstrip().startswith(b"<"):
        fault = "the answer is a web page, not JSON: base_url is hardly the address of an API"
    raise ModelError(fault, cause=Cause.MALFORMED)


def mended(data: bytes, kind: type[_T]) -> _T:
    r"""Return JSON as its type, with what cannot be written as UTF-8 replaced. Raises as msgspec's decoder does.

    >>> print(mended(b'["leak \\ud800", "\\ud83d\\ude00"]', list[str])[0])
    leak \ud800
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.json.decode(_spelled_out(data.decode(errors="replace")), type=kind)


def _spelled_out(text: str) -> str:
    return _ESCAPE.sub(lambda escape: f"\\{escape[0]}" if escape["lone"] else escape[0], text)


def call_of(name: str, arguments: object) -> Raw:
    """Return a tool call that was tried, as JSON. Arguments that are text and JSON are kept as JSON, others as text.

    >>> bytes(call_of("pay", '{"to": "ES-77"}')), bytes(call_of("pay", "{to"))
    (b'{"name":"pay","arguments":{"to": "ES-77"}}', b'{"name":"pay","arguments":"{to"}')
    """
    given = _json(printable(arguments)) if isinstance(arguments, str) else arguments
    return Raw(msgspec.json.encode({"name": printable(name), "arguments": given}))


def _json(text: str) -> Raw | str:
    # Read whole: what is only passed over, as Raw is, may still hold what nobody can read.
    for given in (text, _spelled_out(text)):
        try:
            msgspec.json.decode(given)
        except (msgspec.DecodeError, RecursionError):
            continue
        return Raw(given.encode())
    return text


def usage_of(*, input_tokens: int, output_tokens: int, cost: object = None) -> Usage:
    """Return the usage that a provider reports. A cost that is no amount of money is none."""
    known = isinstance(cost, int | float) and not isinstance(cost, bool) and math.isfinite(cost) and cost >= 0.0
    paid = float(cost) if known and isinstance(cost, int | float) else UNSET
    return Usage(input_tokens=max(0, input_tokens), output_tokens=max(0, output_tokens), cost=paid)


async def drawn(ask: Callable[[int], Awaitable[Answer]], samples: int, *, at_once: int) -> tuple[Answer, ...]:
    """Return answers with as many draws as wanted, at most `at_once` in one request, all requests side by side.

    A provider that gives fewer draws than it was asked for is asked for the rest. When one request fails the others are
    cancelled. Raises ModelError.
    """
    sizes = [min(at_once, samples - done) for done in range(0, max(1, samples), at_once)]
    if len(sizes) == 1:
        return await _filled(ask, max(1, samples))
    answers: list[tuple[Answer, ...]] = [() for _ in sizes]
    faults: list[ModelError] = []
    async with anyio.create_task_group() as group:

        async def one(place: int) -> None:
            try:
                answers[place] = await _filled(ask, sizes[place])
            except ModelError as error:
                faults.append(error)
                group.cancel_scope.cancel()

        for place in range(len(sizes)):
            group.start_soon(one, place)
    if faults:
        raise faults[0]
    return tuple([answer for filled in answers for answer in filled])


async def _filled(ask: Callable[[int], Awaitable[Answer]], wanted: int) -> tuple[Answer, ...]:
    answers: list[Answer] = []
    while (missing := wanted - sum(len(answer.said) for answer in answers)) > 0:
        answer = await ask(missing)
        if not answer.said:
            raise ModelError("the answer holds nothing that was said", cause=Cause.MALFORMED)
        answers.append(answer)
    return tuple(answers)


def reply_to(query: Query, model: str, answers: Sequence[Answer], price: Price | None) -> Reply:
    """Return the reply that some answers make.

    Where the query has options, a draw that names one is that option's text. The choice comes from the alternatives to
    the first token, renormalized over the letters and averaged over the draws: then it is exact. Where they are not
    shown, one of the letters is not among them, or the letters have less than 0.9 together, it is how often each option
    was drawn; where none was, it is empty.
    """
    said = [one for answer in answers for one in answer.said][: max(1, query.samples)]
    draws = tuple([_naming(one.draw, query.options) for one in said])
    weighed = _weighed(said, query.options)
    choice = weighed or _counted(draws, query.options)
    usage = _together([answer.usage for answer in answers], price)
    return Reply(query=query, model=model, draws=draws, choice=choice, exact=bool(weighed), usage=usage)


def _naming(draw: Draw, options: tuple[str, ...]) -> Draw:
    """Return a draw with the text of the option that it names.

    A letter that was offered comes first: an option may itself be a letter, that of another option.
    """
    text = draw.text.strip()
    for named in (_offered(_LETTER.fullmatch(text), options), text, _offered(_MARKED.match(text), options)):
        if named in options:
            return replace(draw, text=named)
    return draw


def _offered(letter: re.Match[str] | None, options: tuple[str, ...]) -> str | None:
    place = LETTERS.index(letter[1]) if letter else len(options)
    return options[place] if place < len(options) else None


def _weighed(said: Sequence[Said], options: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    if not options or not all(one.alternatives for one in said):
        return ()
    shares = [_shares(one.alternatives, len(options)) for one in said]
    if not all(shares):
        return ()
    return tuple(
        [(option, sum(column) / len(shares)) for option, column in zip(options, zip(*shares, strict=True), strict=True)]
    )


def _shares(alternatives: Iterable[Alternative], options: int) -> list[float]:
    """Return the chances of the letters, out of 1; none where they are not what the model answers with.

    A letter that is not shown is less likely than all that are, and nobody knows by how much.
    """
    chances, seen = [0.0] * options, set[int]()
    for alternative in alternatives:
        letter = alternative.token.strip()
        place = LETTERS.find(letter) if len(letter) == 1 else -1
        chance = math.exp(min(0.0, alternative.logprob))
        if 0 <= place < options:
            chances[place] += chance
            seen.add(place)
    total = sum(chances)
    return [chance / total for chance in chances] if len(seen) == options and total >= _ANSWERED else []


def _counted(draws: Sequence[Draw], options: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    hits = [sum(draw.text == option for draw in draws) for option in options]
    total = sum(hits)
    return tuple([(option, count / total) for option, count in zip(options, hits, strict=True)]) if total else ()


def _together(usages: Sequence[Usage], price: Price | None) -> Usage:
    read, written = sum(one.input_tokens for one in usages), sum(one.output_tokens for one in usages)
    costs = [one.cost for one in usages]
    known = [cost for cost in costs if not isinstance(cost, UnsetType)]
    cost: float | UnsetType = sum(known) if len(known) == len(costs) else UNSET
    if price is not None:
        cost = price.of(input_tokens=read, output_tokens=written)
    return Usage(input_tokens=read, output_tokens=written, cost=cost)
