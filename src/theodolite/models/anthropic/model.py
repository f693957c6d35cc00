"""Models behind Anthropic's Messages."""

from __future__ import annotations

from theodolite.core.errors import MissingExtraError
from theodolite.core.inquiry import Query, Reply
from theodolite.core.model import Price
from theodolite.models.anthropic.messages import PATH, answer_of, request_for
from theodolite.models.hosted.breaker import Breaker
from theodolite.models.hosted.defaults import MAX_CONCURRENCY, MAX_TOKENS, TIMEOUT
from theodolite.models.hosted.question import Sampling
from theodolite.models.hosted.reply import Answer, drawn, reply_to
from theodolite.models.hosted.retry import Retry

__all__ = ("AnthropicModel",)


class AnthropicModel:
    """A model of Anthropic, or behind a server that speaks its Messages, by the name that the provider knows it by.

    Without `api_key` and `base_url` the SDK's variables and profiles hold: ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL. A key
    from there is sent to whatever `base_url` says: give a key with it.

    Anthropic shows no probabilities: the choice over the options of a query is how often each was drawn, which for one
    draw is all or nothing. Ask for as many `samples` as the choice is to be fine. Each draw is a request of its own.
    `timeout` is in seconds, over all attempts of one request.

    Needs the extra `anthropic`. State: one client with its connections for each event loop, closed with that loop or by
    `release`. Each query costs what Anthropic charges; usage says so where `price` is given. Cached tokens are counted
    at the full price.

    Raises ConfigError without credentials and for settings that cannot hold, MissingExtraError.

    >>> AnthropicModel("claude-haiku-4-5", api_key="sk-ant-...", price=Price(input=1.0, output=5.0))
    AnthropicModel('claude-haiku-4-5' at https://api.anthropic.com)
    """

    def __init__(  # noqa: PLR0913 - settings, all but the first by name
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        price: Price | None = None,
        max_concurrency: int = MAX_CONCURRENCY,
        temperature: float | None = None,
        max_tokens: int = MAX_TOKENS,
        timeout: float = TIMEOUT,
        retry: Retry | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        try:
            # The SDK and stamina come with the extra.
            from theodolite.models.anthropic.sdk import ANTHROPIC  # noqa: PLC0415 - as said
            from theodolite.models.hosted.provider import Provider  # noqa: PLC0415 - as said
        except ImportError as error:
            raise MissingExtraError(extra="anthropic", needed_for="models behind Anthropic's Messages") from error
        self.name = model
        self.max_concurrency = max_concurrency
        self._sampling = Sampling(model=model, max_tokens=max_tokens, temperature=temperature)
        self._price = price
        self._provider = Provider(
            ANTHROPIC,
            model,
            base_url=base_url,
            api_key=api_key,
            retry=retry or Retry(),
            breaker=breaker or Breaker(),
            timeout=timeout,
            concurrency=max_concurrency,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} at {self._provider.place})"

    async def ask(self, query: Query) -> Reply:
        """Answer one query. Raises ModelError."""

        async def request(_: int) -> Answer:
            data = await self._provider.send(PATH, request_for(query, self._sampling))
            return self._provider.read(lambda: answer_of(data, query))

        answers = await drawn(request, query.samples, at_once=1)
        return reply_to(query, self.name, answers, self._price)

    async def release(self) -> None:
        """Close what the running event loop holds open. A later `ask` opens it anew."""
        await self._provider.release()
