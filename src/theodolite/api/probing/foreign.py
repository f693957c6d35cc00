"""What a caller's own code gives when it is called: at once or awaited, on time, and no ending of its own as ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import anyio

from theodolite.core.errors import ModelError
from theodolite.core.reading import Cause, Failure
from theodolite.runtime.drive import attempt

__all__ = ("given_by", "within")


async def given_by(give: Callable[[], object]) -> object:
    """Return what foreign code gives, at once or when it is awaited. Raises what it raises.

    A GeneratorExit of its own becomes a ModelError: to an event loop it is no error, and nobody would catch it. One
    that comes from outside, because this coroutine is closed, goes on.
    """
    task = anyio.get_current_task().id
    try:
        given = give()
        if inspect.isawaitable(given):
            awaited: object = await given
            return awaited
    except GeneratorExit:
        if not _runs(task):
            raise
        raise ModelError("it raised GeneratorExit") from None
    return given


async def within(give: Callable[[], object], name: str, seconds: float) -> object:
    """Return what foreign code gives within a time, else the Failure that it comes to. Never raises for that code.

    It runs in a task of its own: what it cancels there, or raises as cancelled, is its own. Being cancelled from
    outside is no failure, and goes on.
    """
    own: object = Failure(detector=name, version="1", cause=Cause.ERROR, detail="it cancelled itself")

    async def told() -> None:
        nonlocal own
        own = await attempt(lambda: given_by(give), name, "1")

    with anyio.move_on_after(seconds) as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(told)
    if scope.cancelled_caught:
        return Failure(detector=name, version="1", cause=Cause.TIMEOUT, detail=f"nothing in {seconds} s")
    return own


def _runs(task: int) -> bool:
    """Whether that task is the one that runs: a coroutine that is closed is so by another, or outside of any loop."""
    try:
        return anyio.get_current_task().id == task
    except RuntimeError:
        return False
