"""Every model that Pydantic AI can ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from theodolite.core.errors import MissingExtraError
from theodolite.core.inquiry import Query, Reply
from theodolite.core.model import Price
from theodolite.models.hosted.breaker import Breaker
from theodolite.models.hosted.defaults import MAX_CONCURRENCY, MAX_TOKENS, TIMEOUT
from theodolite.models.hosted.question import Sampling
from theodolite.models.hosted.reply import Answer, drawn, reply_to
from theodolite.models.hosted.retry import Retry

if TYPE_CHECKING:
    from pydantic_ai.models import Model

__all__ = ("PydanticAIModel",)


class PydanticAIModel:
    """A model of Pydantic AI: its name there (`google:gemini-2.5-flash`), a Model, or a function that makes one.

    A Model that was made belongs to one event loop at a time. Where several ask, as a Worker and `drain_sync` do, give
    a name or a function: each event loop gets its own. One is made at once, for its name, and goes to the first loop.

    Pydantic AI's clients make attempts of their own (mostly three); `retry` is on top of them, and makes one. The
    choice over the options of a query is how often each was drawn: probabilities are not asked for. Each draw is a
    request of its own. What a provider says of a fault is not told, since the key that it may quote is not known here.

    Needs the extra `pydantic-ai` and that of the provider's SDK. State: one entered Model for each event loop, left
    with that loop or by `release`. Each query costs what the provider charges: at `price`, else as Pydantic AI reckons
    it, in USD.

    Raises ConfigError for a name that Pydantic AI makes no model of, or without its key; MissingExtraError.

    >>> PydanticAIModel("test")
    PydanticAIModel('test')
    """

    def __init__(
        self,
        model: Model | str | Callable[[], Model],
        *,
        price: Price | None = None,
        max_concurrency: int = MAX_CONCURRENCY,
        temperature: float | None = None,
        max_tokens: int = MAX_TOKENS,
        timeout: float = TIMEOUT,
        retry: Retry | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        try:
            # Pydantic AI and stamina come with the extra.
            from theodolite.models.pydantic_ai.sdk import Requests, Source  # noqa: PLC0415 - as said
        except ImportError as error:
            raise MissingExtraError(extra="pydantic-ai", needed_for="models of Pydantic AI") from error
        source = Source(model)
        self.name = source.name
        self.max_concurrency = max_concurrency
        self._price = price
        self._requests = Requests(
            source.take,
            sampling=Sampling(model=self.name, max_tokens=max_tokens, temperature=temperature),
            retry=retry or Retry(attempts=1),
            breaker=breaker or Breaker(),
            timeout=timeout,
            concurrency=max_concurrency,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def ask(self, query: Query) -> Reply:
        """Answer one query. Raises ModelError."""

        async def request(_: int) -> Answer:
            return await self._requests.send(query)

        answers = await drawn(request, query.samples, at_once=1)
        return reply_to(query, self.name, answers, self._price)

    async def release(self) -> None:
        """Leave the model of the running event loop. A later `ask` enters it anew."""
        await self._requests.release()
