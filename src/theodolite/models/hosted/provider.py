"""A provider, asked through its official SDK. Imported only when a model is made: needs httpx2 and stamina."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, Self, TypeVar

import httpx2

from theodolite.core.errors import ConfigError, ModelError
from theodolite.models.hosted.breaker import Breaker
from theodolite.models.hosted.connection import http_client
from theodolite.models.hosted.desk import Desk
from theodolite.models.hosted.endpoint import Endpoint, no_address, secrets_of
from theodolite.models.hosted.retry import Retry
from theodolite.models.hosted.transport import Fault, Transport

__all__ = ("SDK", "Client", "Provider")

_T = TypeVar("_T")


class Client(AbstractAsyncContextManager["Client"], Protocol):
    """What the clients of the official SDKs have in common."""

    @property
    def base_url(self) -> httpx2.URL:
        """Return the address that is asked."""
        ...

    async def post(self, path: str, *, cast_to: type[httpx2.Response], body: object) -> httpx2.Response:
        """Return the response to a request. Raises the errors of the SDK."""
        ...

    def copy(self, *, http_client: httpx2.AsyncClient) -> Self:
        """Return a client with the same credentials and address over another connection."""
        ...


_C = TypeVar("_C", bound=Client)
_C_co = TypeVar("_C_co", bound=Client, covariant=True)


class _Make(Protocol[_C_co]):
    def __call__(
        self,
        *,
        api_key: str | None,
        base_url: str | None,
        max_retries: int,
        timeout: float,
        http_client: httpx2.AsyncClient,
    ) -> _C_co: ...


class _Refusal(Protocol):
    response: httpx2.Response


@dataclass(frozen=True)
class SDK(Generic[_C]):
    """What an official SDK has of its own.

    `make` is the class of its clients; `keys` gives what one proves itself with, in text or otherwise; `refused` is
    raised for a response that is none of success, `unreached` where there is no response, `fault` is any error of the
    SDK. `variable` names the one of the environment that holds a key.
    """

    make: _Make[_C]
    keys: Callable[[_C], tuple[object, ...]]
    refused: type[_Refusal]
    unreached: type[Exception]
    fault: type[Exception]
    variable: str


class Provider:
    """Sends the requests of one model through an SDK. What is not given, the SDK takes from the environment, here.

    At most `concurrency` requests are under way at once in each event loop. Safe for several event loops. Holds the
    key, and shows it to nobody. Raises ConfigError without credentials, and for settings that cannot hold.
    """

    def __init__(
        self,
        sdk: SDK[_C],
        model: str,
        *,
        base_url: str | None,
        api_key: str | None,
        retry: Retry,
        breaker: Breaker,
        timeout: float,
        concurrency: int,
    ) -> None:
        connect = partial(http_client, timeout=timeout, connections=concurrency)
        try:
            # Further attempts are ours.
            client = sdk.make(api_key=api_key, base_url=base_url, max_retries=0, timeout=timeout, http_client=connect())
        except sdk.fault as error:
            raise _no_key(model, sdk.variable) from error
        except (httpx2.InvalidURL, ValueError):
            raise no_address() from None
        keys = sdk.keys(client)
        if not any(keys):
            raise _no_key(model, sdk.variable)
        url = str(client.base_url)
        secrets = secrets_of(url, *[key for key in keys if isinstance(key, str)])
        self._endpoint = Endpoint(url=url, model=model, variable=sdk.variable, secrets=secrets)

        def enter() -> AbstractAsyncContextManager[Client]:
            return client.copy(http_client=connect())

        transport = Transport(
            retry=retry, breaker=breaker, timeout=timeout, fault_of=partial(_fault_of, sdk, self._endpoint)
        )
        self._desk: Desk[Client] = Desk(enter, transport=transport, concurrency=concurrency)

    @property
    def place(self) -> str:
        """The address that is asked, without what is secret."""
        return self._endpoint.place

    async def send(self, path: str, body: Mapping[str, object]) -> bytes:
        """Return the body of a response. Raises ModelError. Cancelled, it closes the connection and lets go at once."""

        async def posted(client: Client) -> bytes:
            return (await client.post(path, cast_to=httpx2.Response, body=body)).content

        return await self._desk.call(posted)

    def read(self, answer: Callable[[], _T]) -> _T:
        """Return what is read from a response. Raises the ModelError of reading it, which then says where it was."""
        try:
            return answer()
        except ModelError as error:
            # What a response says of itself may hold anything, the key that it was asked with too.
            raise ModelError(f"{self.place}: {self._endpoint.shown(str(error))}", cause=error.cause) from None

    async def release(self) -> None:
        """Close the client of the running event loop."""
        await self._desk.release()


def _no_key(model: str, variable: str) -> ConfigError:
    return ConfigError(f"no API key for {model}: set the variable {variable}, or name another as api_key_env")


def _fault_of(sdk: SDK[_C], endpoint: Endpoint, error: Exception) -> Fault:
    """Return what an error that came out of an SDK means."""
    if isinstance(error, sdk.refused):
        answer = error.response
        return endpoint.refused(answer.status_code, answer.headers, answer.content)
    if isinstance(error, sdk.unreached):
        return endpoint.unreached(error.__cause__)
    what = f"{endpoint.place} could not be asked, for a {type(error).__name__} in the provider's SDK"
    if isinstance(error, sdk.fault):
        return Fault(f"{what}: look at api_key, the variable {endpoint.variable} and the SDK's profile")
    return Fault(f"{what}: if the model was released meanwhile, ask again")
