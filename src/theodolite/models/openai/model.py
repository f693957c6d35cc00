"""Models behind OpenAI's protocol: OpenAI itself, and every server that speaks Chat Completions or Responses."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from theodolite.core.errors import ConfigError, MissingExtraError
from theodolite.core.inquiry import Query, Reply
from theodolite.core.model import Price
from theodolite.models.hosted.breaker import Breaker
from theodolite.models.hosted.defaults import MAX_CONCURRENCY, MAX_TOKENS, TIMEOUT, TOP_LOGPROBS
from theodolite.models.hosted.question import Sampling
from theodolite.models.hosted.reply import Answer, drawn, reply_to
from theodolite.models.hosted.retry import Retry
from theodolite.models.openai import chat_completions, responses

__all__ = ("OpenAIModel",)

# Draws in one request of Chat Completions. Our choice for OpenAI: it takes 128 (its API reference), and what is lost
# with one request stays small. Other servers are asked for one at a time: llama.cpp's takes no more than it has slots.
DRAWS_AT_ONCE = 8


class OpenAIModel:
    """A model behind OpenAI's protocol, by the name that the provider knows it by.

    Without `api_key` and `base_url` the SDK's variables hold: OPENAI_API_KEY, OPENAI_BASE_URL. A key from there is sent
    to whatever `base_url` says: give a key with it.

    Options of a query are shown by letter, and the choice comes from the alternatives to the first token
    (`top_logprobs` of them); where none are given, from how often each option was drawn. A model that refuses them, as
    reasoning models do, needs `top_logprobs=0`. Draws are asked for `draws_at_once` in one request of Chat Completions
    (8 at OpenAI and Azure, 1 elsewhere, since not every server takes more), and in one request each of Responses.
    `timeout` is in seconds, over all attempts of one request.

    Needs the extra `openai`. State: one client with its connections for each event loop, closed with that loop or by
    `release`. Each query costs what the provider charges; a `price` here is what usage says, else what the provider
    says. Cached tokens are counted at the full price.

    Raises ConfigError without a key and for settings that cannot hold, MissingExtraError.

    >>> OpenAIModel("gpt-5-mini", api_key="sk-...", price=Price(input=0.25, output=2.0))
    OpenAIModel('gpt-5-mini' at https://api.openai.com/v1)
    """

    def __init__(  # noqa: PLR0913 - settings, all but the first by name
        self,
        model: str,
        *,
        api: Literal["chat", "responses"] = "chat",
        base_url: str | None = None,
        api_key: str | None = None,
        price: Price | None = None,
        max_concurrency: int = MAX_CONCURRENCY,
        temperature: float | None = None,
        max_tokens: int = MAX_TOKENS,
        top_logprobs: int = TOP_LOGPROBS,
        draws_at_once: int | None = None,
        timeout: float = TIMEOUT,
        retry: Retry | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        if api not in {"chat", "responses"}:
            raise ConfigError(f"api={api!r} is neither 'chat' nor 'responses'")
        if draws_at_once is not None and draws_at_once < 1:
            raise ConfigError(f"draws_at_once={draws_at_once} draws nothing: give 1 or more")
        try:
            # The SDK and stamina come with the extra.
            from theodolite.models.hosted.provider import Provider  # noqa: PLC0415 - as said
            from theodolite.models.openai.sdk import OPENAI  # noqa: PLC0415 - as said
        except ImportError as error:
            raise MissingExtraError(extra="openai", needed_for="models behind OpenAI's protocol") from error
        self.name = model
        self.max_concurrency = max_concurrency
        self._sampling = Sampling(
            model=model, max_tokens=max_tokens, temperature=temperature, top_logprobs=top_logprobs
        )
        self._price = price
        self._provider = Provider(
            OPENAI,
            model,
            base_url=base_url,
            api_key=api_key,
            retry=retry or Retry(),
            breaker=breaker or Breaker(),
            timeout=timeout,
            concurrency=max_concurrency,
        )
        official = _is_official(self._provider.place)
        self._length = "max_completion_tokens" if official else "max_tokens"
        self._at_once = (draws_at_once or (DRAWS_AT_ONCE if official else 1)) if api == "chat" else 1
        self._responses = api == "responses"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} at {self._provider.place})"

    async def ask(self, query: Query) -> Reply:
        """Answer one query. Raises ModelError."""

        async def request(draws: int) -> Answer:
            if self._responses:
                data = await self._provider.send(responses.PATH, responses.request_for(query, self._sampling))
                return self._provider.read(lambda: responses.answer_of(data, query))
            body = chat_completions.request_for(query, self._sampling, draws, length=self._length)
            data = await self._provider.send(chat_completions.PATH, body)
            return self._provider.read(lambda: chat_completions.answer_of(data, query))

        answers = await drawn(request, query.samples, at_once=self._at_once)
        return reply_to(query, self.name, answers, self._price)

    async def release(self) -> None:
        """Close what the running event loop holds open. A later `ask` opens it anew."""
        await self._provider.release()


def _is_official(place: str) -> bool:
    """Whether OpenAI is asked, or its models at Azure: they refuse `max_tokens` for some models, and others know it."""
    return (urlsplit(place).hostname or "").endswith((".openai.com", ".openai.azure.com"))
