"""Each law of models catches a model that breaks it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from anyio.lowlevel import checkpoint
from msgspec import Raw
from msgspec.structs import replace

from theodolite.core.errors import ModelError
from theodolite.core.inquiry import Draw, Query, Reply
from theodolite.core.model import Model
from theodolite.testing.checks.law import name_of
from theodolite.testing.checks.model import CHECKS, ModelFixture, check_model
from theodolite.testing.fakes import ScriptedModel


class Honest:
    """Says no: the model that every mutant here was once."""

    name = "honest"
    max_concurrency = 4

    async def ask(self, query: Query) -> Reply:
        for _ in range(3):
            await checkpoint()
        return self.reply(query)

    def reply(self, query: Query) -> Reply:
        choice = tuple([(option, float(place == 0)) for place, option in enumerate(query.options)])
        return Reply(query=query, model=self.name, draws=(Draw(text="no"),) * query.samples, choice=choice)


class Closed(Honest):
    max_concurrency = 0


class Trimming(Honest):
    """Replies to the query that it made of the one it was given."""

    def reply(self, query: Query) -> Reply:
        return super().reply(replace(query, context=None))


class Empty(Honest):
    def reply(self, query: Query) -> Reply:
        return Reply(query=query, model=self.name)


class Generous(Honest):
    def reply(self, query: Query) -> Reply:
        return replace(super().reply(query), draws=(Draw(text="no"),) * (query.samples + 1))


class Garbled(Honest):
    def reply(self, query: Query) -> Reply:
        return replace(super().reply(query), draws=(Draw(tool_calls=(Raw(b'{"tool": '),)),))


class Undecided(Honest):
    """Gives every option the whole chance."""

    def reply(self, query: Query) -> Reply:
        return replace(super().reply(query), choice=tuple([(option, 1.0) for option in query.options]))


class Inventive(Honest):
    def reply(self, query: Query) -> Reply:
        return replace(super().reply(query), choice=(("maybe", 1.0),) if query.options else ())


class Sharing(Honest):
    """Keeps the query under way in itself."""

    def __init__(self) -> None:
        self.query: Query | None = None

    async def ask(self, query: Query) -> Reply:
        self.query = query
        await checkpoint()
        return self.reply(self.query)


class Leaking(Honest):
    """Lets the error of what it stands on through."""

    def reply(self, query: Query) -> Reply:
        raise ConnectionError(f"nobody listens to {query.prompt!r}")


class Picky(Honest):
    """Takes plain text for granted."""

    def reply(self, query: Query) -> Reply:
        if not query.prompt.isascii():
            raise UnicodeError(f"{query.prompt!r} is not ASCII")
        return super().reply(query)


class Indulgent(Honest):
    """Answers where it should fail."""


class Clinging(Honest):
    """Makes an error of its own of being cancelled."""

    async def ask(self, query: Query) -> Reply:
        try:
            await checkpoint()
        except BaseException as error:
            raise ModelError("the model did not answer: ask again") from error
        return self.reply(query)


class Spent(Honest):
    """Counts a query that was cancelled as one under way for good."""

    def __init__(self) -> None:
        self.under_way = 0

    async def ask(self, query: Query) -> Reply:
        if self.under_way:
            raise ModelError("the model is busy: ask later")
        self.under_way += 1
        await checkpoint()
        self.under_way -= 1
        return self.reply(query)


def _down() -> ScriptedModel:
    return ScriptedModel(ModelError("nobody listens: start the server"))


def _on(factory: Callable[[], Model], *failing: Callable[[], Model]) -> ModelFixture:
    return ModelFixture(factory=factory, failing=failing)


MUTANTS: dict[str, dict[str, ModelFixture]] = {
    "well_formed": {"no query at all": _on(Closed)},
    "answers_the_query": {"another query": _on(Trimming)},
    "draws": {"none": _on(Empty), "too many": _on(Generous), "calls that are no JSON": _on(Garbled)},
    "choice": {"a sum over 1": _on(Undecided), "another option": _on(Inventive)},
    "concurrent": {"shares the query": _on(Sharing)},
    "only_model_errors": {
        "another error": _on(Honest, Leaking),
        "no ASCII": _on(Picky, _down),
        "answers": _on(Honest, Indulgent),
        "nothing that fails": _on(Honest),
    },
    "cancellable": {"makes an error of it": _on(Clinging), "stays busy": _on(Spent)},
}
CASES = [(law, how) for law, mutants in MUTANTS.items() for how in mutants]


@pytest.mark.parametrize(("law", "how"), CASES, ids=[f"{law}: {how}" for law, how in CASES])
def test_a_law_catches_who_breaks_it(law: str, how: str) -> None:
    (check,) = [check for check in CHECKS if name_of(check) == law]
    with pytest.raises(AssertionError, match=rf"(?s)breaks the law '{law}'.*To see it again: "):
        check(MUTANTS[law][how])


def test_no_law_is_without_its_mutant() -> None:
    assert list(MUTANTS) == [name_of(check) for check in CHECKS]


def test_who_breaks_nothing_passes() -> None:
    check_model(Honest, failing=[_down])
