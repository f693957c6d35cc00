"""A provider on loopback that speaks the wire formats of OpenAI and Anthropic, and breaks where a script says so.

For tests of what asks models over HTTP: real sockets, real headers, nothing patched.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from enum import StrEnum
from functools import partial
from types import TracebackType
from typing import BinaryIO, Literal, Self

import msgspec
from msgspec import Struct

__all__ = ("Asked", "Breaks", "FakeProvider", "Phase", "Responds", "Says", "Scripted")


class Phase(StrEnum):
    """Where an exchange is broken off: the request is read, headers or body are half sent, all is sent but no end."""

    REQUEST = "request"
    HEADERS = "headers"
    BODY = "body"
    STREAM = "stream"
    DONE = "done"


class Asked(Struct, frozen=True):
    """A request as it came, header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, object]

    @property
    def draws(self) -> int:
        """How many draws it asks for."""
        wanted = self.body.get("n", 1)
        return wanted if isinstance(wanted, int) else 1


class Says(Struct, frozen=True, kw_only=True):
    """An answer in the format of whatever path it was asked at, once for each draw that was asked for.

    `letters` are the alternatives to the first token with their probabilities; `refusal` marks the text as a refusal;
    `finish` replaces the reason why the answer ended. `cost` is what the provider says that it charges.
    """

    text: str = ""
    tool_calls: tuple[tuple[str, str], ...] = ()
    letters: Mapping[str, float] = {}
    refusal: bool = False
    finish: str = ""
    input_tokens: int = 12
    output_tokens: int = 3
    cost: float | None = None


class Responds(Struct, frozen=True, kw_only=True):
    """A response as it stands."""

    status: int = 200
    body: str | bytes = ""
    headers: Mapping[str, str] = {}


class Breaks(Struct, frozen=True):
    """An answer that is broken off in a phase: the connection is closed, reset, or left hanging until the end."""

    phase: Phase
    how: Literal["close", "reset", "hang"] = "close"


Scripted = str | Says | Responds | Breaks
"""A text to answer with, an answer, a response, or where it breaks off."""


class FakeProvider:
    """Listens on a free port of 127.0.0.1 while it is open, with a thread for each connection.

    The script is a function of the request, or answers in turn, the last one again and again. Each answer comes `delay`
    seconds after its request. A `deaf` one listens and lets nobody connect; one that was closed refuses connections.
    `asked` lists the requests, `times` when each came (of `time.monotonic`), `connections` counts those accepted, and
    `most_at_once` is the most requests that were ever under way together.

    >>> with FakeProvider("yes") as provider:
    ...     provider.base_url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self,
        script: Scripted | Iterable[Scripted] | Callable[[Asked], Scripted],
        *,
        delay: float = 0.0,
        deaf: bool = False,
    ) -> None:
        self.asked: list[Asked] = []
        self.times: list[float] = []
        self.connections = 0
        self.most_at_once = 0
        self._lock = threading.Lock()
        self._under_way = 0
        self._script = script if callable(script) else _in_turn(script)
        self._delay = delay
        self._closed = threading.Event()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=0 if deaf else 256)
        self._port: int = self._listening.getsockname()[1]
        if deaf:
            self._open.add(socket.create_connection(("127.0.0.1", self._port)))  # takes the one place in the queue
        else:
            self._start(self._accept)

    @property
    def url(self) -> str:
        """The base URL for Anthropic's Messages."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """The base URL for OpenAI's Chat Completions and Responses."""
        return f"{self.url}/v1"

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Break off whatever is under way, and refuse connections from now on."""
        self._closed.set()
        for connection in (self._listening, *tuple(self._open)):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self._threads:
            thread.join()

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="fake-provider", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._closed.is_set():
                connection, _ = self._listening.accept()
                self._open.add(connection)
                self.connections += 1
                self._start(partial(self._serve, connection))

    def _serve(self, connection: socket.socket) -> None:
        # What the other side breaks off is its own affair, and what is no request ends the connection.
        with closing(connection), connection.makefile("rb") as stream, suppress(OSError, LookupError, ValueError):
            for asked in _requests(stream):
                with self._under(asked):
                    self._closed.wait(self._delay)
                    good = self._answer(connection, asked, self._script(asked))
                if not good:
                    break
        self._open.discard(connection)

    @contextmanager
    def _under(self, asked: Asked) -> Generator[None, None, None]:
        with self._lock:
            self.asked.append(asked)
            self.times.append(time.monotonic())
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def _answer(self, connection: socket.socket, asked: Asked, said: Scripted) -> bool:
        """Answer, and return whether the connection is good for another request."""
        if isinstance(said, Breaks):
            connection.sendall(_until(said.phase, _rendered(asked, Says(text="yes"))))
            if said.how == "hang":
                self._closed.wait()
            elif said.how == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if isinstance(said, Responds):
            body = said.body.encode() if isinstance(said.body, str) else said.body
            connection.sendall(_response(said.status, body, said.headers))
            return True
        answer = Says(text=said) if isinstance(said, str) else said
        connection.sendall(_response(200, _rendered(asked, answer), {"content-type": "application/json"}))
        return True


