"""The native model from outside: asked over a private socket, by callers that may hang up."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from queue import Empty, Queue
from threading import Lock
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from theodolite.core.errors import ModelError
from theodolite.core.faults import place_of
from theodolite.core.reading import Cause
from theodolite.models.local.child import Child
from theodolite.models.local.line import LOOK, HungUpError, Line

__all__ = ("Engine",)

_T = TypeVar("_T")

_OK = 200
# A message of the runtime may quote what it was asked: enough to see what is wrong, no more.
_QUOTED = 300


class _Trouble(Struct, frozen=True):
    """What the runtime says of a request that it refuses."""

    message: str = ""
    type: str = ""
    n_prompt_tokens: int = 0
    n_ctx: int = 0


class _Refusal(Struct, frozen=True):
    error: _Trouble = _Trouble()


class Engine:
    """A native model in a process of its own, which the first caller starts: about 0.6 s for the smallest weights.

    It listens on a UNIX socket in a folder that only this user may enter, with a key made for it, and on no network.
    Where there are no such sockets, or the path of temporary files is too long for one, it listens on a free port of
    127.0.0.1, with the same key. Any number of threads may call it, and block; `slots` conversations are worked on at
    once. A process that is given up, lost or closed is not started again.
    """

    def __init__(self, weights: Path, *, slots: int, threads: int, context: int) -> None:
        self._weights, self._slots, self._threads, self._context = weights, slots, threads, context
        self._free: Queue[int] = Queue()
        for number in range(slots):
            self._free.put(number)
        self._key = secrets.token_urlsafe()
        self._turn = Lock()  # of whoever starts the process
        self._lock = Lock()  # of the two below; nobody waits for anything under it
        self._child: Child | None = None
        self._closed = False

    @property
    def ended(self) -> bool:
        """Whether its process is gone."""
        child = self._child
        return self._closed or (child is not None and child.ended)

    @property
    def pid(self) -> int | None:
        """The number of its process, None before it is started."""
        child = self._child
        return None if child is None else child.pid

    def close(self) -> None:
        """End its process. Whoever waits for it is told so."""
        with self._lock:
            self._closed, child = True, self._child
        if child is not None:
            child.close()

    def address(self, line: Line) -> str:
        """Return where it listens. Starts the process if nobody has, and blocks until it stands.

        Raises ModelError when it cannot be started, and HungUpError when the line is hung up before it stands; it is
        then left to the next caller.
        """
        return self._started(line).address(line)

    def _started(self, line: Line) -> Child:
        while not self._turn.acquire(timeout=LOOK):
            line.check()
        try:
            if self._child is not None:
                return self._child
            line.check()
            child = Child(self._weights, key=self._key, slots=self._slots, threads=self._threads, context=self._context)
            with self._lock:
                closed, self._child = self._closed, child
        except OSError as error:
            what = error.strerror or type(error).__name__
            raise ModelError(f"no process can be started for the embedded model: {what}") from None
        finally:
            self._turn.release()
        if closed:
            child.close()
        return child

    @contextmanager
    def slot(self, line: Line) -> Generator[int, None, None]:
        """Wait for one of the places where the runtime keeps what it has read of a conversation, and hold it.

        Raises HungUpError when the line is hung up before there is one.
        """
        while True:
            line.check()
            with suppress(Empty):
                number = self._free.get(timeout=LOOK)
                break
        try:
            yield number
        finally:
            self._free.put(number)

    def ask(self, path: str, body: Mapping[str, object] | None, line: Line, answer: type[_T]) -> _T:
        """Return the answer to one request; no body asks for what is at the path. Blocks until it is there.

        Raises ModelError, and HungUpError when the line is hung up before. The first one starts the process.
        """
        status, said = self._exchanged(path, None if body is None else msgspec.json.encode(body), line)
        if status != _OK:
            raise _refused(status, said)
        try:
            return msgspec.json.decode(said, type=answer)
        except (msgspec.DecodeError, RecursionError) as error:
            fault = place_of(error)
        except UnicodeDecodeError:
            fault = "not UTF-8"
        what = f"the embedded model's answer to {path} cannot be read ({fault}): another version of xllamacpp?"
        raise ModelError(what, cause=Cause.MALFORMED)

    def _exchanged(self, path: str, body: bytes | None, line: Line) -> tuple[int, bytes]:
        child = self._started(line)
        connection = _Connection(child.address(line), line)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connection.request("GET" if body is None else "POST", path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, HTTPException):
            if line.cut:
                raise HungUpError from None
            how = child.how_it_ended()
            raise ModelError(f"the embedded model was lost: its process {how}: ask again to start it anew") from None
        finally:
            line.drop()
            connection.close()


class _Connection(HTTPConnection):
    """A connection to the process, over a UNIX socket or loopback, that its caller's line can cut."""

    def __init__(self, address: str, line: Line) -> None:
        super().__init__("localhost")
        self._to = urlsplit(address)
        self._line = line

    def connect(self) -> None:
        if self._to.scheme == "unix":
            sock = socket.socket(socket.AF_UNIX)
            target: str | tuple[str | None, int | None] = self._to.path
        else:
            sock = socket.socket(socket.AF_INET)
            target = (self._to.hostname, self._to.port)
        self._line.take(sock)
        self.sock = sock
        sock.connect(target)


def _refused(status: int, said: bytes) -> ModelError:
    try:
        trouble = msgspec.json.decode(said, type=_Refusal).error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        trouble = _Trouble()
    if trouble.type == "exceed_context_size_error":
        over = trouble.n_prompt_tokens - trouble.n_ctx + 1
        return ModelError(
            f"the query has {trouble.n_prompt_tokens} tokens, {over} more than the context of {trouble.n_ctx} takes: "
            "ask with less context, or give LocalModel a larger `context`, up to what the weights were trained for"
        )
    what = trouble.message[:_QUOTED] or f"HTTP status {status}"
    return ModelError(f"the embedded model refuses the query: {what}")
