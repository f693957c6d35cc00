"""Anthropic's official SDK as a client. Imported only when a model is made: it costs more than a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import anthropic
import httpx2

from theodolite.core.errors import ConfigError
from theodolite.models.hosted.connection import Endpoint, http_client, no_address, secrets_of
from theodolite.models.hosted.transport import Fault

__all__ = ("AnthropicClient", "AnthropicSettings")

_VARIABLE = "ANTHROPIC_API_KEY"


@dataclass(frozen=True, repr=False)
class AnthropicSettings:
    """How clients are opened, and whom they ask."""

    endpoint: Endpoint
    key: str | None
    base_url: str | None
    timeout: float
    connections: int

    @classmethod
    def of(
        cls, model: str, *, base_url: str | None, api_key: str | None, timeout: float, connections: int
    ) -> AnthropicSettings:
        """Return settings that hold; what is not given, the SDK takes from the environment. Raises ConfigError."""
        client = _client(api_key, base_url, timeout, connections)
        if not (client.api_key or client.auth_token or client.credentials):
            raise ConfigError(f"no API key for {model}: give api_key, or set the variable {_VARIABLE}")
        url = str(client.base_url)
        secrets = secrets_of(url, client.api_key, client.auth_token)
        endpoint = Endpoint(url=url, model=model, variable=_VARIABLE, secrets=secrets)
        return cls(endpoint=endpoint, key=api_key, base_url=base_url, timeout=timeout, connections=connections)

    @property
    def place(self) -> str:
        """The address that is asked, without what is secret."""
        return self.endpoint.place

    def open(self) -> AnthropicClient:
        """Return a client for the running event loop."""
        client = _client(self.key, self.base_url, self.timeout, self.connections)
        return AnthropicClient(client, self.endpoint)


def _client(key: str | None, base_url: str | None, timeout: float, connections: int) -> anthropic.AsyncAnthropic:
    """Return a client that makes one attempt: further ones are ours. Raises ConfigError."""
    connection = http_client(timeout=timeout, connections=connections)
    try:
        return anthropic.AsyncAnthropic(
            api_key=key, base_url=base_url, max_retries=0, timeout=timeout, http_client=connection
        )
    except anthropic.AnthropicError as error:
        raise ConfigError(f"no credentials for Anthropic: give api_key, or set the variable {_VARIABLE}") from error
    except (httpx2.InvalidURL, ValueError):
        raise no_address() from None


class AnthropicClient:
    """An open client, for one event loop."""

    def __init__(self, client: anthropic.AsyncAnthropic, endpoint: Endpoint) -> None:
        self._client = client
        self._endpoint = endpoint

    async def post(self, path: str, body: Mapping[str, object]) -> bytes | Fault:
        """Return the body of a response of success, or why there is none."""
        try:
            response = await self._client.post(path, cast_to=httpx2.Response, body=body)
        except anthropic.APIStatusError as error:
            answer = error.response
            return self._endpoint.refused(answer.status_code, answer.headers, answer.content)
        except anthropic.APIConnectionError as error:
            return self._endpoint.unreached(error.__cause__)
        except anthropic.AnthropicError:
            return Fault(f"no credentials that {self._endpoint.place} could be asked with: look at the SDK's profile")
        return response.content

    async def close(self) -> None:
        """Close its connections."""
        await self._client.close()
