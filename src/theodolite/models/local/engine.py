"""The native model from outside: starts its process, talks to it over a private socket, and hangs up."""

from __future__ import annotations

import importlib.util
import os
import secrets
import socket
import subprocess
import sys
import weakref
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from theodolite.core.errors import MissingExtraError, ModelError
from theodolite.core.reading import Cause
from theodolite.models.local.serving import Order, Standing

__all__ = ("Engine", "HungUpError", "Line")

_T = TypeVar("_T")

_OK = 200
# A message of the runtime may quote what it was asked: enough to see what is wrong, no more.
_QUOTED = 300
# The interpreter of the new process finds what this one finds, whichever way it came to it.
_START = "import sys; sys.path[:] = {path!r}; from theodolite.models.local.serving import serve; serve()"
# Seconds between two looks of a waiting thread at whether its caller has left.
_LOOK = 0.05
# Seconds for a process that has let go of its socket or pipe to be gone as well.
_GRACE = 1.0
# SIGILL, by its number: Windows has no such name.
_ILLEGAL = 4
# Threads that wait in OpenMP spin by default: on a busy machine that cost up to nine tenths of the speed.
_CALM = {"OMP_WAIT_POLICY": "passive"}


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


class _Trouble(Struct, frozen=True):
    """What the runtime says of a request that it refuses."""

    message: str = ""
    type: str = ""
    n_prompt_tokens: int = 0
    n_ctx: int = 0


class _Refusal(Struct, frozen=True):
    error: _Trouble = _Trouble()


class Engine:
    """A native model in a process of its own. Starting it takes about 0.6 s for the smallest weights; blocks.

    It listens on a UNIX socket in a folder that only this user may enter, with a key made for it, and on no network.
    Where there are no such sockets, or the path of temporary files is too long for one, it listens on a free port of
    127.0.0.1, with the same key. Any number of threads may call it; `slots` conversations are worked on at once.

    Raises ModelError when it cannot be started, MissingExtraError when xllamacpp is not installed.
    """

    def __init__(self, weights: Path, *, slots: int, threads: int, context: int) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingExtraError(extra="local", needed_for="models on this machine")
        folder = TemporaryDirectory(prefix="theodolite-", ignore_cleanup_errors=True)
        self._free: Queue[int] = Queue()
        for number in range(slots):
            self._free.put(number)
        self._key = secrets.token_urlsafe()
        self._process = _spawned()
        self.close = weakref.finalize(self, _end, self._process, folder)
        order = Order(
            weights=str(weights),
            folder=folder.name,
            key=self._key,
            slots=slots,
            threads=threads,
            context=context,
        )
        try:
            self.address = self._begun(order, weights)
        except ModelError:
            self.close()
            raise

    @property
    def ended(self) -> bool:
        """Whether its process is gone."""
        return self._process.poll() is not None

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    @contextmanager
    def slot(self, line: Line) -> Generator[int, None, None]:
        """Wait for one of the places where the runtime keeps what it has read of a conversation, and hold it.

        Raises HungUpError when the line is hung up before there is one.
        """
        while True:
            if line.cut:
                raise HungUpError
            with suppress(Empty):
                number = self._free.get(timeout=_LOOK)
                break
        try:
            yield number
        finally:
            self._free.put(number)

    def ask(self, path: str, body: Mapping[str, object] | None, line: Line, answer: type[_T]) -> _T:
        """Return the answer to one request; no body asks for what is at the path. Blocks until it is there.

        Raises ModelError, and HungUpError when the line is hung up before.
        """
        status, said = self._exchanged(path, None if body is None else msgspec.json.encode(body), line)
        if status != _OK:
            raise _refused(status, said)
        try:
            return msgspec.json.decode(said, type=answer)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            what = f"the embedded model's answer to {path} cannot be read ({error}): another version of xllamacpp?"
            raise ModelError(what, cause=Cause.MALFORMED) from error

    def _begun(self, order: Order, weights: Path) -> str:
        ordered, told = self._process.stdin, self._process.stdout
        if ordered is None or told is None:  # they are what Popen was asked for
            raise ModelError("the process of the embedded model has no pipes")
        with suppress(BrokenPipeError):  # it ended before it read anything: its exit status says why
            ordered.write(msgspec.json.encode(order) + b"\n")
            ordered.flush()
        said = told.readline()
        if not said:
            raise ModelError(f"the embedded model could not be started: its process {self._how_it_ended()}")
        standing = msgspec.json.decode(said, type=Standing)
        if standing.fault:
            raise ModelError(
                f"xllamacpp cannot load {weights} ({standing.fault[:_QUOTED]}): the file is broken or no model that it "
                "knows, or there is not enough memory for it"
            )
        return standing.address

    def _exchanged(self, path: str, body: bytes | None, line: Line) -> tuple[int, bytes]:
        connection = _Connection(self.address, line)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connection.request("GET" if body is None else "POST", path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, HTTPException) as error:
            if line.cut:
                raise HungUpError from None
            how = self._how_it_ended()
            raise ModelError(f"the embedded model was lost: its process {how}: ask again to start it anew") from error
        finally:
            line.drop()
            connection.close()

    def _how_it_ended(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(timeout=_GRACE)
            if code == -_ILLEGAL:
                return "met an instruction that this processor does not have: the wheels of xllamacpp need AVX2"
            return f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        return "does not answer"


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


def _spawned() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own interpreter, our own module
        [sys.executable, "-c", _START.format(path=sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**_CALM, **os.environ},
    )


def _end(process: subprocess.Popen[bytes], folder: TemporaryDirectory[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    folder.cleanup()


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
