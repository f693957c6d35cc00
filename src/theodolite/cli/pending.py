"""Async work that somebody waits for at a terminal: shown while it runs, and stopped at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import wait
from typing import TypeVar

from anyio.from_thread import start_blocking_portal

from theodolite.runtime.drive import Panel, asking

__all__ = ("awaited",)

_T = TypeVar("_T")

# Seconds between two looks: short for who pressed Ctrl-C.
_LOOK = 0.1


def awaited(work: Callable[[], Awaitable[_T]], panel: Panel, look: Callable[[], None]) -> _T:
    """Run work that asks a panel on an event loop of its own, calling `look` ten times a second; return what it gives.

    Interrupted, it cancels what is under way and raises at once.
    """
    with start_blocking_portal() as portal:
        under_way = portal.start_task_soon(asking, work, panel)
        while not under_way.done():
            wait((under_way,), _LOOK)
            look()
        return under_way.result()
