"""OpenAI's official SDK as a client. Imported only when a model is made: it costs most of a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import httpx2
import openai

from theodolite.core.errors import ConfigError
from theodolite.models.hosted.connection import Endpoint, http_client, no_address, secrets_of
from theodolite.models.hosted.transport import Fault

__all__ = ("OpenAIClient", "OpenAISettings")

_VARIABLE = "OPENAI_API_KEY"


@dataclass(frozen=True, repr=False)
class OpenAISettings:
    """How clients are opened, and whom they ask."""

    endpoint: Endpoint
    key: str
    timeout: float
    connections: int

    @classmethod
    def of(
        cls, model: str, *, base_url: str | None, api_key: str | None, timeout: float, connections: int
    ) -> OpenAISettings:
        """Return settings that hold; what is not given, the SDK takes from the environment. Raises ConfigError."""
        try:
            client = _client(api_key, base_url, timeout, connections)
        except openai.OpenAIError as error:
            raise ConfigError(f"no API key for {model}: give api_key, or set the variable {_VARIABLE}") from error
        url = str(client.base_url)
        endpoint = Endpoint(url=url, model=model, variable=_VARIABLE, secrets=secrets_of(url, client.api_key))
        return cls(endpoint=endpoint, key=client.api_key, timeout=timeout, connections=connections)

    @property
    def place(self) -> str:
        """The address that is asked, without what is secret."""
        return self.endpoint.place

    def open(self) -> OpenAIClient:
        """Return a client for the running event loop."""
        client = _client(self.key, self.endpoint.url, self.timeout, self.connections)
        return OpenAIClient(client, self.endpoint)


def _client(key: str | None, base_url: str | None, timeout: float, connections: int) -> openai.AsyncOpenAI:
    """Return a client that makes one attempt: further ones are ours."""
    connection = http_client(timeout=timeout, connections=connections)
    try:
        return openai.AsyncOpenAI(
            api_key=key, base_url=base_url, max_retries=0, timeout=timeout, http_client=connection
        )
    except (httpx2.InvalidURL, ValueError):
        raise no_address() from None


class OpenAIClient:
    """An open client, for one event loop."""

    def __init__(self, client: openai.AsyncOpenAI, endpoint: Endpoint) -> None:
        self._client = client
        self._endpoint = endpoint

    async def post(self, path: str, body: Mapping[str, object]) -> bytes | Fault:
        """Return the body of a response of success, or why there is none."""
        try:
            response = await self._client.post(path, cast_to=httpx2.Response, body=body)
        except openai.APIStatusError as error:
            answer = error.response
            return self._endpoint.refused(answer.status_code, answer.headers, answer.content)
        except openai.APIConnectionError as error:
            return self._endpoint.unreached(error.__cause__)
        return response.content

    async def close(self) -> None:
        """Close its connections."""
        await self._client.close()
