"""The line of one caller, which can be hung up from any thread."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Lock

__all__ = ("LOOK", "HungUpError", "Line")

# Seconds between two looks of a waiting thread at whether its caller has left.
LOOK = 0.05


class HungUpError(Exception):
    """Whoever asked has left. It ends the work of a thread that nobody waits for."""


class Line:
    """The line of one caller. Hung up from any thread, whatever waits on it ends at once and nothing more is asked."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._cut = False

    @property
    def cut(self) -> bool:
        """Whether it was hung up."""
        return self._cut

    def check(self) -> None:
        """Raise HungUpError if it was hung up."""
        if self._cut:
            raise HungUpError

    def take(self, sock: socket.socket) -> None:
        """Wait on this socket from here on. Raises HungUpError."""
        with self._lock:
            if self._cut:
                sock.close()
                raise HungUpError
            self._socket = sock

    def drop(self) -> None:
        """Wait on no socket any more."""
        with self._lock:
            self._socket = None

    def hang_up(self) -> None:
        """End what waits, now and from here on. May be called more than once."""
        with self._lock:
            self._cut = True
            if self._socket is not None:
                with suppress(OSError):  # the other side may have closed it already
                    self._socket.shutdown(socket.SHUT_RDWR)
