"""Where the requests of one model go out: a client for each event loop, a bound on what is under way, attempts.

Imported only when a model is made.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, ref

import anyio
from anyio.lowlevel import RunVar

from theodolite.core.errors import ConfigError
from theodolite.models.hosted.transport import Transport

__all__ = ("Desk",)

_C = TypeVar("_C")
_T = TypeVar("_T")


class _Loop:
    """Stands for an event loop, for as long as there is one."""


# One for all models: an entry of its own for each would stay as long as the loop.
_LOOP: RunVar[_Loop] = RunVar("the running event loop")


class Desk(Generic[_C]):
    """Enters a client by `enter` when an event loop first asks, and lets at most `concurrency` callers at it at once.

    A client is left when its loop ends in order (`anyio.run`, `asyncio.run`), by `release` before that, or with the
    Desk: it is held by an asynchronous generator, which event loops close in these cases. A loop that ends closes all
    such generators at once, so leaving a client must rest on no other that is still open. Nothing is shared between
    loops. Safe for several of them, on several threads. Raises ConfigError for a concurrency below one.
    """

    def __init__(
        self, enter: Callable[[], AbstractAsyncContextManager[_C]], *, transport: Transport, concurrency: int
    ) -> None:
        if concurrency < 1:
            raise ConfigError(f"max_concurrency={concurrency} lets nobody ask: give 1 or more")
        self._enter = enter
        self._transport = transport
        self._concurrency = concurrency
        self._places: WeakKeyDictionary[_Loop, _Place[_C]] = WeakKeyDictionary()

    async def call(self, work: Callable[[_C], Awaitable[_T]]) -> _T:
        """Return what work with a client comes to, attempted as often as it takes.

        Raises ModelError. Cancelled, it lets go of the client at once.
        """
        async with self._place().callers:
            return await self._transport.call(partial(self._attempt, work))

    async def release(self) -> None:
        """Leave the client of the running event loop; a later `call` enters another. Does not raise."""
        place = self._places.pop(_loop(), None)
        if place is not None:
            await place.leave()

    async def _attempt(self, work: Callable[[_C], Awaitable[_T]]) -> _T:
        return await work(await self._client())

    async def _client(self) -> _C:
        while True:
            place = self._place()
            client = await place.client(self._enter)
            if place is self._places.get(_loop()):
                return client
            await place.leave()  # it was released while this client was entered

    def _place(self) -> _Place[_C]:
        loop = _loop()
        place = self._places.get(loop)
        if place is None:
            place = self._places[loop] = _Place(self._concurrency)
        return place


class _Place(Generic[_C]):
    """The client of one event loop, and how many may be at it. Two tasks that ask for it at once get the same."""

    def __init__(self, concurrency: int) -> None:
        self.callers = anyio.CapacityLimiter(concurrency)
        self._lock = anyio.Lock()
        self._held: list[tuple[_C, AsyncGenerator[_C, None]]] = []

    async def client(self, enter: Callable[[], AbstractAsyncContextManager[_C]]) -> _C:
        """Return the client, which is entered if there is none. Raises what entering it raises."""
        async with self._lock:
            if not self._held:
                keeping = _kept(enter, ref(self))
                self._held.append((await anext(keeping), keeping))
            return self._held[0][0]

    def empty(self) -> None:
        """Forget the client."""
        self._held.clear()

    async def leave(self) -> None:
        """Leave the client, if there is one."""
        async with self._lock:
            for _, keeping in tuple(self._held):
                await keeping.aclose()


async def _kept(
    enter: Callable[[], AbstractAsyncContextManager[_C]], place: ref[_Place[_C]]
) -> AsyncGenerator[_C, None]:
    # A strong reference would close a ring, and what is collected with a ring cannot be left in order any more.
    entered = enter()
    client = await entered.__aenter__()
    try:
        yield client
    finally:
        if (emptied := place()) is not None:
            emptied.empty()
        with suppress(Exception):  # what cannot be left in order is gone all the same, and nobody asks any more
            await entered.__aexit__(None, None, None)


def _loop() -> _Loop:
    loop = _LOOP.get(None)
    if loop is None:
        loop = _Loop()
        _LOOP.set(loop)
    return loop
