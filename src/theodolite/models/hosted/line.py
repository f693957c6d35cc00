"""The line to a provider: a client of its SDK for each event loop, a bound on what is under way, attempts.

Imported only when a model is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import anyio

from theodolite.core.errors import ConfigError, ModelError
from theodolite.models.hosted.breaker import Breaker
from theodolite.models.hosted.per_loop import PerLoop
from theodolite.models.hosted.retry import Retry
from theodolite.models.hosted.transport import Fault, Transport

__all__ = ("Client", "Line", "Settings")

_T = TypeVar("_T")


class Client(Protocol):
    """An open client of an official SDK, for one event loop."""

    async def post(self, path: str, body: Mapping[str, object]) -> bytes | Fault:
        """Return the body of a response of success, or why there is none."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


class Settings(Protocol):
    """How clients are opened, and whom they ask. Holds the key, and shows it to nobody."""

    @property
    def place(self) -> str:
        """Return the address that is asked, without what is secret."""
        ...

    def open(self) -> Client:
        """Return a client for the running event loop."""
        ...


@dataclass(frozen=True)
class _Desk:
    client: Client
    places: anyio.CapacityLimiter


class Line:
    """Sends requests of one model, at most `concurrency` at once in each event loop. Safe for several event loops.

    Raises ConfigError for a concurrency below one.
    """

    def __init__(self, settings: Settings, *, retry: Retry, breaker: Breaker, timeout: float, concurrency: int) -> None:
        if concurrency < 1:
            raise ConfigError(f"max_concurrency={concurrency} lets nobody ask: give 1 or more")
        self.place = settings.place
        self._transport = Transport(retry=retry, breaker=breaker, timeout=timeout)
        self._desks = PerLoop(partial(_opened, settings.open, concurrency), _closed)

    async def send(self, path: str, body: Mapping[str, object]) -> bytes:
        """Return the body of a response. Raises ModelError. Cancelled, it closes the connection and lets go at once."""
        desk = await self._desks.get()
        async with desk.places:
            return await self._transport.call(partial(desk.client.post, path, body))

    def read(self, answer: Callable[[], _T]) -> _T:
        """Return what is read from a response. Raises the ModelError of reading it, which then says where it was."""
        try:
            return answer()
        except ModelError as error:
            raise ModelError(f"{self.place}: {error}", cause=error.cause) from None

    async def release(self) -> None:
        """Close the client of the running event loop."""
        await self._desks.release()


async def _opened(connect: Callable[[], Client], concurrency: int) -> _Desk:
    return _Desk(connect(), anyio.CapacityLimiter(concurrency))


async def _closed(desk: _Desk) -> None:
    # A connection that cannot be closed in order is gone all the same.
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await desk.client.close()
