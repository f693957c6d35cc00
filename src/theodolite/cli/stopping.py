"""Ctrl-C and SIGTERM that take effect where they cut nothing in half."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType, TracebackType
from typing import Self, TypeVar

from theodolite.core.errors import TheodoliteError

__all__ = ("Stop",)

_T = TypeVar("_T")
_Handler = Callable[[int, FrameType | None], object]


class Stop:
    """While it is entered, the first signal that would end the program waits for a place where work can be left.

    Such a place is the wait for the next item in `until`: a signal ends that at once. Anywhere else, `error` holds what
    its handler raised until somebody looks. The second signal raises at once, wherever it comes. Left in order, it
    raises the `error` that nobody took. Only in the main thread are there signals to wait.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._waits = False
        self._handlers: dict[signal.Signals, _Handler] = {}

    def __enter__(self) -> Self:
        """Hear of signals first."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, partial(self._hear, handler))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Give signals back to whoever heard of them before."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if error is None:
            self.check()

    def check(self) -> None:
        """Raise what is held, if anything is."""
        if self.error is not None:
            raise self.error

    def until(self, items: Iterator[_T]) -> Iterator[_T]:
        """Yield items until there are no more, or until a stop: by a signal, or by an error of ours in getting one."""
        try:
            while True:
                self._waits = True
                if self.error is not None:
                    return
                item = next(items)
                self._waits = False
                yield item
        except StopIteration:
            return
        except (KeyboardInterrupt, TheodoliteError) as error:
            self.error = error
        finally:
            self._waits = False

    def _hear(self, handler: _Handler, number: int, frame: FrameType | None) -> None:
        try:
            handler(number, frame)
        except KeyboardInterrupt as stop:
            if self._waits or self.error is not None:
                raise
            self.error = stop