def _in_turn(script: Scripted | Iterable[Scripted]) -> Callable[[Asked], Scripted]:
    answers: list[Scripted] = [script] if isinstance(script, str | Says | Responds | Breaks) else list(script)
    lock = threading.Lock()

    def answer(_: Asked) -> Scripted:
        with lock:
            return answers.pop(0) if len(answers) > 1 else answers[0]

    return answer


def _requests(stream: BinaryIO) -> Iterator[Asked]:
    while line := stream.readline():
        path = line.split()[1].decode()
        headers: dict[str, str] = {}
        while (header := stream.readline().strip()) != b"":
            name, _, value = header.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        body = stream.read(int(headers.get("content-length", "0")))
        yield Asked(path, headers, msgspec.json.decode(body or b"{}", type=dict[str, object]))


def _response(status: int, body: bytes, headers: Mapping[str, str]) -> bytes:
    told = {"content-length": str(len(body)), **headers}
    lines = [f"HTTP/1.1 {status} Scripted", *[f"{name}: {value}" for name, value in told.items()], "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def _until(phase: Phase, body: bytes) -> bytes:
    """Return what is sent before an exchange is broken off."""
    half = body[: len(body) // 2]
    head = b"HTTP/1.1 200 Scripted\r\ncontent-type: application/json\r\n"
    if phase is Phase.REQUEST:
        return b""
    if phase is Phase.HEADERS:
        return head
    if phase is Phase.BODY:
        return head + f"content-length: {len(body)}\r\n\r\n".encode() + half
    if phase is Phase.STREAM:
        return head + f"transfer-encoding: chunked\r\n\r\n{len(half):x}\r\n".encode() + half + b"\r\n"
    return head + b"\r\n" + body  # only the end of the connection says that this is all


def _rendered(asked: Asked, said: Says) -> bytes:
    """Return an answer in the format of the path that it was asked at."""
    render = _responses if asked.path.endswith("/responses") else _chat
    if asked.path.endswith("/messages"):
        render = _messages
    return json.dumps({"model": asked.body.get("model", ""), "id": "fake-1", **render(asked, said)}).encode()


def _chat(asked: Asked, said: Says) -> dict[str, object]:
    calls = [
        {"id": f"call-{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(said.tool_calls)
    ]
    message = {
        "role": "assistant",
        "content": None if said.refusal else said.text,
        "refusal": said.text if said.refusal else None,
        **({"tool_calls": calls} if calls else {}),
    }
    choice = {
        "message": message,
        "finish_reason": said.finish or ("tool_calls" if calls else "stop"),
        "logprobs": {"content": _tokens(said)} if said.letters else None,
    }
    usage = {"prompt_tokens": said.input_tokens, "completion_tokens": said.output_tokens * asked.draws}
    return {
        "object": "chat.completion",
        "created": 0,
        "choices": [{**choice, "index": index} for index in range(asked.draws)],
        "usage": {**usage, "total_tokens": sum(usage.values()), **_cost(said)},
    }


def _responses(_: Asked, said: Says) -> dict[str, object]:
    part: dict[str, object] = (
        {"type": "refusal", "refusal": said.text} if said.refusal else {"type": "output_text", "text": said.text}
    )
    if said.letters:
        part["logprobs"] = _tokens(said)
    message = {"type": "message", "id": "m-1", "role": "assistant", "status": "completed", "content": [part]}
    calls = [
        {"type": "function_call", "id": f"f-{number}", "call_id": f"c-{number}", "name": name, "arguments": arguments}
        for number, (name, arguments) in enumerate(said.tool_calls)
    ]
    cut = {"status": "incomplete", "incomplete_details": {"reason": said.finish}} if said.finish else {}
    usage = {"input_tokens": said.input_tokens, "output_tokens": said.output_tokens}
    return {
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "output": [{"type": "reasoning", "id": "r-1", "summary": []}, message, *calls],
        "usage": {**usage, "total_tokens": sum(usage.values()), **_cost(said)},
        **cut,
    }


def _messages(_: Asked, said: Says) -> dict[str, object]:
    calls = [
        {"type": "tool_use", "id": f"toolu-{number}", "name": name, "input": json.loads(arguments)}
        for number, (name, arguments) in enumerate(said.tool_calls)
    ]
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": said.text}, *calls],
        "stop_reason": said.finish or ("tool_use" if calls else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": said.input_tokens, "output_tokens": said.output_tokens, **_cost(said)},
    }


def _cost(said: Says) -> dict[str, float]:
    return {} if said.cost is None else {"cost": said.cost}


def _tokens(said: Says) -> list[dict[str, object]]:
    listed = [{"token": token, "logprob": math.log(chance)} for token, chance in said.letters.items()]
    return [{"token": said.text[:1], "logprob": 0.0, "top_logprobs": listed}]
