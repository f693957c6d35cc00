"""One thing for each event loop, such as a client with open connections, which no other loop may use."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar

import anyio
from anyio.lowlevel import RunVar

__all__ = ("PerLoop",)

_T = TypeVar("_T")


class PerLoop(Generic[_T]):
    """Makes a thing by `open` when it is first asked for in an event loop, and closes it when that loop ends.

    It is closed by an asynchronous generator, which an event loop closes in its orderly end (`anyio.run`,
    `asyncio.run`); `release` does it before. An event loop closes all such generators at once, so `close` must rest on
    no other that is still open. Nothing is shared between loops, and nothing is held of one that is gone.
    """

    def __init__(self, open: Callable[[], Awaitable[_T]], close: Callable[[_T], Awaitable[None]]) -> None:  # noqa: A002 - the word for it
        self._open = open
        self._close = close
        self._places: RunVar[_Place[_T]] = RunVar("per loop")

    async def get(self) -> _T:
        """Return the thing of the running event loop. Raises what opening it raises."""
        place = self._place()
        async with place.lock:
            if not place.held:
                keeping = self._keep()
                place.held.append((await anext(keeping), keeping))
        return place.held[0][0]

    async def release(self) -> None:
        """Close what the running event loop has; a later `get` makes it anew."""
        held = self._place().held
        while held:
            _, keeping = held.pop()
            await keeping.aclose()

    def _place(self) -> _Place[_T]:
        place = self._places.get(_Place[_T]())
        self._places.set(place)
        return place

    async def _keep(self) -> AsyncGenerator[_T, None]:
        thing = await self._open()
        try:
            yield thing
        finally:
            await self._close(thing)


class _Place(Generic[_T]):
    """Where the thing of one event loop is kept. Two tasks that ask for it at once get the same."""

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.held: list[tuple[_T, AsyncGenerator[_T, None]]] = []
