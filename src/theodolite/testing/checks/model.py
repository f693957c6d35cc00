"""The laws of models.

That a model runs none of the tool calls that it proposes cannot be seen from outside; it is given no tool to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import anyio
import anyio.lowlevel
import msgspec
from msgspec import Raw

from theodolite.core.errors import ModelError
from theodolite.core.event import Tool
from theodolite.core.inquiry import Message, Query, Reply, Role
from theodolite.core.model import Model
from theodolite.core.text import printable
from theodolite.testing.checks.law import broken, run, unraised
from theodolite.testing.sessions import HOSTILE_TEXTS

__all__ = ("CHECKS", "ModelFixture", "check_model")

# More callers than this show nothing new, and cost a real model dear.
_CALLERS = 16
# Seconds until a model that was cancelled must have let go, or a check is given up.
_PATIENCE = 30.0
# How far the probabilities of a choice may be from a sum of 1: they are sums of floats.
_ROUNDING = 1e-6

_QUERIES = (
    Query(role=Role.SUBJECT, prompt="May a refund be paid without the order's number?", system="You are careful."),
    Query(role=Role.JUDGE, prompt="Is this the same behavior?", options=("yes", "no"), samples=3),
    Query(
        role=Role.SHADOW,
        prompt="Pay the water bill.",
        context=(Message("user", "hello"), Message("assistant", "hello"), Message("tool", "30.20 EUR")),
        tools=(Tool(name="send_money", parameters=Raw(b'{"type":"object"}')),),
        schema=Raw(b'{"type":"object"}'),
        canary="canary-1f6e",
    ),
    Query(role=Role.BASELINE, prompt="", context=()),
)


@dataclass(frozen=True, kw_only=True)
class ModelFixture:
    """A model under test.

    `factory` makes one that works, `failing` some that do not: nobody listens, the key is wrong, the answer is junk.
    `queries` are put to it beside those of the suite.
    """

    factory: Callable[[], Model]
    failing: Sequence[Callable[[], Model]] = ()
    queries: Sequence[Query] = ()

    def asked(self) -> tuple[Query, ...]:
        """Return all queries that the laws put."""
        return (*_QUERIES, *self.queries)


def check_model(
    factory: Callable[[], Model],
    *,
    failing: Sequence[Callable[[], Model]] = (),
    queries: Sequence[Query] = (),
    skips: Mapping[str, str] | None = None,
) -> None:
    """Run every law of models on what the factory makes. Runs an event loop of its own: call it outside of one.

    `skips` maps the name of a law to the reason why it cannot hold. Raises AssertionError for a broken law, ConfigError
    for a skip of an unknown law or without a reason.
    """
    run(CHECKS, ModelFixture(factory=factory, failing=failing, queries=queries), skips or {})


def check_well_formed(fixture: ModelFixture) -> None:
    """Check that it has a name, and that at least one query may be under way."""
    model = fixture.factory()
    if not model.name or model.max_concurrency < 1:
        what = f"name is {model.name!r} and max_concurrency {model.max_concurrency}"
        raise broken("well_formed", model, what, reproduce="look at the attributes of the model")


def check_answers_the_query(fixture: ModelFixture) -> None:
    """Check that a reply carries the very query that it answers, and the name of whoever answered."""
    model = fixture.factory()
    for query in fixture.asked():
        reply = _reply("answers_the_query", model, query)
        if reply.query != query or not reply.model:
            what = "the reply carries another query than it was given, or no model"
            raise broken("answers_the_query", model, what, reproduce=_again(query))


def check_draws(fixture: ModelFixture) -> None:
    """Check that a reply holds at least one draw or a choice, no more draws than samples, and tool calls as JSON."""
    model = fixture.factory()
    for query in fixture.asked():
        reply = _reply("draws", model, query)
        if not (reply.draws or reply.choice) or len(reply.draws) > query.samples:
            what = (
                f"{len(reply.draws)} draws and {len(reply.choice)} choices answer a query for {query.samples} samples"
            )
            raise broken("draws", model, what, reproduce=_again(query))
        with unraised("draws", model, reproduce=f"decode the tool calls of {_again(query)}"):
            for call in [call for draw in reply.draws for call in draw.tool_calls]:
                msgspec.json.decode(call)


def check_choice(fixture: ModelFixture) -> None:
    """Check that a choice is a distribution over the options of the query, in their order, and over nothing else."""
    model = fixture.factory()
    for query in fixture.asked():
        choice = _reply("choice", model, query).choice
        if not choice:
            continue
        chances = [chance for _, chance in choice]
        named = tuple([option for option, _ in choice])
        if named != query.options or min(chances) < 0.0 or abs(sum(chances) - 1.0) > _ROUNDING:
            what = f"{choice} is no distribution over {query.options}"
            raise broken("choice", model, what, reproduce=_again(query))


def check_concurrent(fixture: ModelFixture) -> None:
    """Check that as many callers as it says may ask at once, and that each gets the answer to its own query."""
    model = fixture.factory()
    callers = min(model.max_concurrency, _CALLERS)
    how = f"ask {callers} different queries at once"
    with unraised("concurrent", model, reproduce=how):
        mixed = anyio.run(_mixed_up, model, callers)
    if mixed:
        raise broken("concurrent", model, f"{mixed} of {callers} callers got another's answer", reproduce=how)


def check_only_model_errors(fixture: ModelFixture) -> None:
    """Check that a model that cannot answer raises ModelError and nothing else, and that hostile text is no fault."""
    model = fixture.factory()
    for text in map(printable, HOSTILE_TEXTS):
        query = Query(role=Role.JUDGE, prompt=text, system=text, options=(text, "no"))
        with unraised("only_model_errors", model, reproduce=_again(query)), suppress(ModelError):
            anyio.run(_ask, model, query)
    if not fixture.failing:
        what = "nothing shows what it raises when it cannot answer"
        how = "give ModelFixture `failing` models: one that nobody serves, one with a wrong key, one that answers junk"
        raise broken("only_model_errors", model, what, reproduce=how)
    for make in fixture.failing:
        failing = make()
        how = f"put the same query to failing model {failing.name}"
        with unraised("only_model_errors", failing, reproduce=how), suppress(ModelError):
            anyio.run(_ask, failing, _QUERIES[0])
            raise broken("only_model_errors", failing, "it answers where it should fail", reproduce=how)


def check_cancellable(fixture: ModelFixture) -> None:
    """Check that it can be cancelled at any await, makes no error of it, and answers the next caller."""
    model = fixture.factory()
    for steps in range(6):
        how = f"cancel model.ask(query) after {steps} checkpoints, then ask again"
        with unraised("cancellable", model, reproduce=how):
            fault = anyio.run(_cancelled, model, steps)
        if fault:
            raise broken("cancellable", model, fault, reproduce=how)


CHECKS: tuple[Callable[[ModelFixture], None], ...] = (
    check_well_formed,
    check_answers_the_query,
    check_draws,
    check_choice,
    check_concurrent,
    check_only_model_errors,
    check_cancellable,
)
"""Every law of models."""


def _again(query: Query) -> str:
    return f"await model.ask({query!r})"[:500]


def _reply(law: str, model: Model, query: Query) -> Reply:
    with unraised(law, model, reproduce=_again(query)):
        return anyio.run(_ask, model, query)


async def _ask(model: Model, query: Query) -> Reply:
    with anyio.fail_after(_PATIENCE):
        return await model.ask(query)


async def _mixed_up(model: Model, callers: int) -> int:
    """Return how many of so many callers at once got an answer to another's query."""
    queries = [Query(role=Role.SUBJECT, prompt=f"Is {place} an even number?") for place in range(callers)]
    answered: list[bool] = []

    async def one(query: Query) -> None:
        answered.append((await _ask(model, query)).query == query)

    async with anyio.create_task_group() as group:
        for query in queries:
            group.start_soon(one, query)
    return callers - sum(answered)


async def _cancelled(model: Model, steps: int) -> str:
    """Return what is wrong with how a model takes being cancelled after so many checkpoints."""
    faults: list[str] = []

    async def one() -> None:
        try:
            await _ask(model, _QUERIES[0])
        except ModelError as error:
            faults.append(f"cancelled, it raises {error!r} instead of letting go")

    async with anyio.create_task_group() as group:
        group.start_soon(one)
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    try:
        await _ask(model, _QUERIES[0])
    except ModelError as error:
        faults.append(f"after one caller was cancelled, the next one gets {error!r}")
    return faults[0] if faults else ""
